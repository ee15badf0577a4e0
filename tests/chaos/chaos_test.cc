// Short forms of what tools/chaos runs for long.
#include <gtest/gtest.h>
#include <poll.h>

#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {
namespace {

class ChaosTest : public testing::Test {
 protected:
  void expect_good(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {std::string(CAIRN_PROGRAMS) + "/cairn-chaos", "--dir",
                                         folder_.path() + "/run"});
    ChildProcess chaos({.arguments = arguments, .output_file = folder_.path() + "/output"});
    pollfd wait{.fd = chaos.pidfd(), .events = POLLIN};
    EXPECT_EQ(::poll(&wait, 1, 240'000), 1);
    chaos.send(SIGKILL);
    EXPECT_EQ(chaos.wait().shell_code(), 0) << folder_.read("output");
  }
  TempFolder folder_;
};

TEST_F(ChaosTest, ClosuresCountOnceThroughCutsPartitionsAndKills) {
  expect_good({"--mode", "once", "--harm", "15"});
}
TEST_F(ChaosTest, ClosuresCountOnceAtDepthFour) {
  expect_good({"--mode", "once", "--harm", "15", "--depth", "4", "--seed", "2"});
}
TEST_F(ChaosTest, ClosuresCountOnceOnUnixSockets) {
  expect_good({"--mode", "once", "--harm", "15", "--transport", "unix"});
}
TEST_F(ChaosTest, ClosuresCountOnceThoughTheCoordinatorIsKilled) {
  expect_good({"--mode", "once", "--harm", "20", "--journal", "--depth", "4", "--seed", "3"});
}
// Fewer closures than elsewhere, as each round waits for the disk.
TEST_F(ChaosTest, ClosuresCountOnceInRoundsThoughTheCoordinatorIsKilled) {
  expect_good({"--mode", "once", "--harm", "20", "--journal", "--backups", "1", "--seed", "2",
               "--closures", "3000"});
}
TEST_F(ChaosTest, ClosuresCountOnceUnderHybridStrategyThoughTheCoordinatorIsKilled) {
  expect_good({"--mode", "once", "--harm", "20", "--journal", "--hybrid", "--seed", "2",
               "--closures", "3000"});
}
TEST_F(ChaosTest, NoUpdateIsLostThoughPsAreKilledStoppedAndCutOff) {
  expect_good({"--mode", "once", "--replicas", "2", "--harm", "12", "--workers", "2"});
}
TEST_F(ChaosTest, NoUpdateIsLostThoughPsAndTheCoordinatorAreKilled) {
  expect_good({"--mode", "once", "--replicas", "2", "--harm", "12", "--workers", "2", "--journal",
               "--depth", "4", "--seed", "2"});
}
TEST_F(ChaosTest, NoUpdateOfARoundIsLostThoughPsAreKilled) {
  expect_good({"--mode", "once", "--replicas", "2", "--harm", "10", "--workers", "2", "--backups",
               "1", "--closures", "3000", "--seed", "4"});
}
TEST_F(ChaosTest, CheckpointsAreWholeWhoeverIsKilled) {
  expect_good({"--mode", "saving", "--harm", "12"});
}

TEST_F(ChaosTest, CheckpointsAreWholeAtDepthFour) {
  expect_good({"--mode", "saving", "--harm", "12", "--depth", "4", "--seed", "2"});
}

TEST_F(ChaosTest, DeltasOfRowsThatDoNotFitIntoMemoryAreWhole) {
  expect_good({"--mode", "checkpoints", "--harm", "6", "--workers", "2", "--seed", "8"});
}

TEST_F(ChaosTest, CheckpointsAreWholeInRounds) {
  expect_good({"--mode", "saving", "--harm", "12", "--backups", "0", "--seed", "4"});
}
TEST_F(ChaosTest, CheckpointsAreWholeInRoundsWithABackupWorker) {
  expect_good({"--mode", "saving", "--harm", "12", "--backups", "1", "--seed", "5"});
}

TEST_F(ChaosTest, CheckpointsAreWholeUnderHybridStrategy) {
  expect_good({"--mode", "saving", "--harm", "12", "--hybrid", "--seed", "6"});
}
TEST_F(ChaosTest, ClosuresCountOnceUnderHybridStrategy) {
  expect_good({"--mode", "once", "--harm", "15", "--hybrid", "--closures", "3000", "--seed", "7"});
}

TEST_F(ChaosTest, CheckpointsAreWholeWhereverAPsDies) {
  expect_good({"--mode", "failpoints", "--workers", "1", "--places", "rows."});
}
TEST_F(ChaosTest, CheckpointsAreWholeWhereverTheCoordinatorDies) {
  expect_good({"--mode", "failpoints", "--workers", "1", "--places", "file."});
}
TEST_F(ChaosTest, CheckpointsAreWholeWhereverPruningEnds) {
  expect_good({"--mode", "failpoints", "--workers", "1", "--places", "prune."});
}
TEST_F(ChaosTest, CheckpointsAreWholeWhereverMakingAChainFullEnds) {
  expect_good({"--mode", "failpoints", "--workers", "1", "--places", "consolidate."});
}
TEST_F(ChaosTest, RowsAreWhatIsCountedWhereverTheCoordinatorsPowerGoes) {
  expect_good({"--mode", "failpoints", "--workers", "1", "--places", "journal."});
}

}  // namespace
}  // namespace cairn::tools
