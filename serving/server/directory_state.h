// The inside of a ModelDirectory: its models and versions, and how it looks and loads. For this
// folder alone.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "serving/model/served_model.h"
#include "serving/server/model_directory.h"
#include "serving/server/version_places.h"

namespace cairn::serving {

struct RefusedVersion {
  std::string identity;
  TimePoint again;
  Duration pause{};
  Code code = Code::kUnknown;
  std::string error;
};

// A model with its versions.
struct DirectoryModel {
  ModelToServe what;
  std::map<std::int64_t, ServedVersion> serving;   // by version
  std::map<std::int64_t, std::string> identities;  // of these
  std::map<std::int64_t, RefusedVersion> refused;
  std::optional<std::int64_t> loading;
  std::optional<std::int64_t> newest;  // that answers requests which name no version
  std::deque<Element> remembered, remembered_queries;
  std::shared_ptr<ReadCounters> reads = std::make_shared<ReadCounters>();
  std::string trouble;  // in looking at its path, as it was logged last
};

struct ModelDirectory::State {
  explicit State(DirectoryOptions of)
      : options(of), memory(of.memory_limit > 0 ? MemoryBudget::make(of.memory_limit) : nullptr) {}

  const DirectoryModel& model(const std::string& name) const {
    const auto found = models.find(name);
    if (found != models.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [each, model] : models) names.push_back(each);
    const std::string nearest = nearest_name(name, names);
    std::string all;
    for (const std::string& each : names) all += str(all.empty() ? "" : ", ", each);
    throw NotFoundError(str(
        "there is no model \"", name, "\"",
        nearest.empty() ? str("; there are: ", all) : str("; did you mean \"", nearest, "\"?")));
  }

  bool follows(const DirectoryModel& of) const;
  // Whether there was something to load.
  bool look_at(DirectoryModel& of);
  bool try_version(DirectoryModel& of, VersionPlace place);
  void let_end(Duration patience);
  void load(DirectoryModel& of, const VersionPlace& place);
  // Whether a version has ended.
  bool give_back();
  void look();
  void keep_looking();

  const DirectoryOptions options;
  const std::shared_ptr<MemoryBudget> memory;
  std::mutex looking;        // one at a time looks and loads; taken before `mutex`
  mutable std::mutex mutex;  // guards all below
  std::condition_variable changed;
  std::map<std::string, DirectoryModel> models;
  // Versions that requests may still use. They are let go of here, since to give back gigabytes
  // takes longer than a request.
  std::vector<ServedVersion> retired;
  std::vector<std::function<void()>> asked;  // to be called after the next look
  std::atomic<bool> stopping{false};         // set under the mutex
  bool ended = false;                        // the thread
  std::thread thread;
};

}  // namespace cairn::serving
