// Workers of a multi-worker strategy, each on a thread of the test.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collective/local/thread_group.h"
#include "strategy/in_sync/multi_worker_mirrored_strategy.h"

namespace cairn::testing {

using WorkerBody = std::function<void(MultiWorkerMirroredStrategy&)>;

// The error of each worker, as "Code: message", or "".
inline std::vector<std::string> on_threads(int workers, const std::function<void(int rank)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(workers));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < workers; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = str(code_name(error.code()), ": ", error.what());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return errors;
}

// "cpu:0", "cpu:1", ...: a replica of a worker on each.
inline std::vector<std::string> devices(int replicas) {
  std::vector<std::string> names;
  for (int i = 0; i < replicas; ++i) names.push_back(str("cpu:", i));
  return names;
}

// The error of the call, the same way.
template <typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return str(code_name(error.code()), ": ", error.what());
  }
  return "";
}

inline float value_of(const Variable& variable) { return variable.read().eval().item<float>(); }

// Through shared memory: the strategy alone is looked at.
inline std::vector<std::string> on_workers(int workers, const WorkerBody& body,
                                           const MultiWorkerOptions& options = {}) {
  auto members = make_thread_group(workers, std::chrono::minutes(1));
  return on_threads(workers, [&](int rank) {
    MultiWorkerMirroredStrategy strategy(std::move(members[static_cast<std::size_t>(rank)]),
                                         options);
    body(strategy);
  });
}

// As processes do, at Unix sockets.
class SocketCluster {
 public:
  explicit SocketCluster(int workers, bool chief = false) : workers_(workers), chief_(chief) {
    char folder[] = "/tmp/cairn-workers-XXXXXX";
    if (::mkdtemp(folder) == nullptr) throw UnavailableError("no temporary folder");
    folder_ = folder;
    for (int rank = 0; rank < workers; ++rank)
      spec_.add_task(chief && rank == 0 ? "chief" : "worker", str("unix:", folder_, "/", rank));
  }
  ~SocketCluster() { std::filesystem::remove_all(folder_); }

  SimpleClusterResolver resolver(int rank) const {
    const bool is_chief = chief_ && rank == 0;
    return SimpleClusterResolver(spec_, {.task_type = is_chief ? "chief" : "worker",
                                         .task_id = chief_ && !is_chief ? rank - 1 : rank});
  }
  std::vector<std::string> run(const WorkerBody& body, const MultiWorkerOptions& options = {}) {
    return on_threads(workers_, [&](int rank) {
      MultiWorkerMirroredStrategy strategy(resolver(rank), {}, options);
      body(strategy);
    });
  }

 private:
  const int workers_;
  const bool chief_;
  std::string folder_;
  ClusterSpec spec_;
};

}  // namespace cairn::testing
