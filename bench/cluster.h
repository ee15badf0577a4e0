// The processes that a benchmark runs on, and the strategy and coordinator that use them.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "bench/measure.h"
#include "bench/options.h"
#include "strategy/servers/cluster_coordinator.h"
#include "tools/launch/local_cluster.h"

namespace cairn::bench {

// A folder of its own under the system's temporary one, gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct ClusterChoice {
  std::string transport = "auto";
  std::uint32_t depth = 2;
  std::shared_ptr<const Partitioner> partitioner = nullptr;
  std::string memory_limit = "none";  // of the ps
  bool hybrid = false;                // under HybridStrategy, where a worker has one lane
};

// Real cairn-ps and cairn-worker processes of this machine, connected to.
class Cluster {
 public:
  Cluster(const Options& options, const ClusterChoice& choice);
  ~Cluster();
  ParameterServerStrategy& strategy() { return *strategy_; }
  ClusterCoordinator& coordinator() { return *coordinator_; }
  NamedProcesses processes() const;  // ours among them, as "coordinator"
  std::string described() const;     // "1 ps + 1 worker, auto"

 private:
  TemporaryFolder folder_;
  std::string transport_;  // as described
  std::unique_ptr<tools::LocalCluster> servers_;
  std::unique_ptr<ParameterServerStrategy> strategy_;
  std::optional<ClusterCoordinator> coordinator_;
};

}  // namespace cairn::bench
