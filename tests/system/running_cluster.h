// A cluster of real processes on this machine, and the program that trains on it: what the tests of
// this folder begin with.
#pragma once
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <utility>

#include "strategy/servers/cluster_coordinator.h"
#include "tools/launch/local_cluster.h"

namespace cairn::tools {

class RunningCluster {
 public:
  // Starts the servers and connects to them as their chief. Of `options` the cluster's name and its
  // token are filled in.
  explicit RunningCluster(LocalClusterOptions servers, ParameterServerOptions options = {})
      : servers_(in_programs(std::move(servers))),
        strategy_(TFConfigClusterResolver(started(servers_).tf_config("chief", 0)),
                  joining(servers_, std::move(options))),
        coordinator_(strategy_) {}
  ~RunningCluster() { servers_.stop(); }
  RunningCluster(const RunningCluster&) = delete;
  RunningCluster& operator=(const RunningCluster&) = delete;

  ParameterServerStrategy& strategy() { return strategy_; }
  ClusterCoordinator& coordinator() { return coordinator_; }
  // By SIGKILL: their supervisor starts them again.
  void kill_all_ps() {
    for (const RoleState& role : servers_.supervisor().roles()) {
      if (role.role != "ps") continue;
      ASSERT_EQ(::kill(role.pid, SIGKILL), 0);
    }
  }

 private:
  static LocalClusterOptions in_programs(LocalClusterOptions servers) {
    servers.programs = CAIRN_PROGRAMS;
    return servers;
  }
  static LocalCluster& started(LocalCluster& servers) {
    servers.start();
    return servers;
  }
  static ParameterServerOptions joining(const LocalCluster& servers,
                                        ParameterServerOptions options) {
    options.engine.cluster_id = servers.cluster_id();
    options.engine.token = servers.token();
    return options;
  }

  LocalCluster servers_;
  ParameterServerStrategy strategy_;
  ClusterCoordinator coordinator_;
};

}  // namespace cairn::tools
