#include "worker/lane/lane.h"

#include <gmock/gmock.h>

#include "tests/worker/lane/lane_fixture.h"

namespace cairn::worker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::pair<std::string, Shape>> kOneTable{{"w", {10, 2}}};

TEST(Lane, AClosureReadsComputesAndWrites) {
  FakeCluster cluster(2, kOneTable);
  LaneHarness harness(cluster);
  harness.add_halving();
  const auto result = harness.run(7, 1, {ids_tensor({8, 1})});
  EXPECT_EQ(floats_of(result.outputs.at(0)), (std::vector<float>{8, 8.125f, 1, 1.125f}));
  EXPECT_TRUE(result.updated);
  EXPECT_EQ(cluster.row(0, 8), 4);
  EXPECT_EQ(cluster.row(0, 1), 0.5f);
  EXPECT_EQ(cluster.row(0, 2), 2);
}

TEST(Lane, EqualIdsAreReadOnceAndTheirGradientsSummed) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster);
  harness.add_halving();
  const auto result = harness.run(1, 1, {ids_tensor({4, 2, 4, 4})});
  EXPECT_EQ(floats_of(result.outputs.at(0)),
            (std::vector<float>{4, 4.125f, 2, 2.125f, 4, 4.125f, 4, 4.125f}));
  ASSERT_EQ(cluster.asked.size(), 2u);
  EXPECT_THAT(cluster.asked[0].ids, ElementsAre(2, 4));
  EXPECT_THAT(cluster.asked[1].ids, ElementsAre(2, 4));
  EXPECT_THAT(cluster.asked[1].values, ElementsAre(2, 2.125f, 12, 12.375f));
}

TEST(Lane, AtDepthOneEachClosureReadsAfterTheOneBeforeHasWritten) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster, 1);
  harness.add_halving();
  ASSERT_TRUE(harness.finish({harness.start(1, 1, {ids_tensor({4})}),
                              harness.start(2, 1, {ids_tensor({4})}),
                              harness.start(3, 1, {ids_tensor({4})})}));
  EXPECT_THAT(cluster.events(),
              ElementsAre("pull 1", "push 1", "pull 2", "push 2", "pull 3", "push 3"));
  EXPECT_EQ(cluster.row(0, 4), 0.5f);
}

TEST(Lane, AtDepthTwoThePullOfTheNextClosureLeavesBeforeThePush) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster, 2);
  harness.add_halving();
  ASSERT_TRUE(harness.finish({harness.start(1, 1, {ids_tensor({4})}),
                              harness.start(2, 1, {ids_tensor({5})}),
                              harness.start(3, 1, {ids_tensor({6})})}));
  const auto events = cluster.events();
  ASSERT_EQ(events.size(), 6u);
  EXPECT_THAT(std::vector(events.begin(), events.begin() + 3),
              ElementsAre("pull 1", "pull 2", "push 1"));
  const auto at = [&](const std::string& event) {
    return std::find(events.begin(), events.end(), event) - events.begin();
  };
  EXPECT_LT(at("push 1"), at("pull 3"));  // no more than two between pull and push
}

// A lane of depth 4 beside a ps whose rows come `late`.
class LaneAhead : public testing::Test {
 protected:
  LaneAhead() {
    harness.add_halving();
    cluster.before = [this](const Asked& asked) -> kj::Promise<void> {
      return asked.push || late == 0ms ? kj::Promise<void>(kj::READY_NOW)
                                       : cluster.reactor.sleep(late);
    };
  }
  // Runs so many closures. The most whose pull was there and whose push was not, in the second half
  // of them.
  int most_under_way(int closures) {
    cluster.asked.clear();
    std::vector<std::shared_ptr<Started>> all;
    for (int i = 0; i < closures; ++i)
      all.push_back(harness.start(next_++, 1, {ids_tensor({i % 10})}));
    EXPECT_TRUE(harness.finish(all));
    int under_way = 0, most = 0;
    for (std::size_t i = 0; i < cluster.asked.size(); ++i) {
      under_way += cluster.asked[i].push ? -1 : 1;
      if (i > cluster.asked.size() / 2) most = std::max(most, under_way);
    }
    return most;
  }

  Duration late{0};
  FakeCluster cluster{1, kOneTable, {.delay_min = 0ms, .delay_max = 0ms}};
  LaneHarness harness{cluster, 4};
  std::uint64_t next_ = 1;
};

TEST_F(LaneAhead, OneClosureIsAheadWhereRowsComeAtOnce) { EXPECT_EQ(most_under_way(200), 2); }

TEST_F(LaneAhead, AsManyAsTheDepthAllowsAreUnderWayWhereRowsComeLate) {
  late = 5ms;
  EXPECT_EQ(most_under_way(200), 4);
}

TEST_F(LaneAhead, FewerAreWhenRowsComeQuicklyAgain) {
  late = 5ms;
  most_under_way(200);
  late = 0ms;
  EXPECT_EQ(most_under_way(400), 2);
}

TEST_F(LaneAhead, ClosuresThatOnlyWriteOverlapWherePushesAreAnsweredLate) {
  harness.add_function(2, {TensorType{DType::kInt64, {1}}, TensorType{DType::kFloat32, {1, 2}}},
                       [&](const std::vector<TraceArgument>& arguments) {
                         const Variable w = harness.variable(0);
                         w.update(kSgdRule,
                                  IndexedSlices{std::get<Array>(arguments[0]),
                                                std::get<Array>(arguments[1]), w.shape()},
                                  Array(0.5f));
                         return Outputs{};
                       });
  cluster.before = [this](const Asked&) { return cluster.reactor.sleep(5ms); };
  std::vector<std::shared_ptr<Started>> all;
  for (int i = 0; i < 400; ++i)
    all.push_back(harness.start(next_++, 2, {ids_tensor({1}), floats_tensor({1, 2}, {1, 1})}));
  const Duration began = cluster.reactor.now();
  ASSERT_TRUE(harness.finish(all));
  EXPECT_LT(cluster.reactor.now() - began, 400 * 5ms / 3);  // four at once, after a while
}

TEST_F(LaneAhead, DroppedClosuresLeaveTheirPlacesToOthers) {
  late = 1h;
  std::vector<std::shared_ptr<Started>> stuck;
  for (int i = 0; i < 8; ++i) stuck.push_back(harness.start(next_++, 1, {ids_tensor({i})}));
  cluster.reactor.advance(10ms);
  EXPECT_EQ(cluster.asked.size(), 2u);
  for (const auto& one : stuck) one->promise = nullptr;
  late = 0ms;
  EXPECT_EQ(most_under_way(200), 2);
}

TEST(Lane, AFunctionThatAssignsRunsWithNoOtherAtWork) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster, 4);
  harness.add_halving();
  harness.add_function(2, {TensorType{DType::kInt64, {Shape::kUnknown}}},
                       [&](const std::vector<TraceArgument>& arguments) {
                         const Array ids = std::get<Array>(arguments[0]);
                         const Variable w = harness.variable(0);
                         w.scatter_update(ids, w.gather(ids) * 10.0f);
                         return Outputs{};
                       });
  ASSERT_TRUE(harness.finish({harness.start(1, 1, {ids_tensor({4})}),
                              harness.start(2, 2, {ids_tensor({4})}),
                              harness.start(3, 1, {ids_tensor({4})})}));
  EXPECT_THAT(cluster.events(),
              ElementsAre("pull 1", "push 1", "pull 2", "push 2", "pull 3", "push 3"));
  EXPECT_EQ(cluster.row(0, 4), 10);
}

TEST(Lane, HeldPushesWaitForTheirRelease) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster);
  harness.add_halving();
  bool answered = false;
  auto hold = harness.lane.hold_pushes().then([&] { answered = true; }).eagerlyEvaluate(nullptr);
  cluster.run_until([&] { return answered; });
  ASSERT_TRUE(answered);  // nothing was under way
  auto started = harness.start(1, 1, {ids_tensor({4})});
  cluster.reactor.advance(1s);
  EXPECT_THAT(cluster.events(), ElementsAre("pull 1"));  // pulls and compute go on
  harness.lane.release_pushes();
  ASSERT_TRUE(harness.finish({started}));
  EXPECT_THAT(cluster.events(), ElementsAre("pull 1", "push 1"));
}

TEST(Lane, HoldingAnswersOnlyWhenNoPushIsUnderWay) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster);
  harness.add_halving();
  auto gate = kj::newPromiseAndFulfiller<void>();
  cluster.before = [&](const Asked& asked) -> kj::Promise<void> {
    return asked.push ? kj::mv(gate.promise) : kj::READY_NOW;
  };
  auto started = harness.start(1, 1, {ids_tensor({4})});
  cluster.run_until([&] { return cluster.asked.size() == 2; });
  ASSERT_THAT(cluster.events(), ElementsAre("pull 1", "push 1"));
  bool answered = false;
  auto hold = harness.lane.hold_pushes().then([&] { answered = true; }).eagerlyEvaluate(nullptr);
  cluster.reactor.advance(1s);
  EXPECT_FALSE(answered);
  gate.fulfiller->fulfill();
  EXPECT_TRUE(cluster.run_until([&] { return answered; }));
  EXPECT_TRUE(harness.finish({started}));
}

// Half of it may have landed: while its caller takes it for whole, the lane must not call itself
// idle.
TEST(Lane, AClosureThatFailedCountsAsPushingUntilItsCallerWasTold) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster);
  harness.add_halving();
  cluster.before = [](const Asked& asked) -> kj::Promise<void> {
    if (asked.push) throw UnavailableError("this shard is not open yet");
    return kj::READY_NOW;
  };
  const int caller = 0;
  auto started = harness.start(1, 1, {ids_tensor({4})}, {}, &caller);
  ASSERT_TRUE(harness.finish({started}));
  ASSERT_THAT(started->error, HasSubstr("not open yet"));
  bool answered = false;
  auto hold = harness.lane.hold_pushes().then([&] { answered = true; }).eagerlyEvaluate(nullptr);
  cluster.reactor.advance(1s);
  EXPECT_FALSE(answered);
  harness.lane.told(&caller);
  EXPECT_TRUE(cluster.run_until([&] { return answered; }));
}

TEST(Lane, ADroppedClosureMakesRoomAndCountsAsNoPush) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster, 1);
  harness.add_halving();
  cluster.before = [](const Asked& asked) -> kj::Promise<void> {
    return asked.closure == 1 && asked.push ? kj::Promise<void>(kj::NEVER_DONE) : kj::READY_NOW;
  };
  auto first = harness.start(1, 1, {ids_tensor({4})});
  auto second = harness.start(2, 1, {ids_tensor({5})});
  cluster.run_until([&] { return cluster.asked.size() == 2; });
  EXPECT_FALSE(second->finished);
  first->promise = nullptr;
  EXPECT_TRUE(harness.finish({second}));
  EXPECT_EQ(second->error, "");
  bool answered = false;
  auto hold = harness.lane.hold_pushes().then([&] { answered = true; }).eagerlyEvaluate(nullptr);
  EXPECT_TRUE(cluster.run_until([&] { return answered; }));
}

// ---- refusals ----

TEST(Lane, WhatIsNotThereYetIsAFailedPrecondition) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster);
  EXPECT_THAT(harness.error_of(1, 77, {}),
              HasSubstr("FailedPrecondition: function 77 has not been registered"));
  harness.add_halving();
  ClosureRun late;
  late.function = 1;
  late.arguments = {ids_tensor({1})};
  late.sent_layout = 2;
  auto started = harness.start(late);
  harness.finish({started});
  EXPECT_THAT(
      started->error,
      HasSubstr("FailedPrecondition: the closure needs layout version 2, this lane has version 1"));
}

TEST(Lane, ArgumentsOfAnotherTypeAreRefusedWithBothTypes) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster);
  harness.add_halving();
  EXPECT_THAT(harness.error_of(1, 1, {floats_tensor({1}, {1})}),
              HasSubstr("argument 0 of function 1 is int64[?], the closure brings float32[1]"));
  EXPECT_THAT(harness.error_of(2, 1, {}), HasSubstr("takes 1 arguments, the closure brings 0"));
}

TEST(Lane, AnIdOutsideATableFailsTheClosureAndNamesTheVariable) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster);
  harness.add_halving();
  EXPECT_THAT(harness.error_of(1, 1, {ids_tensor({10})}),
              testing::AllOf(HasSubstr("InvalidArgument: "), HasSubstr("\"w\""), HasSubstr("10")));
  EXPECT_TRUE(cluster.asked.empty());
}

TEST(Lane, AnotherSessionForgetsFunctionsAndPipelines) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster);
  harness.add_halving();
  harness.lane.configure({LaneHarness::kSession, 0, 2, RowEncoding::kRaw, 12});
  harness.run(1, 1, {ids_tensor({1})});  // the same session keeps them
  EXPECT_EQ(cluster.pushes().at(0).incarnation, 12u);
  harness.lane.configure({LaneHarness::kSession + 1, 0, 2, RowEncoding::kRaw, 13});
  EXPECT_THAT(harness.error_of(2, 1, {ids_tensor({1})}), HasSubstr("FailedPrecondition: "));
}

TEST(Lane, AFunctionOfArgumentsAloneIsRunInsideTheCall) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster);
  harness.add_function(4, {TensorType{DType::kFloat32, {}}},
                       [](const std::vector<TraceArgument>& arguments) {
                         return Outputs{{"", std::get<Array>(arguments[0]) + 1.0f}};
                       });
  ASSERT_TRUE(harness.lane.immediate(4));
  ClosureRun closure;
  closure.function = 4;
  closure.arguments = {Tensor::scalar(2.0f)};
  EXPECT_EQ(harness.lane.run_now(closure).outputs.at(0).item<float>(), 3.0f);
}

TEST(Lane, AfterALostPsTheNextClosureGoesThrough) {
  FakeCluster cluster(1, kOneTable);
  LaneHarness harness(cluster);
  harness.add_halving();
  harness.run(1, 1, {ids_tensor({4})});
  cluster.stop_ps(0);
  EXPECT_THAT(harness.error_of(2, 1, {ids_tensor({4})}), HasSubstr("Unavailable: "));
  cluster.start_ps(0);
  auto moved = std::make_shared<Layout>(*cluster.layout);
  moved->version = 2;
  moved->shards[0].primary.process = 999;
  harness.lane.set_layout(moved);
  EXPECT_EQ(floats_of(harness.run(3, 1, {ids_tensor({4})}).outputs.at(0)).at(0), 4);
}

}  // namespace
}  // namespace cairn::worker
