// How closures come to a lane and results leave it: many in a message, none waiting for another.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/worker/worker_fixture.h"

namespace cairn::worker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LaneServiceTest : public WorkerServerTest {
 protected:
  LaneServiceTest() {
    configure(lane);
    add_halving(lane);
    add_immediate(2, [](const Array& in) { return in + 1.0f; });
  }
  ~LaneServiceTest() noexcept override {}
  template <typename Body>
  void add_immediate(FunctionId id, Body body) {
    auto traced = [&](const std::vector<TraceArgument>& arguments) {
      return Outputs{{"", body(std::get<Array>(arguments[0]))}};
    };
    register_function(lane, id, trace(traced, {TensorType{DType::kFloat32, {}}}).bytes);
  }
  // Closures of a function of one number, without variables.
  std::shared_ptr<Call> start_immediate(FunctionId function,
                                        const std::vector<std::uint64_t>& sequences) {
    auto request = lane.runRequest();
    auto closures = request.initClosures(static_cast<unsigned>(sequences.size()));
    for (unsigned i = 0; i < sequences.size(); ++i) {
      closures[i].setSequence(sequences[i]);
      closures[i].setFunction(function);
      wire::write(closures[i].initArguments(1)[0],
                  Tensor::scalar(static_cast<float>(sequences[i])));
    }
    return send(kj::mv(request));
  }
  // Pulls of `closure` wait until release().
  void hold_up(std::uint64_t closure) {
    auto pair = kj::newPromiseAndFulfiller<void>();
    go_ = kj::mv(pair.fulfiller);
    held_ = pair.promise.fork();
    cluster.before = [this, closure](const Asked& asked) -> kj::Promise<void> {
      if (asked.closure == closure) return held_.addBranch();
      return kj::READY_NOW;
    };
  }
  void release() { go_->fulfill(); }

  std::unique_ptr<rpc::Connection> connection = connect(1);
  wire::Lane::Client lane = connection->bootstrap<wire::Lane>();

 private:
  kj::Own<kj::PromiseFulfiller<void>> go_;
  kj::ForkedPromise<void> held_ = nullptr;
};

TEST_F(LaneServiceTest, ASlowClosureHoldsUpNoAnswerOfItsMessage) {
  hold_up(7);
  auto first = start(lane, {{7, {1}}, {8, {2}}, {9, {3}}});
  ASSERT_TRUE(finish(*first));
  EXPECT_THAT(first->sequences(), ElementsAre(8));
  auto second = start(lane, {});
  ASSERT_TRUE(finish(*second));
  EXPECT_THAT(second->sequences(), ElementsAre(9));
  auto third = start(lane, {});
  cluster.reactor.advance(1s);
  EXPECT_FALSE(third->finished);
  release();
  ASSERT_TRUE(finish(*third));
  EXPECT_THAT(third->sequences(), ElementsAre(7));
}

TEST_F(LaneServiceTest, WhatEndsWhileNoCallWaitsIsAnsweredTogetherInTheOrderOfItsEnd) {
  hold_up(7);
  auto first = start(lane, {{7, {1}}, {8, {2}}, {9, {3}}, {10, {4}}});
  ASSERT_TRUE(finish(*first));
  release();
  cluster.reactor.advance(1s);
  EXPECT_THAT(first->sequences(), ElementsAre(8));
  auto second = start(lane, {});
  ASSERT_TRUE(finish(*second));
  EXPECT_THAT(second->sequences(), testing::UnorderedElementsAre(7, 9, 10));
  EXPECT_EQ(second->sequences().back(), 10u);  // it began last
}

TEST_F(LaneServiceTest, ClosuresWithoutVariablesAreAnsweredInOneMessage) {
  auto call = start_immediate(2, {3, 4, 5});
  ASSERT_TRUE(finish(*call));
  EXPECT_THAT(call->sequences(), ElementsAre(3, 4, 5));
  EXPECT_EQ(call->answers[2].outputs.at(0).item<float>(), 6.0f);
}

TEST_F(LaneServiceTest, AFailedClosureFailsAlone) {
  auto request = lane.runRequest();
  auto closures = request.initClosures(3);
  for (unsigned i = 0; i < 3; ++i) {
    closures[i].setSequence(i);
    closures[i].setFunction(i == 1 ? 99 : 2);
    wire::write(closures[i].initArguments(1)[0], Tensor::scalar(1.0f));
  }
  auto call = send(kj::mv(request));
  ASSERT_TRUE(finish(*call));
  while (call->answers.size() < 3) {
    auto more = start(lane, {});
    ASSERT_TRUE(finish(*more));
    call->answers.insert(call->answers.end(), more->answers.begin(), more->answers.end());
  }
  for (const Answer& answer : call->answers)
    EXPECT_EQ(answer.error.starts_with("FailedPrecondition: function 99"), answer.sequence == 1)
        << answer.error;
}

TEST_F(LaneServiceTest, TheCallThatWaitsLongestIsAnsweredFirst) {
  auto waiting = start(lane, {});
  auto later = start_immediate(2, {3});
  ASSERT_TRUE(finish(*waiting));
  EXPECT_THAT(waiting->sequences(), ElementsAre(3));
  cluster.reactor.advance(1s);
  EXPECT_FALSE(later->finished);
}

TEST_F(LaneServiceTest, CallsThatOnlyWaitDoNotPileUp) {
  std::vector<std::shared_ptr<Call>> calls;
  for (int i = 0; i < 100; ++i) calls.push_back(start(lane, {}));
  cluster.reactor.advance(1s);
  EXPECT_TRUE(calls.front()->finished);
  EXPECT_THAT(calls.front()->answers, IsEmpty());
  EXPECT_FALSE(calls.back()->finished);
  EXPECT_LE(
      std::count_if(calls.begin(), calls.end(), [](const auto& call) { return !call->finished; }),
      16);
}

TEST_F(LaneServiceTest, LargeResultsGoInMessagesOfTheirOwn) {
  // 0.8 MB
  add_immediate(
      3, [](const Array& in) { return in + Array(Tensor::zeros(DType::kFloat32, {200'000})); });
  auto call = start_immediate(3, {1, 2});
  ASSERT_TRUE(finish(*call));
  EXPECT_THAT(call->sequences(), ElementsAre(1));
  auto rest = start(lane, {});
  ASSERT_TRUE(finish(*rest));
  EXPECT_THAT(rest->sequences(), ElementsAre(2));
  EXPECT_EQ(rest->answers[0].outputs.at(0).shape(), (Shape{200'000}));
}

TEST_F(LaneServiceTest, AResultThatFitsIntoNoMessageFailsItsClosure) {
  add_immediate(3, [](const Array& in) {
    const Array row(Tensor::zeros(DType::kFloat32, {5'000}));
    return in + row + reshape(row, {5'000, 1});  // 100 MB
  });
  auto call = start_immediate(3, {1});
  ASSERT_TRUE(finish(*call));
  ASSERT_THAT(call->sequences(), ElementsAre(1));
  EXPECT_THAT(call->answers[0].error,
              HasSubstr("ResourceExhausted: closure 1: its outputs make a message of"));
  EXPECT_TRUE(connection->connected());
}

// Its pushes are over, and whether they all landed is known only to who has read its result.
TEST_F(LaneServiceTest, WhoHoldsPushesIsToldHowManyClosuresHadEnded) {
  cluster.before = [](const Asked& asked) -> kj::Promise<void> {
    if (asked.push && asked.closure == 8) throw UnavailableError("this shard is not open yet");
    return kj::READY_NOW;
  };
  auto call = start(lane, {{7, {1}}, {8, {2}}});
  ASSERT_TRUE(finish(*call));
  cluster.reactor.advance(1s);
  kj::Promise<capnp::Response<wire::Lane::HoldPushesResults>> holding =
      lane.holdPushesRequest().send();
  const auto held = wait(kj::mv(holding));
  EXPECT_THAT(call->sequences(), ElementsAre(7));
  EXPECT_EQ(held.getEnded(), 2u);
}

TEST_F(LaneServiceTest, AnAnswerThatWasLostWithItsCallIsNotGivenToTheNextConnection) {
  hold_up(7);
  start(lane, {{7, {1}}, {8, {2}}});
  ASSERT_TRUE(cluster.run_until([&] { return !cluster.pushes().empty(); }));
  connection->close();
  cluster.reactor.advance(1s);
  release();
  connection = connect(1);
  lane = connection->bootstrap<wire::Lane>();
  configure(lane);
  auto call = start(lane, {});
  cluster.reactor.advance(1s);
  EXPECT_FALSE(call->finished);
}

}  // namespace
}  // namespace cairn::worker
