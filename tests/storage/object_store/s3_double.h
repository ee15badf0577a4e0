// S3 in this process, on a free port: objects in memory, signatures checked, and faults on request.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "storage/object_store/s3_store.h"

namespace cairn::storage {

// The fate of one request.
enum class Fault : std::uint8_t {
  kNone,
  kCutInside,        // the connection ends when half of the request's body is read, or at once
  kCutBeforeAnswer,  // it is carried out, and the connection ends
  kCutInsideAnswer,  // it is carried out, and half of the answer comes
  kSlowDown,         // 503
  kNotImplemented,   // 501
  kNoAnswer,         // the connection stays, and nothing comes until the client gives up
};

struct SeenRequest {
  std::string method, target;
  std::size_t body_bytes = 0;
  bool conditional = false;  // If-None-Match
};

class S3Double {
 public:
  S3Double();
  ~S3Double();
  S3Double(const S3Double&) = delete;
  S3Double& operator=(const S3Double&) = delete;

  std::string endpoint() const;
  // For its bucket "bucket", with limits that suit a test.
  S3Options options() const;

  // Asked of each request, in the order in which they come; on any thread, one at a time.
  void set_faults(std::function<Fault(const SeenRequest&)> faults);
  std::vector<SeenRequest> seen() const;
  void forget();
  std::map<std::string, std::string> objects() const;  // by key, with the bucket
  std::size_t uploads() const;                         // that were begun and have not ended
  std::size_t keys_a_page = 1000;                      // of a listing

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::storage
