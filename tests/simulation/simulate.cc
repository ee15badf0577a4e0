// Runs seeds, or one again: cairn-simulate [--mix everything] [--seeds 1000] [--first 1] | --seed N
// [--without 0,2 ...] [--closures N]

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

#include "core/base/log.h"
#include "core/base/program.h"
#include "tests/simulation/run.h"

namespace cairn::simulation {
namespace {

void tell(const Scenario& scenario, const Verdict& verdict) {
  std::cout << scenario.str() << "\n";
  for (const auto& complaint : verdict.complaints) std::cout << "  FAILED: " << complaint << "\n";
  std::cout << (verdict.good() ? "good" : "bad") << " after " << verdict.virtual_seconds
            << " virtual seconds: " << verdict.retried << " retried, " << verdict.losses
            << " losses, " << verdict.lost_updates << " updates lost, " << verdict.checkpoints
            << " checkpoints, staleness at most " << verdict.staleness_max << ", fingerprint "
            << std::hex << verdict.fingerprint << std::dec << std::endl;
}

struct Instead {  // of a scenario's own numbers; 0: its own
  std::int64_t closures = 0;
  std::uint32_t replicas = 0;

  Scenario scenario(std::uint64_t seed, Mix mix) const {
    Scenario scenario = make_scenario(seed, mix);
    if (closures > 0) scenario.closures = closures;
    if (replicas > 0) scenario.copies.replicas = replicas;
    // A ps that is lost lacks updates of theirs as well, and the judge counts closures.
    if (replicas == 1) scenario.late_variables = 0;
    return scenario;
  }
};

int again(Mix mix, std::uint64_t seed, const std::vector<std::size_t>& without,
          const Instead& instead) {
  Scenario scenario = instead.scenario(seed, mix);
  std::vector<Fault> kept;
  for (std::size_t i = 0; i < scenario.faults.size(); ++i)
    if (std::find(without.begin(), without.end(), i) == without.end())
      kept.push_back(scenario.faults[i]);
  scenario.faults = kept;
  Verdict verdict = run(scenario);
  tell(scenario, verdict);
  return verdict.good() ? 0 : 1;
}

int sweep(Mix mix, std::uint64_t first, std::uint64_t seeds, const Instead& instead,
          bool until_bad) {
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t bad = 0, retried = 0, lost = 0, checkpoints = 0, losses = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    Scenario scenario = instead.scenario(seed, mix);
    Verdict verdict = run(scenario);
    retried += verdict.retried;
    lost += verdict.lost_updates;
    checkpoints += verdict.checkpoints;
    losses += verdict.losses;
    if (verdict.good()) continue;
    ++bad;
    tell(scenario, verdict);
    if (bad <= 3 && mix == Mix::kEverything) {
      Scenario least =
          shrink(scenario, [](const Scenario& smaller) { return !run(smaller).good(); });
      std::cout << "the least that fails: " << least.str() << "\n  "
                << run(least).complaints.front() << std::endl;
    }
    if (until_bad) return 1;
  }
  std::cout << seeds - bad << " of " << seeds << " seeds are good; " << losses << " losses, "
            << retried << " closures ran again, " << lost << " updates lost, " << checkpoints
            << " checkpoints; "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()
            << " s" << std::endl;
  return bad == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  std::uint64_t seed = 0, first = 1, seeds = 200;
  Instead instead;
  std::vector<std::size_t> without;
  bool verbose = false, until_bad = false;
  Mix mix = Mix::kEverything;
  const std::map<std::string, Mix> mixes{
      {"everything", Mix::kEverything},    {"exactly-once", Mix::kExactlyOnce},
      {"flights", Mix::kFlights},          {"slices", Mix::kSlices},
      {"bounded", Mix::kBounded},          {"groups", Mix::kGroups},
      {"synchronous", Mix::kSynchronous},  {"hybrid", Mix::kHybrid},
      {"data-service", Mix::kDataService}, {"flapping", Mix::kFlapping},
      {"turnover", Mix::kTurnover},        {"followed", Mix::kFollowed},
      {"successor", Mix::kSuccessor},      {"replicated", Mix::kReplicated}};
  CLI::App app(
      "Runs whole clusters in one thread on a simulated network, disk and clock, with faults from "
      "a seed",
      "cairn-simulate");
  auto* one = app.add_option("--seed", seed, "Run this seed again, and tell its story");
  app.add_option("--mix", mix, "What is simulated")
      ->transform(CLI::CheckedTransformer(mixes))
      ->option_text(
          "everything|exactly-once|flights|slices|bounded|groups|synchronous|hybrid|"
          "data-service|flapping|turnover|followed|successor|replicated");
  app.add_option("--without", without, "Leave out these faults of it, by number")
      ->delimiter(',')
      ->needs(one);
  app.add_option("--closures", instead.closures, "Run so many closures instead of its own number")
      ->needs(one);
  app.add_option("--replicas", instead.replicas,
                 "Keep so many copies of each shard instead of its own number");
  app.add_flag("--log", verbose, "Show the cluster's own log");
  app.add_option("--first", first, "The first of several seeds")->excludes(one);
  app.add_option("--seeds", seeds, "How many")->excludes(one);
  app.add_flag("--until-bad", until_bad, "End with the first that fails")->excludes(one);
  CLI11_PARSE(app, argc, argv);
  set_log_level(verbose ? LogLevel::kInfo : LogLevel::kOff);
  return one->count() > 0 ? again(mix, seed, without, instead)
                          : sweep(mix, first, seeds, instead, until_bad);
}

}  // namespace
}  // namespace cairn::simulation

int main(int argc, char** argv) {
  return cairn::run_program("cairn-simulate", [&] { return cairn::simulation::main(argc, argv); });
}
