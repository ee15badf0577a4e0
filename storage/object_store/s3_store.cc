// Every wait has a bound: of a connection, of a silence, of a request, of the attempts. Repeating
// is safe for all requests but two. A conditional PUT whose answer was lost may have made the
// object: the next one then finds it there, and is right if it has the same bytes. A completed
// upload is gone when it is completed again: the object is there then, with all of its bytes. How
// often a request was sent says nothing of either, as libcurl itself sends one again on a new
// connection whose old one ended before it answered.
#include "storage/object_store/s3_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/disk/disk.h"
#include "storage/object_store/s3_xml.h"

namespace cairn::storage {
namespace {

constexpr std::uint64_t kAnswerBytesMax = std::uint64_t{16} << 20;  // of all but GET's objects
constexpr std::uint64_t kPartsMax = 10'000;
constexpr std::size_t kUploadPagesMax = 100;  // of 1,000 uploads each
constexpr Duration kPauseMax = std::chrono::seconds(5);

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "20130524T000000Z"
std::string request_time(std::int64_t microseconds) {
  const std::time_t seconds = microseconds / 1'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts)};
}

std::string host_of(const std::string& endpoint) {
  const std::size_t begin = endpoint.find("://");
  return begin == std::string::npos ? endpoint : endpoint.substr(begin + 3);
}

bool may_pass(const HttpAnswer& answer) {
  const int status = answer.status;
  return !answer.trouble.empty() || status == 408 || status == 409 || status == 429 ||
         status == 500 || status == 502 || status == 503 || status == 504;
}

// A file that is read in pieces, by several threads.
class PartsOf {
 public:
  explicit PartsOf(const std::string& path) : path_(path), file_(::open(path.c_str(), O_RDONLY)) {
    if (file_ < 0) raise_disk_error(errno, "opening", path);
  }
  ~PartsOf() { ::close(file_); }
  PartsOf(const PartsOf&) = delete;
  PartsOf& operator=(const PartsOf&) = delete;

  std::string read(std::uint64_t begin, std::uint64_t bytes) const {
    std::string part(bytes, '\0');
    for (std::uint64_t at = 0; at < bytes;) {
      const ssize_t got =
          ::pread(file_, part.data() + at, bytes - at, static_cast<off_t>(begin + at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) raise_disk_error(errno, "reading", path_);
      if (got == 0) throw DataLossError(str(path_, " became shorter while it was uploaded"));
      at += static_cast<std::uint64_t>(got);
    }
    return part;
  }

 private:
  std::string path_;
  int file_;
};

class S3Store final : public ObjectStore {
 public:
  explicit S3Store(S3Options options) : options_(std::move(options)), http_(options_.limits) {
    while (options_.endpoint.ends_with('/')) options_.endpoint.pop_back();
  }

  void put(const std::string& key, std::string_view bytes, PutIf when) override {
    Call call{.method = "PUT", .key = key, .body = bytes};
    if (when == PutIf::kAbsent) call.headers["if-none-match"] = "*";
    const HttpAnswer answer = send(call);
    if (answer.status == 412 && get(key, 0, bytes.size() + 1) == bytes) return;
    if (answer.status == 412) throw AlreadyExistsError(str(place(key), " is there already"));
    if (answer.status == 501)
      throw UnimplementedError(str(place(key),
                                   ": the store has no conditional writes (it answers "
                                   "501 to If-None-Match)"));
    expect_well(call, answer);
  }

  void put_file(const std::string& key, const std::string& path) override {
    const PartsOf file(path);
    const std::uint64_t bytes = system_disk().size(path);
    if (bytes <= options_.part_bytes) return put(key, file.read(0, bytes), PutIf::kAny);
    const std::string upload = begin_upload(key);
    try {
      complete_upload(key, upload, send_parts(key, upload, file, bytes), bytes);
    } catch (...) {
      abandon_upload(key, upload);
      throw;
    }
  }

  std::string get(const std::string& key, std::uint64_t begin, std::uint64_t bytes) override {
    if (bytes == 0) return "";
    Call call{.method = "GET", .key = key, .answer_bytes_max = bytes};
    call.headers["range"] = str("bytes=", begin, '-', begin + bytes - 1);
    HttpAnswer answer = send(call);
    if (answer.status == 416) return "";  // it begins at the end or beyond it
    expect_well(call, answer);
    if (answer.status != 206 && begin > 0)
      throw UnknownError(str(place(key), ": the store ignores ranges"));
    return std::move(answer.body);
  }

  std::optional<std::uint64_t> size(const std::string& key) override {
    Call call{.method = "HEAD", .key = key};
    const HttpAnswer answer = send(call);
    if (answer.status == 404) return std::nullopt;
    expect_well(call, answer);
    const auto found = answer.headers.find("content-length");
    if (found == answer.headers.end())
      throw UnknownError(str(place(key), ": the store does not say its size"));
    return std::strtoull(found->second.c_str(), nullptr, 10);
  }

  ObjectListing list(const std::string& prefix, Depth depth) override {
    ObjectListing all;
    std::string token;
    do {
      Call call{.method = "GET"};
      call.query = {{"list-type", "2"}, {"prefix", prefix}};
      if (depth == Depth::kOneLevel) call.query["delimiter"] = "/";
      if (!token.empty()) call.query["continuation-token"] = token;
      const HttpAnswer answer = send(call);
      expect_well(call, answer);
      for (const std::string_view each : xml_elements(answer.body, "Contents"))
        all.objects.push_back(
            {xml_text(each, "Key"), std::strtoull(xml_text(each, "Size").c_str(), nullptr, 10)});
      for (const std::string_view each : xml_elements(answer.body, "CommonPrefixes"))
        all.prefixes.push_back(xml_text(each, "Prefix"));
      const bool more = xml_text(answer.body, "IsTruncated") == "true";
      token = more ? xml_text(answer.body, "NextContinuationToken") : "";
    } while (!token.empty());
    return all;
  }

  void remove(const std::string& key) override {
    Call call{.method = "DELETE", .key = key};
    const HttpAnswer answer = send(call);
    if (answer.status != 404) expect_well(call, answer);
  }

  // Those of a page are given up before the next page is asked for, which therefore begins anew. A
  // store that goes on to list what is gone is not asked for ever.
  std::size_t abandon_uploads(const std::string& prefix) override {
    std::size_t abandoned = 0;
    for (std::size_t page = 0; page < kUploadPagesMax; ++page) {
      Call call{.method = "GET", .query = {{"prefix", prefix}, {"uploads", ""}}};
      const HttpAnswer answer = send(call);
      if (answer.status == 501) return abandoned;  // it knows of none
      expect_well(call, answer);
      const auto uploads = xml_elements(answer.body, "Upload");
      for (const std::string_view each : uploads)
        abandon_upload(xml_text(each, "Key"), xml_text(each, "UploadId"));
      abandoned += uploads.size();
      if (uploads.empty() || xml_text(answer.body, "IsTruncated") != "true") break;
    }
    return abandoned;
  }

 private:
  struct Call {
    std::string method, key = {};  // no key: the bucket
    std::map<std::string, std::string> query = {}, headers = {};
    std::string_view body = {};
    std::uint64_t answer_bytes_max = kAnswerBytesMax;
    int sent = 0;  // so often
  };

  std::string place(const std::string& key) const {
    return str("s3://", options_.bucket, key.empty() ? "" : "/", key, " at ", options_.endpoint);
  }

  // The answer, whatever its status is: of the last attempt, if all have failed.
  HttpAnswer send(Call& call) {
    S3Request request{.method = call.method,
                      .path = str('/', uri_encoded(options_.bucket, Slash::kEncoded),
                                  call.key.empty() ? "" : "/", uri_encoded(call.key, Slash::kKept)),
                      .query = call.query,
                      .headers = call.headers};
    request.headers["host"] = host_of(options_.endpoint);
    request.headers["x-amz-content-sha256"] = content_hash(call.body);
    if (!options_.credentials.session_token.empty())
      request.headers["x-amz-security-token"] = options_.credentials.session_token;
    const std::string query = query_text(request);
    const std::string url = str(options_.endpoint, request.path, query.empty() ? "" : "?", query);
    Duration pause = options_.pause;
    for (;;) {
      request.headers["x-amz-date"] =
          request_time(options_.wall_microseconds ? options_.wall_microseconds()
                                                  : system_clock().wall_microseconds());
      HttpRequest sent{.method = call.method, .url = url, .body = call.body};
      // An error's text may be longer than what was asked for.
      sent.answer_bytes_max = std::max(call.answer_bytes_max, std::uint64_t{64} << 10);
      for (const auto& [name, value] : request.headers)
        if (name != "host") sent.headers.push_back(str(name, ": ", value));
      sent.headers.push_back(
          str("authorization: ", s3_authorization(request, options_.region, options_.credentials)));
      HttpAnswer answer = http_.send(sent);
      ++call.sent;
      if (!may_pass(answer) || call.sent >= options_.attempts) return answer;
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kPauseMax);
    }
  }

  // Throws what a status or a failed transfer means.
  void expect_well(const Call& call, const HttpAnswer& answer) const {
    const std::string where = str(call.method, " ", place(call.key), ": ");
    if (!answer.trouble.empty())
      throw UnknownError(str(where, answer.trouble, ", ", call.sent,
                             " times. Is the endpoint right (AWS_ENDPOINT_URL), and the network?"));
    if (answer.status >= 200 && answer.status < 300) return;
    const std::string code = xml_text(answer.body, "Code");
    const std::string said =
        str(where, "the store answers ", answer.status, code.empty() ? "" : " ", code,
            code.empty() ? "" : ": ", xml_text(answer.body, "Message"));
    if (answer.status == 404) throw NotFoundError(said);
    if (answer.status == 401 || answer.status == 403)
      throw PermissionDeniedError(
          str(said, ". Are the credentials right (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)?"));
    if (answer.status == 507) throw ResourceExhaustedError(said);
    throw UnknownError(call.sent > 1 ? str(said, ", ", call.sent, " times") : said);
  }

  std::string begin_upload(const std::string& key) {
    Call call{.method = "POST", .key = key, .query = {{"uploads", ""}}};
    const HttpAnswer answer = send(call);
    expect_well(call, answer);
    std::string id = xml_text(answer.body, "UploadId");
    if (id.empty()) throw UnknownError(str(place(key), ": the store gives no number to an upload"));
    return id;
  }

  // The parts' tags. Each thread takes the next part that none has; after an error none takes
  // another.
  std::vector<std::string> send_parts(const std::string& key, const std::string& upload,
                                      const PartsOf& file, std::uint64_t bytes) {
    const std::uint64_t part = std::max(options_.part_bytes, (bytes + kPartsMax - 1) / kPartsMax);
    std::vector<std::string> tags((bytes + part - 1) / part);
    std::atomic<std::size_t> next{0};
    std::mutex mutex;  // guards `error`
    std::exception_ptr error;
    const auto work = [&] {
      try {
        for (std::size_t i = next++; i < tags.size(); i = next++)
          tags[i] =
              send_part(key, upload, i + 1, file.read(i * part, std::min(part, bytes - i * part)));
      } catch (...) {
        next = tags.size();
        const std::lock_guard hold(mutex);
        if (!error) error = std::current_exception();
      }
    };
    std::vector<std::thread> threads;
    for (int i = 1; i < options_.parts_at_once; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
    return tags;
  }

  std::string send_part(const std::string& key, const std::string& upload, std::size_t number,
                        const std::string& bytes) {
    Call call{.method = "PUT",
              .key = key,
              .query = {{"partNumber", std::to_string(number)}, {"uploadId", upload}},
              .body = bytes};
    const HttpAnswer answer = send(call);
    expect_well(call, answer);
    const auto tag = answer.headers.find("etag");
    if (tag == answer.headers.end())
      throw UnknownError(str(place(key), ": the store gives no tag to part ", number));
    return tag->second;
  }

  void complete_upload(const std::string& key, const std::string& upload,
                       const std::vector<std::string>& tags, std::uint64_t bytes) {
    std::string body = "<CompleteMultipartUpload>";
    for (std::size_t i = 0; i < tags.size(); ++i)
      body += str("<Part><PartNumber>", i + 1, "</PartNumber><ETag>", tags[i], "</ETag></Part>");
    body += "</CompleteMultipartUpload>";
    Call call{.method = "POST", .key = key, .query = {{"uploadId", upload}}, .body = body};
    const HttpAnswer answer = send(call);
    if (answer.status == 404 && size(key) == bytes) return;
    expect_well(call, answer);
    // The store answers well before it knows how it ends, and may say so afterwards.
    if (const std::string code = xml_text(answer.body, "Code"); !code.empty())
      throw UnknownError(str(place(key), ": completing the upload failed: ", code, ": ",
                             xml_text(answer.body, "Message")));
  }

  // Parts of an upload that is never completed cost room. The error that led here counts.
  void abandon_upload(const std::string& key, const std::string& upload) {
    try {
      Call call{.method = "DELETE", .key = key, .query = {{"uploadId", upload}}};
      const HttpAnswer answer = send(call);
      expect_well(call, answer);
    } catch (const Error& error) {
      log_warning("an upload could not be abandoned, its parts take room: ", error.what());
    }
  }

  S3Options options_;
  HttpClient http_;
};

}  // namespace

S3Options S3Options::from_environment(const std::string& bucket) {
  S3Options options{.bucket = bucket};
  if (const std::string region = environment("AWS_REGION"); !region.empty())
    options.region = region;
  options.endpoint = environment("AWS_ENDPOINT_URL");
  if (options.endpoint.empty())
    options.endpoint = str("https://s3.", options.region, ".amazonaws.com");
  options.credentials = {environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY"),
                         environment("AWS_SESSION_TOKEN")};
  if (options.credentials.access_key.empty() || options.credentials.secret_key.empty())
    throw FailedPreconditionError(
        str("there are no credentials for s3://", bucket,
            ": set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for the ps too"));
  return options;
}

std::shared_ptr<ObjectStore> make_s3_store(S3Options options) {
  return std::make_shared<S3Store>(std::move(options));
}

}  // namespace cairn::storage
