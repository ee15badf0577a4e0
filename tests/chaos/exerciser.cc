// A user's program for tests: closures that count, so that whatever is lost or done twice shows.
//
//   cairn-exerciser --closures N [--flights] [--depth D] [--bound K | --backups B | --hybrid]
//                   [--replicas R] [--finish-when FILE]
//     runs them all; ends with 0 if every count is exact
//   cairn-exerciser --checkpoints FOLDER --finish-when FILE
//     goes on from the newest checkpoint, and saves all the time; once the file is there, ends with
//     0 if every count is exact, less what is reported lost
//     [--full-every N]    of N checkpoints one is a full one, the others are deltas
//     [--hashed-dim D]    elements of a hashed row; many of them do not fit into a ps's memory
//     [--expected FILE]   appends "CHECKPOINT ACKNOWLEDGED" once a checkpoint is there: what a run
//                         that goes on must find
//   cairn-exerciser --recovery FOLDER
//     runs, and says when it goes on after a loss
//   --journal FOLDER
//     goes on where the exerciser stood that had this folder before
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>

#include "coordinator/dispatch/hybrid_consistency.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_host.h"
#include "core/base/program.h"
#include "core/disk/disk.h"
#include "core/graph/ops.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"
#include "strategy/servers/cluster_coordinator.h"
#include "strategy/servers/hybrid_strategy.h"
#include "tests/simulation/cut.h"
#include "tests/simulation/life.h"
#include "tests/simulation/program.h"

namespace cairn::chaos {
namespace {

using simulation::Program;
using simulation::Scenario;
using simulation::Values;

// closures that are scheduled and not done, while checkpoints are made
constexpr std::int64_t kAhead = 256;

void check(bool good, const std::string& what) {
  if (!good) throw DataLossError(what);
}

std::string text(const Values& values) {
  return str("v = ", values.v, ", w = ", values.w, ", rows = ", simulation::total(values.rows),
             ", hashed = ", simulation::total(values.hashed));
}

std::shared_ptr<const Layout> layout_of(Program& program) {
  return program.coordinator.strategy().host().engine().registry().layout();
}

// All `until` closures have ended: was each counted once?
void judge(Program& program, const Scenario& scenario, const simulation::Base& base,
           std::int64_t until) {
  const simulation::Due due = simulation::due(scenario, {{0, static_cast<std::uint64_t>(until)}});
  const Values values = simulation::values_of(program, due);
  const EngineStats stats = program.coordinator.stats();
  std::printf(
      "%s of %lld closures, %lld of them restored; %llu ran again, %zu losses, %llu updates lost\n",
      text(values).c_str(), static_cast<long long>(until), static_cast<long long>(base.step),
      static_cast<unsigned long long>(program.coordinator.counts().retried), stats.losses.size(),
      static_cast<unsigned long long>(stats.lost_updates));
  std::fflush(stdout);
  const auto lost = simulation::losses_by_ps(stats, scenario.ps);
  for (const auto& complaint :
       simulation::judge_life(scenario, base, due, until, values, *layout_of(program), lost))
    check(false, complaint);
}

// How many closures of earlier lives have counted. In rounds a step is several of them.
std::int64_t counted_before(const Program& program, const Scenario& scenario,
                            const ResumedRun& resumed) {
  if (!scenario.consistency.in_rounds()) return resumed.global_step;
  const Values values = simulation::values_of(program, simulation::due(scenario, {}));
  return std::max(values.v, values.w);
}

// Schedules closures, some ahead, until the file is there, and at least those of the scenario.
// Returns how many there are in all, with the `before` of earlier lives.
std::int64_t schedule_until(Program& program, const Scenario& scenario,
                            const std::string& finish_when, std::int64_t before) {
  std::int64_t scheduled = before;
  for (std::deque<RemoteValue> ahead;
       scheduled < scenario.closures || !std::filesystem::exists(finish_when);) {
    ahead.push_back(program.coordinator.schedule(program.add, {program.data}));
    ++scheduled;
    if (std::ssize(ahead) < kAhead) continue;
    ahead.front().get_all();
    ahead.pop_front();
  }
  return scheduled;
}

// `finish_when`: empty, or not before this file is there.
void run_all(Program& program, const Scenario& scenario, const std::string& finish_when) {
  const auto resumed = program.coordinator.resumed();
  if (resumed)
    std::printf("going on at step %lld, %zu closures were open, %zu not in the journal\n",
                static_cast<long long>(resumed->global_step), resumed->open, resumed->unrecorded);
  const std::int64_t before = resumed ? counted_before(program, scenario, *resumed) : 0;
  std::int64_t closures = scenario.closures;
  if (finish_when.empty())
    simulation::schedule(program, scenario, before, scenario.closures);
  else
    closures = schedule_until(program, scenario, finish_when, before);
  try {
    program.coordinator.join();
  } catch (const OutOfRangeError&) {  // flights end with the data
    if (scenario.job != simulation::Job::kFlights) throw;
  }
  judge(program, scenario, simulation::fresh_base(scenario), closures);
  // Never two replicas of a shard are lost at once in such a run.
  const std::uint64_t lost = program.coordinator.stats().lost_updates;
  const std::uint32_t replicas =
      program.coordinator.strategy().host().engine().options().recovery.replicas;
  check(replicas == 1 || lost == 0,
        str(lost, " updates are lost, though each row lies on ", replicas, " ps"));
}

// Updates that were acknowledged before the checkpoint was begun must be in it, except those that
// its manifest lists as lost with a ps.
simulation::Base resume(Program& program, const Scenario& scenario, const std::string& folder) {
  auto newest = storage::CheckpointFolder(system_disk(), folder).latest();
  if (!newest) return simulation::fresh_base(scenario);
  const auto manifest = storage::read_manifest(system_disk(), newest->path);
  program.coordinator.restore(newest->path);
  const Values values = simulation::values_of(program, simulation::due(scenario, {}));
  const std::int64_t acknowledged = std::stoll(manifest.metadata);
  const std::int64_t step = simulation::elements_committed(manifest);
  std::printf("restored %s: %lld closures, %s, %llu lost, %lld were acknowledged\n",
              newest->path.c_str(), static_cast<long long>(step), text(values).c_str(),
              static_cast<unsigned long long>(manifest.lost_updates),
              static_cast<long long>(acknowledged));
  std::set<int> any;
  for (int i = 0; i < scenario.ps; ++i) any.insert(i);
  for (const auto& complaint :
       simulation::judge_cut(scenario, manifest, values, *layout_of(program), any).complaints)
    check(false, "the checkpoint is no cut: " + complaint);
  check(step >= acknowledged,
        "what was acknowledged before the checkpoint was begun is missing in it");
  return {values, simulation::committed_at(manifest, scenario), step};
}

// `expected`: the file in which each checkpoint is noted that is there; empty: none.
void run_and_save(Program& program, const Scenario& scenario, const CheckpointPolicy& policy,
                  const std::string& finish_when, const std::string& expected) {
  const simulation::Base base = resume(program, scenario, policy.folder);
  const std::int64_t before = base.step;
  std::int64_t scheduled = before, last = scenario.closures;
  // reading values is closures as well
  const std::uint64_t reads = program.coordinator.counts().finished;
  auto finished = [&] {
    return before + static_cast<std::int64_t>(program.coordinator.counts().finished - reads);
  };
  while (finished() < last) {
    // Never without some closures of this life: those of a checkpoint need not be the first ones,
    // as one may have been left behind on a worker that stands still, for which later ones make up.
    if (!finish_when.empty() && std::filesystem::exists(finish_when))
      last = std::min(last, std::max(scheduled, before + kAhead));
    for (; scheduled < std::min(last, finished() + kAhead); ++scheduled)
      program.coordinator.schedule(program.add, {program.data});
    // To ask is to wait: in rounds the last closures may be too few for a round.
    if (scheduled >= last) program.coordinator.done();
    const std::int64_t acknowledged = finished();
    const std::string saved = program.coordinator.save(policy, std::to_string(acknowledged));
    if (!expected.empty())
      std::ofstream(expected, std::ios::app) << std::filesystem::path(saved).filename().string() +
                                                    " " + std::to_string(acknowledged) + "\n";
    std::printf("acknowledged %lld, saved %s\n", static_cast<long long>(acknowledged),
                saved.c_str());
    std::fflush(stdout);
  }
  program.coordinator.join();
  judge(program, scenario, base, last);
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void report(const char* event, const std::string& more = "") {
  std::printf("{\"event\": \"%s\", \"at\": %.6f%s}\n", event, now(), more.c_str());
  std::fflush(stdout);
}

// Keeps closures running, and says when a task that was lost has its first push again.
void run_and_report(Program& program, const std::string& folder) {
  const auto newest = storage::CheckpointFolder(system_disk(), folder).latest();
  if (program.coordinator.resumed()) {  // all is there
  } else if (newest) {
    program.coordinator.restore(newest->path);
  } else {
    Function fill = program.coordinator.strategy().function(
        [&program] { program.rows.assign(program.rows.read() + Array(1.0f)); });
    program.coordinator.schedule(fill).get_all();
    program.coordinator.save({.folder = folder});
  }
  program.coordinator.schedule(program.add, {program.data}).get_all();
  report("pushed");
  for (std::size_t told = 0;;) {
    while (program.coordinator.counts().queued + program.coordinator.counts().inflight < 64)
      program.coordinator.schedule(program.add, {program.data});
    const EngineStats stats = program.coordinator.stats();
    if (told < stats.losses.size() && stats.losses[told].first_push_after_seconds >= 0) {
      const LossReport& loss = stats.losses[told++];
      report("recovered",
             str(", \"task\": \"", loss.task, "\", \"noticed\": ",
                 std::to_string(now() - stats.uptime_seconds + loss.at_seconds),
                 ", \"back_after\": ", std::to_string(loss.back_after_seconds),
                 ", \"first_push_after\": ", std::to_string(loss.first_push_after_seconds)));
    }
  }
}

std::unique_ptr<ParameterServerStrategy> make_strategy(ParameterServerOptions options,
                                                       const Consistency& consistency) {
  const TFConfigClusterResolver resolver;
  if (HybridConsistency::is(consistency))
    return std::make_unique<HybridStrategy>(resolver, std::move(options));
  options.consistency = consistency;
  return std::make_unique<ParameterServerStrategy>(resolver, std::move(options));
}

int main(int argc, char** argv) {
  Scenario scenario;
  scenario.rows = 1000;
  scenario.closures = std::int64_t{1} << 40;
  scenario.spread = simulation::Spread::kEveryShard;
  scenario.ps = 2;
  std::string recovery, finish_when, expected, journal;
  CheckpointPolicy policy{.keep_last = 3};
  bool flights = false, hybrid = false, power = false;
  std::optional<std::uint32_t> bound, backups;
  std::uint32_t replicas = 1;
  std::int64_t megabytes = 100;
  CLI::App app("Closures that count, for tests", "cairn-exerciser");
  app.add_option("--closures", scenario.closures);
  app.add_flag("--flights", flights);
  app.add_option("--depth", scenario.sending.depth,
                 "Deeper than 1: closures update by a rule, so that they overlap");
  app.add_option("--bound", bound, "Under bounded(k)");
  app.add_option("--backups", backups, "Under synchronous(b); updates by a rule");
  app.add_flag("--hybrid", hybrid, "Under HybridStrategy; updates by a rule");
  app.add_option("--ps", scenario.ps, "How many there are in the cluster");
  app.add_option("--checkpoints", policy.folder);
  app.add_option("--consolidate-after", policy.consolidate_after,
                 "With --checkpoints: deltas, which become full ones after so many");
  app.add_option("--finish-when", finish_when,
                 "Ends once this file is there; without --checkpoints not before --closures");
  app.add_option("--full-every", policy.full_every);
  app.add_option("--hashed-dim", scenario.hashed.dim);
  app.add_option("--expected", expected);
  app.add_option("--journal", journal, "Goes on where the one before stood that had this folder");
  app.add_flag("--power", power, "Its machine may lose the power: elements may count twice");
  app.add_option("--replicas", replicas, "Each row lies on so many ps; no update may be lost");
  app.add_option("--recovery", recovery, "Checkpoints here; runs until it is killed");
  app.add_option("--megabytes", megabytes, "With --recovery: of the model");
  CLI11_PARSE(app, argc, argv);
  if (power) scenario.faults.push_back({.kind = simulation::Fault::Kind::kPowerLoss});
  if (bound) scenario.consistency = Consistency::bounded(*bound);
  if (backups) scenario.consistency = Consistency::synchronous(*backups);
  if (hybrid) scenario.consistency = HybridConsistency::make();
  if (scenario.sending.depth > 1 || scenario.consistency.in_rounds())
    scenario.updates = simulation::Updates::kByRule;
  if (!recovery.empty()) scenario.rows = megabytes << 18;  // of one float
  if (policy.consolidate_after > 0) policy.full_every = policy.consolidate_after + 100;
  if (flights) {
    scenario.job = simulation::Job::kFlights;
    scenario.spread = simulation::Spread::kOneRow;
    scenario.rows = simulation::kFlightRows;
    scenario.closures = simulation::kFlightClosures;
  }
  ParameterServerOptions options{.partitioner = FixedShardsPartitioner(scenario.ps),
                                 .placement = Placement::kRoundRobin};
  options.engine.pipeline_depth = scenario.sending.depth;
  options.engine.journal.folder = journal;
  options.replicas = replicas;
  options.engine.variables.check_replicas = hybrid;
  report("begun");
  const auto strategy = make_strategy(std::move(options), scenario.consistency);
  Program program(*strategy, scenario);
  std::puts("running");
  std::fflush(stdout);
  report("connected");
  if (!recovery.empty())
    run_and_report(program, recovery);
  else if (policy.folder.empty())
    run_all(program, scenario, finish_when);
  else
    run_and_save(program, scenario, policy, finish_when, expected);
  return 0;
}

}  // namespace
}  // namespace cairn::chaos

int main(int argc, char** argv) {
  return cairn::run_program("cairn-exerciser", [&] { return cairn::chaos::main(argc, argv); });
}
