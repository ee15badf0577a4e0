// Whole clusters under faults from seeds. A seed that fails here is run again by `tools/simulate
// --seed N`.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/log.h"
#include "tests/effort.h"
#include "tests/simulation/matrix_table.h"
#include "tests/simulation/run.h"

namespace cairn::simulation {
namespace {

class Seeds : public testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override { set_log_level(LogLevel::kOff); }
};

constexpr std::uint64_t kPerTest = 20;

TEST_P(Seeds, KeepEveryPromise) {
  for (std::uint64_t seed = GetParam(); seed < GetParam() + effort(kPerTest); ++seed) {
    Scenario scenario = make_scenario(seed);
    Verdict verdict = run(scenario);
    for (const auto& complaint : verdict.complaints)
      ADD_FAILURE() << complaint << "\n"
                    << scenario.str() << "\nagain: tools/simulate --seed " << seed;
  }
}
INSTANTIATE_TEST_SUITE_P(, Seeds, testing::Range<std::uint64_t>(1, 201, kPerTest));

void expect_good(Mix mix, const char* name, std::uint64_t seed) {
  set_log_level(LogLevel::kOff);
  const Scenario scenario = make_scenario(seed, mix);
  for (const auto& complaint : run(scenario).complaints)
    ADD_FAILURE() << complaint << "\n"
                  << scenario.str() << "\nagain: tools/simulate --mix " << name << " --seed "
                  << seed;
}

// 200 seeds of it: tools/simulate --mix exactly-once --seeds 200
TEST(Simulation, TenThousandClosuresCountOnceAtDepthOneAndFour) {
  for (std::uint64_t seed : {1, 2}) expect_good(Mix::kExactlyOnce, "exactly-once", seed);
}

// A dense variable's slices are applied one by one, and each once. 600 seeds of it: tools/simulate
// --mix slices --seeds 600
TEST(Simulation, SlicesOfALargeUpdateCountOnce) {
  for (std::uint64_t seed = 1; seed <= effort(40); ++seed)
    expect_good(Mix::kSlices, "slices", seed);
}

// 1,000 seeds of it: tools/simulate --mix bounded --seeds 1000
TEST(Simulation, NoUpdateIsStalerThanItsBoundWhateverIsLostOrSlow) {
  for (std::uint64_t seed = 1; seed <= effort(40); ++seed)
    expect_good(Mix::kBounded, "bounded", seed);
}

// 1,000 seeds of it: tools/simulate --mix synchronous --seeds 1000
TEST(Simulation, EachClosureIsAppliedWithOneRoundWhateverIsLostOrSlow) {
  for (std::uint64_t seed = 1; seed <= effort(40); ++seed)
    expect_good(Mix::kSynchronous, "synchronous", seed);
}

// 500 seeds of it: tools/simulate --mix data-service --seeds 500
TEST(Simulation, TheDataServiceHandsOutEveryElementWhateverIsLost) {
  for (std::uint64_t seed = 1; seed <= effort(20); ++seed)
    expect_good(Mix::kDataService, "data-service", seed);
}

// 1,000 seeds of it: tools/simulate --mix flapping --seeds 1000
TEST(Simulation, WhoComesAndGoesWithoutWorkIsAnErrorInBoundedTime) {
  for (std::uint64_t seed = 1; seed <= effort(20); ++seed)
    expect_good(Mix::kFlapping, "flapping", seed);
  // A closure's answer comes while the ps that it had pushed to is away: that was work, be it the
  // last thing before its patience ends (11307).
  for (std::uint64_t seed : {11'307, 881'125}) expect_good(Mix::kFlapping, "flapping", seed);
}

// 1,000 seeds of it: tools/simulate --mix turnover --seeds 1000
TEST(Simulation, ACheckpointOfRowsThatComeAndGoIsOfItsMoment) {
  for (std::uint64_t seed = 1; seed <= effort(60); ++seed)
    expect_good(Mix::kTurnover, "turnover", seed);
}

// 1,000 seeds of it: tools/simulate --mix followed --seeds 1000
TEST(Simulation, ASubscribersCopyIsEqualToTheRowsWhateverIsLostOrStopped) {
  for (std::uint64_t seed = 1; seed <= effort(60); ++seed)
    expect_good(Mix::kFollowed, "followed", seed);
}

// 1,000 seeds of it: tools/simulate --mix successor --seeds 1000
TEST(Simulation, ARunWithAJournalIsOneHoweverOftenItsCoordinatorDies) {
  for (std::uint64_t seed = 1; seed <= effort(60); ++seed)
    expect_good(Mix::kSuccessor, "successor", seed);
}

// 1,000 seeds of it: tools/simulate --mix replicated --seeds 1000
TEST(Simulation, NoUpdateIsLostWithAPsAndItsCopiesStayEqual) {
  for (std::uint64_t seed = 1; seed <= effort(40); ++seed)
    expect_good(Mix::kReplicated, "replicated", seed);
}

// 1,000 seeds of it: tools/simulate --mix hybrid --seeds 1000
TEST(Simulation, WhatIsMirroredStaysInStepWhateverIsLostOrSlow) {
  for (std::uint64_t seed = 1; seed <= effort(40); ++seed)
    expect_good(Mix::kHybrid, "hybrid", seed);
}

// In these seeds another coroutine took the lock on the tables after a restore had found it free,
// and before the restore took it.
TEST(Simulation, APsThatComesBackWhileACheckpointIsRestoredIsAttachedBeforeOrAfter) {
  expect_good(Mix::kEverything, "everything", 1'030'013'884);
  expect_good(Mix::kBounded, "bounded", 1'030'000'751);
}

// The bound has something to hold back: the same job without it is staler.
TEST(Simulation, WithoutABoundTheSameJobIsStaler) {
  set_log_level(LogLevel::kOff);
  Scenario scenario = make_scenario(3, Mix::kBounded);
  scenario.workers = 4;
  scenario.lanes = 1;
  scenario.faults = {{.kind = Fault::Kind::kSlow, .a = 20, .from = "worker3"}};
  scenario.faults.front().lasts = std::chrono::minutes(1);
  scenario.consistency = Consistency::bounded(2);
  const Verdict bounded = run(scenario);
  EXPECT_TRUE(bounded.good()) << bounded.complaints.front();
  EXPECT_LT(bounded.staleness_max, 8u);
  EXPECT_GT(bounded.staleness_max, 0u);
  scenario.consistency = {};
  EXPECT_GE(run(scenario).staleness_max, 8u);
}

// 1,000 seeds of it: tools/simulate --mix groups --seeds 1000
TEST(Simulation, WorkersInStepNameWhoIsLostAndGoOnFromTheirCheckpoint) {
  for (std::uint64_t seed = 1; seed <= effort(20); ++seed)
    expect_good(Mix::kGroups, "groups", seed);
  // A worker has all that it wants and leaves while another still reports a call to it.
  expect_good(Mix::kGroups, "groups", 950000462);
}

// 50 seeds of it: tools/simulate --mix flights --seeds 50
TEST(Simulation, EachFlightIsCommittedOnce) { expect_good(Mix::kFlights, "flights", 1); }

// One ps is killed and rebuilt while another one's mark is on its way: the cut begins anew.
TEST(Simulation, ACheckpointDoesNotCountOnTheMarkOfAProcessThatWasReplaced) {
  expect_good(Mix::kEverything, "everything", 7237);
}

// A closure goes from lane 2 to lane 1; then both are lost, and one ps still applies lane 1's push
// as the other refuses it.
TEST(Simulation, AnEarlierAttemptElsewhereDoesNotForbidALostWorkersLastPush) {
  expect_good(Mix::kEverything, "everything", 7646);
}

TEST(Simulation, ALateShareOfARoundTakesNothingFromItsNextOne) {
  expect_good(Mix::kSynchronous, "synchronous", 1'080'000'736);
}

// To be seen under AddressSanitizer.
TEST(Simulation, ACoordinatorThatIsKilledWhileACheckpointWaitsLeavesNothingToRun) {
  expect_good(Mix::kSlices, "slices", 1'090'000'000);
}

// The cells of one fault. 50 seeds of each: tools/simulate --matrix
class Matrix : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { set_log_level(LogLevel::kOff); }
};

TEST_P(Matrix, EveryCellKeepsItsPromiseAndFaultsMeetTheirPhases) {
  const std::vector<Cell> cells = cells_named(GetParam());
  std::uint64_t met = 0, judged = 0;
  for (std::size_t i = 0; i < cells.size(); i += cells.size() / effort(cells.size())) {
    const CellVerdict verdict = judge_cell(cells[i], 1, 1);
    met += verdict.met;
    ++judged;
    EXPECT_EQ(verdict.bad, 0u) << verdict.complaint << "\nagain: tools/simulate --matrix --cell "
                               << cells[i].name() << " --seed " << verdict.first_bad;
  }
  EXPECT_GE(10 * met, 9 * judged);
}
INSTANTIATE_TEST_SUITE_P(, Matrix, testing::ValuesIn(matrix_faults()), [](const auto& fault) {
  std::string name = fault.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

// A ps goes on after it was replaced: pushes that it has applied wait for a backup that refuses
// them, as it becomes a backup itself.
TEST(MatrixCells, APushThatNoBackupHasIsNotAnsweredAsItsShardBecomesABackup) {
  set_log_level(LogLevel::kOff);
  const Cell cell = cells_named("ps-stops/cut/asynchronous").front();
  EXPECT_EQ(judge_cell(cell, 11, 1).complaint, "");
}

TEST(MatrixCells, HaveNamesOfTheirOwnByWhichTheyAreFound) {
  std::set<std::string> names;
  for (const Cell& cell : matrix_cells()) {
    EXPECT_TRUE(names.insert(cell.name()).second) << cell.name();
    const std::vector<Cell> found = cells_named(cell.name());
    ASSERT_EQ(found.size(), 1u) << cell.name();
    EXPECT_EQ(found.front().name(), cell.name());
  }
  EXPECT_EQ(cells_named("ps-dies/push").size(), matrix_kinds().size());
  EXPECT_TRUE(cells_named("ps-d").empty());
}

TEST(MatrixCells, APageHasTheTableBetweenItsMarkers) {
  const std::string page = "a\n<!-- matrix: begin -->\nold\n<!-- matrix: end -->\nb\n";
  const Cell cell = cells_named("worker-dies/idle/bounded").front();

  const std::string written =
      with_table(page, markdown_of({{.cell = cell, .seeds = 9, .met = 8, .bad = 1}}));

  EXPECT_EQ(written.find("old"), std::string::npos);
  EXPECT_NE(written.find("| `worker-dies/idle` | no update | | 8 / 1 | | |"), std::string::npos)
      << written;
  EXPECT_TRUE(written.starts_with("a\n") && written.ends_with("b\n"));
  EXPECT_THROW(with_table("a\nb\n", "table"), FailedPreconditionError);
}

TEST(Simulation, ASeedReplaysIdentically) {
  set_log_level(LogLevel::kOff);
  for (std::uint64_t seed : {3, 17, 42})
    EXPECT_EQ(run(make_scenario(seed)).fingerprint, run(make_scenario(seed)).fingerprint) << seed;
}

TEST(Simulation, AFailingScenarioIsShrunkToWhatItTakes) {
  Scenario scenario = make_scenario(7);
  scenario.closures = 100;
  scenario.faults = {{.kind = Fault::Kind::kCut},
                     {.kind = Fault::Kind::kKillPs},
                     {.kind = Fault::Kind::kDropNext}};
  auto fails = [](const Scenario& smaller) {
    bool kills = false;
    for (const Fault& fault : smaller.faults) kills |= fault.kind == Fault::Kind::kKillPs;
    return kills && smaller.closures >= 30;
  };

  Scenario least = shrink(scenario, fails);

  EXPECT_EQ(least.closures, 30);
  ASSERT_EQ(least.faults.size(), 1u);
  EXPECT_EQ(least.faults[0].kind, Fault::Kind::kKillPs);
}

}  // namespace
}  // namespace cairn::simulation
