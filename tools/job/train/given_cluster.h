// The run folder of a coordinator whose cluster was started elsewhere, by an orchestrator say.
#pragma once
#include <string>

#include "coordinator/cluster/cluster_spec.h"

namespace cairn::tools {

// A cluster that is already running: its tasks' addresses, and how to be admitted.
struct GivenCluster {
  ClusterSpec tasks;
  std::string cluster_id, token_file;  // token_file empty: none, or in the environment
};

// While this lives, `cairn status` finds the cluster by the folder's cluster.json; afterwards the
// file says that the run has ended. Below `cairn up`, which has written one, the folder is that
// run's and nothing is written.
//   Errors  the disk's.
class GivenClusterRun {
 public:
  // `dir` empty: the folder in CAIRN_RUN_DIR, or else a new one below ./runs.
  GivenClusterRun(const std::string& dir, GivenCluster cluster);
  ~GivenClusterRun();
  GivenClusterRun(const GivenClusterRun&) = delete;
  const std::string& dir() const { return dir_; }

 private:
  // Writes cluster.json.
  void describe(bool running) const;
  std::string dir_;
  GivenCluster cluster_;
  bool described_ = true;  // whether cluster.json is ours to write
};

}  // namespace cairn::tools
