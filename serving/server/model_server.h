// ModelServer: models that answer over HTTP, what `cairn serve` runs.
//
//   ModelServer server({.models = {{.name = "clicks", .path = "/models/clicks"}}});
//   server.port() ...                      // POST /v1/models/clicks:predict
//   server.stop(10s);
//
// docs/serving.md lists the addresses, the forms of requests, and every status with its cause.
//
//   Threads  one for connections, one for each computing core, one that loads versions. A request
//            is read on the first, or by a computing thread if it is large; its examples are
//            computed together with whatever else waits for that version, and the answer is written
//            by the thread that computed it.
//   Thread   any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "serving/http/http_server.h"
#include "serving/server/model_directory.h"

namespace cairn::serving {

struct ModelServerOptions {
  std::vector<ModelToServe> models;
  HttpOptions http = {};
  int threads = 1;                               // that compute
  std::int64_t queue_max = 65'536;               // examples that wait; more: 429
  std::int64_t batch_max = 256;                  // examples that are computed together
  Duration batch_wait{};                         // that a request waits for others
  Duration deadline = std::chrono::seconds(30);  // of a request; later: 504
  // Between two looks for new versions; zero: they are looked for when reload() is called.
  Duration look_every = std::chrono::seconds(1);
  std::size_t memory_limit = 0;         // DirectoryOptions's
  std::int64_t examples_max = 65'536;   // in one request; more: 400
  bool allow_nan = false;               // NaN and infinities in requests
  ReadCandidates read_candidates = {};  // of retrieval models; empty: none recommends
  CandidateIndexOptions index = {};     // in which candidates are looked for
};

class ModelServer {
 public:
  // Listens when it returns, and loads the models meanwhile: until all serve, "ready" is 503.
  //   Errors  those of ModelDirectory and of HttpServer.
  explicit ModelServer(ModelServerOptions options);
  ~ModelServer();
  ModelServer(const ModelServer&) = delete;
  ModelServer& operator=(const ModelServer&) = delete;

  std::uint16_t port() const;
  const ModelDirectory& models() const;
  // Looks for new versions now, and returns when they serve or are refused.
  void reload();
  // The same on the thread that loads versions, which calls `done` afterwards, also where stop()
  // has ended it.
  void reload_soon(std::function<void()> done);
  // "Ready" becomes 503 at once, and loading is given up; requests under way end, and after
  // `drain` all connections are closed.
  void stop(Duration drain);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::serving
