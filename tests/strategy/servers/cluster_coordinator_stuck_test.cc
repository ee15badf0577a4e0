// A closure that makes no progress is reported: which, where, and the cause of its wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/engine/stuck_watch.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "testing/simulated_cluster.h"

namespace cairn {
namespace {
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Stage = ClosureProgress::Stage;

// The log's lines that tell of something stuck.
class Lines {
 public:
  Lines() {
    log_to([this](LogLevel, const std::string& line) {
      if (line.find("no progress") != std::string::npos) all_.push_back(line);
    });
  }
  ~Lines() { log_to(LogSink()); }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
};

class Stuck : public ::testing::Test {
 protected:
  Json stuck() const { return parse_json(coordinator_.status_json(), "the status").at("stuck"); }
  void add_one() { coordinator_.schedule(add_); }

  Lines lines_;
  SimulatedCluster cluster_{{.ps = 2, .workers = 1}};
  Counters counters_{cluster_.strategy()};
  ClusterCoordinator coordinator_{cluster_.strategy()};
  Function add_ = cluster_.strategy().function(
      [this] {
        counters_.add_one(Array(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{0})));
      },
      "train");
};

TEST_F(Stuck, AClosureThatWaitsForAPsIsNamedWithThePsAndTheLane) {
  add_one();
  coordinator_.join(kPatience);
  cluster_.network().partition("ps1", "worker0");  // it answers the coordinator, and not the worker
  add_one();
  cluster_.run_for(seconds(40));
  EXPECT_THAT(lines_.all(), IsEmpty());
  cluster_.run_for(seconds(40));
  ASSERT_EQ(lines_.all().size(), 1u);
  EXPECT_THAT(lines_.all()[0],
              AllOf(HasSubstr("(train, step 1)"), HasSubstr("/job:worker/task:0 lane 0"),
                    HasSubstr("/job:ps/task:1 shard 0")));
  ASSERT_EQ(stuck().size(), 1u);
  EXPECT_EQ(stuck()[0]["function"], "train");
  EXPECT_EQ(stuck()[0]["worker"], "/job:worker/task:0");
  EXPECT_EQ(stuck()[0]["lane"], 0);
  EXPECT_THAT(stuck()[0]["waits_for"].get<std::string>(), HasSubstr("/job:ps/task:1 shard 0"));
  cluster_.run_for(seconds(45));
  EXPECT_EQ(lines_.all().size(), 2u);  // once more when the time has doubled, and not each second
  cluster_.network().heal_all();
  coordinator_.join(kPatience);
  cluster_.run_for(seconds(3));
  EXPECT_THAT(stuck(), IsEmpty());
}

TEST_F(Stuck, AClosureInTheQueueNamesWhoIsAway) {
  add_one();
  coordinator_.join(kPatience);
  cluster_.kill_ps(1);
  cluster_.run_for(seconds(2));
  add_one();
  cluster_.run_for(seconds(70));
  ASSERT_EQ(stuck().size(), 1u);
  EXPECT_FALSE(stuck()[0].contains("worker"));
  EXPECT_THAT(stuck()[0]["waits_for"].get<std::string>(),
              AllOf(HasSubstr("/job:ps/task:1"), HasSubstr("away")));
  EXPECT_THAT(lines_.all(), ElementsAre(HasSubstr("queued, waiting for /job:ps/task:1")));
}

ClosureProgress pulling(std::uint64_t sequence, Duration since, std::uint32_t attempts = 1) {
  ClosureProgress closure;
  closure.sequence = sequence;
  closure.function = "f";
  closure.attempts = attempts;
  closure.stage = Stage::kPulling;
  closure.since = since;
  return closure;
}

constexpr TimePoint at(int second) { return TimePoint(seconds(second)); }

TEST(StuckWatch, WhatGoesFromOneThingToTheNextIsNotStuck) {
  StuckWatch watch(seconds(60));
  for (int second = 0; second < 300; ++second)
    EXPECT_THAT(watch.look(at(second), {pulling(1, seconds(0))}), IsEmpty());
}

TEST(StuckWatch, RunningAgainIsNoProgress) {
  StuckWatch watch(seconds(60));
  std::vector<int> told;
  for (int second = 0; second < 130; ++second) {
    // each pull fails after 30 s
    const auto attempts = static_cast<std::uint32_t>(1 + second / 30);
    for (const StuckClosure& one :
         watch.look(at(second), {pulling(1, seconds(second % 30), attempts)}))
      if (one.to_tell) told.push_back(second);
  }
  EXPECT_THAT(told, ElementsAre(60, 120));
}

TEST(StuckWatch, ATimeThatTheWorkerTellsCounts) {
  StuckWatch watch(seconds(60));
  const auto stuck = watch.look(at(100), {pulling(1, seconds(61))});
  ASSERT_EQ(stuck.size(), 1u);
  EXPECT_EQ(stuck[0].still, seconds(61));
}

}  // namespace
}  // namespace cairn
