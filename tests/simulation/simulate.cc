// Runs seeds, or one again: cairn-simulate [--mix everything] [--seeds 1000] [--first 1] | --seed N
// [--without 0,2 ...] [--closures N]; with --matrix those of its cells

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <optional>
#include <sstream>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/program.h"
#include "tests/simulation/matrix_table.h"
#include "tests/simulation/run.h"

namespace cairn::simulation {
namespace {

void tell(const Scenario& scenario, const Verdict& verdict) {
  std::cout << scenario.str() << "\n";
  for (const auto& complaint : verdict.complaints) std::cout << "  FAILED: " << complaint << "\n";
  std::cout << (verdict.good() ? "good" : "bad") << " after " << verdict.virtual_seconds
            << " virtual seconds: " << verdict.retried << " retried, " << verdict.losses
            << " losses, " << verdict.lost_updates << " updates lost, " << verdict.checkpoints
            << " checkpoints, staleness at most " << verdict.staleness_max << ", " << verdict.unmet
            << " faults without their phase, fingerprint " << std::hex << verdict.fingerprint
            << std::dec << std::endl;
}

struct Instead {  // of a scenario's own numbers; 0: its own
  std::int64_t closures = 0;
  std::uint32_t replicas = 0;

  Scenario scenario(std::uint64_t seed, Mix mix) const { return of(make_scenario(seed, mix)); }
  Scenario of(Scenario scenario) const {
    if (closures > 0) scenario.closures = closures;
    if (replicas > 0) scenario.copies.replicas = replicas;
    // A ps that is lost lacks updates of theirs as well, and the judge counts closures.
    if (replicas == 1) scenario.late_variables = 0;
    return scenario;
  }
};

int again(Scenario scenario, const std::vector<std::size_t>& without) {
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

struct MatrixOptions {
  bool on = false;
  MatrixRun run;
  std::string part;  // "1/2"

  Scenario scenario(std::uint64_t seed) const {
    const std::vector<Cell> cells = cells_named(run.cells);
    if (cells.size() != 1 || cells.front().name() != run.cells)
      throw InvalidArgumentError("a seed of the matrix is of one cell: --cell FAULT/PHASE/KIND");
    return cell_scenario(cells.front(), seed);
  }

  MatrixRun of(std::uint64_t first, std::optional<std::uint64_t> seeds) const {
    MatrixRun all = run;
    all.first = first;
    if (seeds) all.seeds = *seeds;
    if (part.empty()) return all;
    char slash = 0;
    std::istringstream text(part);
    if (!(text >> all.part >> slash >> all.parts) || slash != '/' || all.part < 1 ||
        all.part > all.parts)
      throw InvalidArgumentError(str("--part ", part, ": it is N/M, from 1/M to M/M"));
    return all;
  }

  void add(CLI::App& app) {
    auto* matrix = app.add_flag("--matrix", on, "Each fault in each phase, cell by cell");
    auto* cell = app.add_option("--cell", run.cells,
                                "Only these cells of the matrix: FAULT[/PHASE[/CONSISTENCY]]")
                     ->needs(matrix);
    auto* parted = app.add_option("--part", part, "Of M processes the N-th: every M-th cell. N/M")
                       ->needs(matrix);
    app.add_option("--write", run.page, "Write the table of all cells into this page")
        ->needs(matrix)
        ->excludes(cell)
        ->excludes(parted);
  }
};

int main(int argc, char** argv) {
  std::uint64_t seed = 0, first = 1, seeds = 200;
  Instead instead;
  MatrixOptions matrix;
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
  auto* many = app.add_option("--seeds", seeds, "How many")->excludes(one);
  app.add_flag("--until-bad", until_bad, "End with the first that fails")->excludes(one);
  matrix.add(app);
  CLI11_PARSE(app, argc, argv);
  set_log_level(verbose ? LogLevel::kInfo : LogLevel::kOff);
  if (one->count() > 0)
    return again(matrix.on ? instead.of(matrix.scenario(seed)) : instead.scenario(seed, mix),
                 without);
  if (!matrix.on) return sweep(mix, first, seeds, instead, until_bad);
  const auto wanted = many->count() > 0 ? std::optional(seeds) : std::nullopt;
  return run_matrix(matrix.of(first, wanted)) ? 0 : 1;
}

}  // namespace
}  // namespace cairn::simulation

int main(int argc, char** argv) {
  return cairn::run_program("cairn-simulate", [&] { return cairn::simulation::main(argc, argv); });
}
