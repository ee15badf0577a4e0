// cairn-storm-chief: a program that goes on until it is asked to stop, for cairn-storm to attack: a
// coordinator that listens at the given address, with a ps and a worker of its own, whose addresses
// are not given to others.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "coordinator/cluster/engine_options.h"
#include "core/base/program.h"
#include "core/graph/ops.h"
#include "strategy/servers/cluster_coordinator.h"
#include "tools/launch/child_process.h"
#include "tools/launch/reserved_port.h"

namespace cairn::fuzz {
namespace {

struct Options {
  std::string listen, cluster, token, folder;
};

struct Task {
  Task(const Options& options, const std::string& program, const std::string& threads)
      : process(
            {.arguments = {std::filesystem::read_symlink("/proc/self/exe").parent_path() / program,
                           "--listen", port.address(), "--cluster-id", options.cluster, "--token",
                           options.token, threads, "1", "--log-file",
                           options.folder + "/chiefs-" + program + ".log"},
             .output_file = options.folder + "/chiefs-" + program + ".output"}) {}
  tools::ReservedPort port;
  tools::ChildProcess process;
};

void work_until_asked_to_stop(const Options& options) {
  Task ps(options, "cairn-ps", "--shards"), worker(options, "cairn-worker", "--lanes");
  ClusterSpec cluster;
  cluster.add_task("chief", options.listen);
  cluster.add_task("ps", ps.port.address());
  cluster.add_task("worker", worker.port.address());
  EngineOptions engine;
  engine.cluster_id = options.cluster;
  engine.token = options.token;
  ParameterServerStrategy strategy(SimpleClusterResolver(cluster), {.engine = engine});
  ClusterCoordinator coordinator(strategy);
  Variable v = strategy.create_variable({.name = "v", .shape = {}});
  Function add = strategy.function([&](Array by) { v.assign_add(by); });
  coordinator.save_automatically(
      {.folder = options.folder + "/chiefs-checkpoints", .keep_last = 2});
  while (!coordinator.stop_requested()) {
    coordinator.schedule(add, {Tensor::scalar(1.0f)});
    coordinator.join();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // others are to have the processor
  }
}

int main(int argc, char** argv) {
  Options options;
  CLI::App app("A program that waits to be asked to stop", "cairn-storm-chief");
  app.add_option("--listen", options.listen, "Where its coordinator answers")->required();
  app.add_option("--cluster-id", options.cluster, "The cluster's")->required();
  app.add_option("--token", options.token, "The cluster's")->required();
  app.add_option("--folder", options.folder, "For logs and checkpoints")->required();
  CLI11_PARSE(app, argc, argv);
  work_until_asked_to_stop(options);
  return 0;
}

}  // namespace
}  // namespace cairn::fuzz

int main(int argc, char** argv) {
  return cairn::run_program("cairn-storm-chief", [&] { return cairn::fuzz::main(argc, argv); });
}
