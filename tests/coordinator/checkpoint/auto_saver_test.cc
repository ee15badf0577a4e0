#include "coordinator/checkpoint/auto_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/cluster/simulated_session.h"

namespace cairn {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

// Saves whenever it is asked, one at a time, and is done when the test says so.
class FakeSaver final : public CheckpointSaver {
 public:
  explicit FakeSaver(Session& session) : session_(session) {}
  rpc::Task<std::string> save(CheckpointPolicy policy, std::string metadata) override {
    while (busy_) co_await session_.changed.wait();
    busy_ = true;
    const std::string name = str(policy.folder, "/", ++begun, metadata);
    if (slow) co_await finished_.wait();
    busy_ = false;
    session_.changed.notify_all();
    if (failing) throw ResourceExhaustedError("the disk is full");
    co_return name;
  }
  bool busy() const override { return busy_; }
  void finish() { finished_.notify_all(); }

  int begun = 0;
  bool slow = false, failing = false;

 private:
  Session& session_;
  rpc::Signal finished_;
  bool busy_ = false;
};

struct AutoSaves : ::testing::Test {
  SimulatedSession ground;
  ProgressBook progress;
  FakeSaver saver{ground.session};
  AutoSaver auto_saver{ground.session, progress, saver};
  ~AutoSaves() override { ground.session.tasks.cancel_all(); }

  // One update is committed, as the scheduler does it.
  void step() {
    progress.commit_steps(1);
    if (progress.save_due()) auto_saver.save_if_due();
    ground.run_ready();
  }
  void steps(int n) {
    for (int i = 0; i < n; ++i) step();
  }
  EngineStats stats() const { return ground.session.stats.read(); }
};

TEST_F(AutoSaves, AreNotMadeWithoutAPolicy) {
  EXPECT_THROW(auto_saver.save_now(), FailedPreconditionError);
  steps(100);
  EXPECT_EQ(saver.begun, 0);
}

TEST_F(AutoSaves, ComeEverySoManySteps) {
  auto_saver.begin({.folder = "/c", .every_steps = 5}, "");
  steps(4);
  EXPECT_EQ(saver.begun, 0);
  steps(1);
  EXPECT_EQ(saver.begun, 1);
  steps(5);
  EXPECT_EQ(saver.begun, 2);
}

TEST_F(AutoSaves, ForStepsWaitForOneThatIsUnderWayAndAreThenLate) {
  auto_saver.begin({.folder = "/c", .every_steps = 5}, "");
  saver.slow = true;
  steps(12);  // the first began at 5; at 10 it is still being saved
  EXPECT_EQ(saver.begun, 1);
  saver.slow = false;
  saver.finish();
  ground.run_ready();
  EXPECT_EQ(saver.begun, 1);
  steps(1);
  EXPECT_EQ(saver.begun, 2);
  steps(2);
  EXPECT_EQ(saver.begun, 3);  // at 15 all the same
}

TEST_F(AutoSaves, ComeEverySoManySeconds) {
  auto_saver.begin({.folder = "/c", .every_seconds = 10}, "");
  ground.run_for(seconds(9));
  EXPECT_EQ(saver.begun, 0);
  ground.run_for(seconds(2));
  EXPECT_EQ(saver.begun, 1);
  ground.run_for(seconds(10));
  EXPECT_EQ(saver.begun, 2);
}

TEST_F(AutoSaves, ForTimeArePutOffByOneForSteps) {
  auto_saver.begin({.folder = "/c", .every_steps = 5, .every_seconds = 10}, "");
  ground.run_for(seconds(8));
  steps(5);
  ASSERT_EQ(saver.begun, 1);
  ground.run_for(seconds(9));
  EXPECT_EQ(saver.begun, 1);
  ground.run_for(seconds(2));
  EXPECT_EQ(saver.begun, 2);
}

TEST_F(AutoSaves, ThatFailAreCountedAndTheNextIsMade) {
  auto_saver.begin({.folder = "/c", .every_steps = 1}, "");
  saver.failing = true;
  step();
  EXPECT_EQ(stats().checkpoints_failed, 1u);
  EXPECT_THAT(stats().checkpoint_error, ::testing::HasSubstr("the disk is full"));
  saver.failing = false;
  step();
  EXPECT_EQ(saver.begun, 2);
  EXPECT_EQ(stats().checkpoints_failed, 1u);
}

TEST_F(AutoSaves, ThoseWhoAskBeforeOneHasBegunShareIt) {
  auto_saver.begin({.folder = "/c"}, "");
  saver.slow = true;
  auto first = auto_saver.save_now();  // begins at once
  auto second = auto_saver.save_now(), third = auto_saver.save_now();
  saver.finish();
  ground.run_ready();
  saver.finish();
  EXPECT_EQ(ground.reactor.wait(kj::mv(first)), "/c/1");
  EXPECT_EQ(ground.reactor.wait(kj::mv(second)), "/c/2");
  EXPECT_EQ(ground.reactor.wait(kj::mv(third)), "/c/2");
}

TEST_F(AutoSaves, OneWhoseAskerIsGoneIsMadeAllTheSame) {
  auto_saver.begin({.folder = "/c"}, "");
  saver.slow = true;
  { auto given_up = auto_saver.save_now(); }
  saver.finish();
  ground.run_ready();
  EXPECT_EQ(saver.begun, 1);
  EXPECT_FALSE(saver.busy());
}

TEST_F(AutoSaves, ThatFailTellEverybodyWhoAsked) {
  auto_saver.begin({.folder = "/c"}, "");
  saver.failing = saver.slow = true;
  std::vector<kj::Promise<std::string>> asked;
  for (int i = 0; i < 3; ++i) asked.push_back(auto_saver.save_now());
  saver.finish();
  ground.run_ready();
  saver.finish();
  for (auto& one : asked) EXPECT_THROW(ground.reactor.wait(kj::mv(one)), ResourceExhaustedError);
  EXPECT_EQ(stats().checkpoints_failed, 0u);  // their matter, not the run's
}

}  // namespace
}  // namespace cairn
