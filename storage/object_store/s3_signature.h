// The signature of a request to S3.
//   Source  "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)",
//           Amazon Simple Storage Service API Reference.
//   Thread  any.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::storage {

struct S3Credentials {
  std::string access_key, secret_key;
  std::string session_token = {};  // of temporary ones
};

struct S3Request {
  std::string method;                               // "PUT"
  std::string path;                                 // encoded, with the bucket: "/bucket/a/b"
  std::map<std::string, std::string> query = {};    // not encoded
  std::map<std::string, std::string> headers = {};  // names in lower case; all are signed
};

// The SHA-256 of the bytes, in hex.
std::string content_hash(std::string_view bytes);
// As a URL has it, "/" kept if it is part of a path.
enum class Slash : bool { kEncoded, kKept };
std::string uri_encoded(std::string_view text, Slash slash);
// "a=1&b=2", in the order in which it is signed.
std::string query_text(const S3Request& request);

// The value of the header Authorization. The request has the headers host, x-amz-date
// ("20130524T000000Z") and x-amz-content-sha256 already.
std::string s3_authorization(const S3Request& request, const std::string& region,
                             const S3Credentials& credentials);

}  // namespace cairn::storage
