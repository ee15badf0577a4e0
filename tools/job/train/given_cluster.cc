#include "tools/job/train/given_cluster.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/json.h"
#include "core/base/log.h"
#include "core/disk/disk.h"
#include "tools/launch/run_folder.h"

namespace cairn::tools {
namespace {

// cluster.json is read by commands that run in other working folders.
std::string absolute_path(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

std::string environment_text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

// Missing options come from the environment that `cairn up` sets for its program, so that the same
// program runs under both.
GivenClusterRun::GivenClusterRun(const std::string& dir, GivenCluster cluster)
    : dir_(dir.empty() ? environment_text("CAIRN_RUN_DIR") : dir), cluster_(std::move(cluster)) {
  described_ = dir_.empty() || dir_ != environment_text("CAIRN_RUN_DIR");
  if (dir_.empty()) dir_ = new_run_folder();
  dir_ = absolute_path(dir_);
  if (cluster_.cluster_id.empty()) cluster_.cluster_id = environment_text("CAIRN_CLUSTER_ID");
  if (cluster_.cluster_id.empty()) cluster_.cluster_id = "cairn";
  if (cluster_.token_file.empty()) cluster_.token_file = environment_text("CAIRN_TOKEN_FILE");
  cluster_.token_file = absolute_path(cluster_.token_file);
  system_disk().make_folder(dir_);
  describe(true);
}

GivenClusterRun::~GivenClusterRun() {
  try {
    describe(false);
  } catch (const Error& error) {
    log_warning("the run's folder still says that the run goes on: ", error.what());
  }
}

// The same file as a LocalCluster's, without process numbers and logs: those are on other machines.
// Replaced as a whole, so a reader never sees half of it.
void GivenClusterRun::describe(bool running) const {
  if (!described_) return;
  Json tasks = Json::array();
  for (const char* role : {"chief", "ps", "worker"}) {
    for (const auto& [index, address] : cluster_.tasks.tasks(role))
      tasks.push_back({{"role", role}, {"index", index}, {"address", address}});
  }
  const Json description{{"format", 1},
                         {"cluster_id", cluster_.cluster_id},
                         {"token_file", cluster_.token_file},
                         {"coordinator_pid", ::getpid()},
                         {"running", running},
                         {"written", time_stamp("%Y-%m-%dT%H:%M:%SZ")},
                         {"tasks", std::move(tasks)}};
  system_disk().write_atomically(dir_ + "/cluster.json", json_text(description, 2) + "\n");
}

}  // namespace cairn::tools
