#include "tests/chaos/options.h"

#include <initializer_list>

namespace cairn::chaos {

void add_flags(CLI::App& app, Options& options) {
  ClusterOptions& cluster = options.cluster;
  app.add_option("--mode", options.mode)
      ->check(
          CLI::IsMember({"once", "flights", "saving", "checkpoints", "recovery", "failpoints"}));
  app.add_option("--dir", cluster.folder, "Logs and checkpoints; must not exist")
      ->required()
      ->check(CLI::NonexistentPath);
  app.add_option("--transport", cluster.transport, "unix: without links, so nothing is cut")
      ->check(CLI::IsMember({"tcp", "unix"}));
  app.add_option("--seed", options.seed);
  app.add_option("--harm", options.harm, "How often; with recovery: to each role");
  app.add_option("--places", options.places, "With failpoints: those whose names begin so");
  app.add_option("--depth", options.depth);
  app.add_option("--bound", options.bound, "k of bounded(k)");
  app.add_option("--backups", options.backups, "b of synchronous(b)");
  app.add_flag("--hybrid", options.hybrid, "Under HybridStrategy");
  app.add_flag("--journal", options.journal,
               "The coordinator has a journal; it is killed too, and goes on");
  app.add_option("--replicas", options.replicas,
                 "Each row lies on so many ps; ps are killed, stopped and cut off too, one at a "
                 "time, and no update may be lost");
  app.add_option("--megabytes", options.megabytes, "With recovery: of the model, all ps together")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--ps", cluster.ps);
  app.add_option("--workers", cluster.workers);
  app.add_option("--closures", options.closures);
}

void settle(Options& options) {
  ClusterOptions& cluster = options.cluster;
  cluster.exerciser = {"--depth", std::to_string(options.depth), "--ps",
                       std::to_string(cluster.ps)};
  const auto add = [&](std::initializer_list<std::string> more) {
    cluster.exerciser.insert(cluster.exerciser.end(), more);
  };
  if (!options.bound.empty()) add({"--bound", options.bound});
  if (!options.backups.empty()) add({"--backups", options.backups});
  if (options.hybrid) add({"--hybrid"});
  if (options.journal) add({"--journal", cluster.folder + "/journal"});
  if (options.replicas != 1) add({"--replicas", std::to_string(options.replicas)});
  if (options.mode == "once") add({"--closures", std::to_string(options.closures)});
  if (options.mode == "once" && options.replicas > 1)
    add({"--finish-when", finish_of(options)});  // a ps is struck every few seconds
  if (options.mode == "flights") add({"--flights"});
  if (options.mode == "saving")
    add({"--checkpoints", checkpoints_of(options), "--finish-when", finish_of(options)});
  if (options.mode == "checkpoints") {
    // 4,000 rows of 4 KB for each ps, of whose memory 8 MB are for rows.
    add({"--checkpoints", checkpoints_of(options), "--finish-when", finish_of(options),
         "--expected", expected_of(options), "--full-every", "4", "--hashed-dim", "1024"});
    cluster.ps_arguments = {"--memory-limit", "112 MB", "--row-log", cluster.folder + "/row-log"};
  }
  if (options.mode == "recovery")
    add({"--recovery", checkpoints_of(options), "--megabytes", std::to_string(options.megabytes)});
}

std::string checkpoints_of(const Options& options) {
  return options.cluster.folder + "/checkpoints";
}
std::string finish_of(const Options& options) { return options.cluster.folder + "/finish"; }
std::string expected_of(const Options& options) { return options.cluster.folder + "/expected"; }

}  // namespace cairn::chaos
