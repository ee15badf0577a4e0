// Groups of lanes: their sums, which members get the error when one is lost, and that a later group
// has nothing of an earlier one.
#include "worker/lane/lane_group.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "collective/peer.capnp.h"
#include "core/base/random.h"
#include "tests/worker/lane/lane_group_fixture.h"

namespace cairn::worker {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<std::uint32_t> kAll = {0, 1, 2};

Tensor filled(float value) { return floats_tensor({2}, {value, value}); }

// Values whose sum depends on the order in which they are added.
Tensor uneven(std::int64_t elements, std::uint64_t seed) {
  Tensor made(DType::kFloat32, {elements});
  Random random(seed);
  for (float& value : made.mutable_values<float>())
    value = static_cast<float>(random.below(1 << 20)) / static_cast<float>(1 + random.below(997));
  return made;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::equal(a.raw(), a.raw() + a.bytes(), b.raw());
}

TEST(LaneGroup, ThreeLanesSumToTheSameBits) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    LaneGroups lanes(3, seed);
    ASSERT_THAT(lanes.join_all(7, kAll), Each(""));
    for (const std::int64_t elements : {1, 100'000}) {
      std::vector<Tensor> values;
      for (const std::uint32_t task : kAll) values.push_back(uneven(elements, seed * 10 + task));
      EXPECT_THAT(lanes.all_reduce_all(kAll, values), Each(""));
      for (const Tensor& own : values) EXPECT_TRUE(same_bits(own, values[0]));
      EXPECT_FALSE(same_bits(values[0], uneven(elements, seed * 10)));
    }
  }
}

TEST(LaneGroup, KnowsItsNumberAndSizeOnceItHasFormed) {
  LaneGroups lanes(3);
  EXPECT_EQ(lanes[0].number(), 0u);
  const auto first = lanes.join(7, 0, kAll);
  lanes.reactor.advance(1s);
  EXPECT_EQ(lanes[0].number(), 0u);
  EXPECT_EQ(lanes[0].size(), 0);
  EXPECT_THAT(lanes.join_all(8, kAll), Each(""));
  EXPECT_THAT(lanes.wait(first), StartsWith("Aborted: "));
  EXPECT_EQ(lanes[0].number(), 8u);
  EXPECT_EQ(lanes[0].size(), 3);
}

TEST(LaneGroup, FormsSoonAfterTheLastMemberWasToldOfIt) {
  LaneGroups lanes(3);
  std::vector<std::shared_ptr<Outcome>> joined = {lanes.join(7, 0, kAll), lanes.join(7, 2, kAll)};
  lanes.reactor.advance(20s);
  joined.push_back(lanes.join(7, 1, kAll));
  lanes.reactor.advance(100ms);
  for (const auto& each : joined) EXPECT_TRUE(each->settled);
  EXPECT_THAT(lanes.errors(joined), Each(""));
}

TEST(LaneGroup, NamesThoseThatAreMissingAfterHalfAMinute) {
  LaneGroups lanes(3);
  std::vector<std::shared_ptr<Outcome>> joined = {lanes.join(7, 0, kAll), lanes.join(7, 1, kAll)};
  lanes.reactor.advance(31s);
  for (const auto& each : joined) ASSERT_TRUE(each->settled);
  EXPECT_THAT(lanes.errors(joined),
              Each(AllOf(StartsWith("DeadlineExceeded: "),
                         HasSubstr("for rank 2 (/job:worker/task:2 at sim://w2): "
                                   "/job:worker/task:2 has not been told of group 7"))));
  EXPECT_EQ(lanes[0].number(), 0u);
}

TEST(LaneGroup, AMemberThatVanishesEndsTheCallsOfTheOthersWithinASecond) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    LaneGroups lanes(3, seed);
    ASSERT_THAT(lanes.join_all(7, kAll), Each(""));
    Tensor one = uneven(300'000, 1), other = uneven(300'000, 2);
    const std::vector<std::shared_ptr<Outcome>> calls = {lanes.all_reduce(0, one),
                                                         lanes.all_reduce(2, other)};
    lanes.reactor.advance(std::chrono::microseconds(100 * seed));
    lanes.kill(1);
    lanes.reactor.advance(1s);
    for (const auto& each : calls) {
      ASSERT_TRUE(each->settled);
      EXPECT_THAT(each->error, AllOf(StartsWith("Aborted: rank 1 (/job:worker/task:1 at sim://w1)"),
                                     HasSubstr("@/job:worker/task:1")));
    }
    EXPECT_EQ(lanes[0].number(), 0u);
    Tensor next = filled(1);
    EXPECT_THAT(lanes.wait(lanes.all_reduce(0, next)), StartsWith("Aborted: rank 1 "));
  }
}

// A lane that computes for seconds is silent too.
TEST(LaneGroup, AMemberThatIsOnlySilentIsLostLaterThanOneThatComputes) {
  LaneGroups lanes(3);
  ASSERT_THAT(lanes.join_all(7, kAll), Each(""));
  Tensor value = filled(1);
  const auto call = lanes.all_reduce(0, value);
  for (const std::uint32_t other : {0, 2})
    lanes.network.partition_both(LaneGroups::host(1), LaneGroups::host(other));
  lanes.reactor.advance(20s);
  EXPECT_FALSE(call->settled);
  lanes.reactor.advance(15s);
  ASSERT_TRUE(call->settled);
  EXPECT_THAT(call->error, StartsWith("Aborted: rank 1 (/job:worker/task:1 at sim://w1) was lost"));
}

TEST(LaneGroup, TheSurvivorsAndASuccessorFormTheNextGroups) {
  LaneGroups lanes(3);
  ASSERT_THAT(lanes.join_all(7, kAll), Each(""));
  lanes.kill(1);
  const std::vector<std::uint32_t> survivors = {0, 2};
  EXPECT_THAT(lanes.join_all(8, survivors), Each(""));
  std::vector<Tensor> values = {filled(1), filled(2)};
  EXPECT_THAT(lanes.all_reduce_all(survivors, values), Each(""));
  EXPECT_EQ(floats_of(values[0]), (std::vector<float>{3, 3}));
  lanes.start(1);
  EXPECT_THAT(lanes.join_all(9, kAll), Each(""));
  values = {filled(1), filled(2), filled(4)};
  EXPECT_THAT(lanes.all_reduce_all(kAll, values), Each(""));
  for (const Tensor& own : values) EXPECT_EQ(floats_of(own), (std::vector<float>{7, 7}));
}

TEST(LaneGroup, WhatAnEarlierGroupSendsLateReachesNoLaterOne) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    LaneGroups lanes(3, seed);
    ASSERT_THAT(lanes.join_all(7, kAll), Each(""));
    lanes.reactor.advance(10ms);  // nothing is on its way
    Tensor late = filled(1000);
    lanes.network.partition("w2", "w0");
    lanes.network.partition("w2", "w1");
    const auto call = lanes.all_reduce(2, late);  // its first call, as is that of the next group
    lanes.reactor.advance(1s);
    const std::vector<std::uint32_t> survivors = {0, 1};
    ASSERT_THAT(lanes.join_all(8, survivors), Each(""));
    std::vector<Tensor> values = {filled(1), filled(2)};
    const auto first = lanes.all_reduce(0, values[0]);
    lanes.network.heal_all();
    lanes.reactor.advance(std::chrono::microseconds(50 * seed));
    EXPECT_EQ(lanes.wait(lanes.all_reduce(1, values[1])), "");
    EXPECT_EQ(lanes.wait(first), "");
    for (const Tensor& own : values) EXPECT_EQ(floats_of(own), (std::vector<float>{3, 3}));
    EXPECT_THAT(lanes.wait(call), AllOf(StartsWith("Aborted: "), HasSubstr("has left the group")));
  }
}

TEST(LaneGroup, RefusesWorkersOfAnotherGroupAndThoseThatAreNoMembers) {
  LaneGroups lanes(4);
  const auto refusal = [&](std::uint32_t task, std::uint64_t group) {
    const auto connection = lanes.dial(task, group);
    return lanes.wait(LaneGroups::watch(
        connection->bootstrap<wire::Member>().pingRequest().send().ignoreResult()));
  };
  EXPECT_THAT(refusal(1, 7),
              StartsWith("Unavailable: /job:worker/task:0 has not been told of group 7 of "
                         "/job:worker/task:1: it is in no group"));
  ASSERT_THAT(lanes.join_all(8, kAll), Each(""));
  EXPECT_THAT(refusal(1, 7), AllOf(StartsWith("Unavailable: "), HasSubstr("it is in group 8")));
  EXPECT_THAT(refusal(3, 8), AllOf(StartsWith("Unavailable: /job:worker/task:3 is none of")));
  EXPECT_EQ(lanes[0].number(), 8u);
}

TEST(LaneGroup, OfOneNeedsNobody) {
  LaneGroups lanes(1);
  EXPECT_THAT(lanes.join_all(7, {0}), ElementsAre(""));
  Tensor value = filled(5);
  EXPECT_EQ(lanes.wait(lanes.all_reduce(0, value)), "");
  EXPECT_EQ(floats_of(value), (std::vector<float>{5, 5}));
  EXPECT_EQ(lanes[0].size(), 1);
}

TEST(LaneGroup, WithoutAGroupOrBeforeItHasFormedACallIsToBeRunAgain) {
  LaneGroups lanes(3);
  Tensor value = filled(1);
  EXPECT_THAT(lanes.wait(lanes.all_reduce(0, value)),
              AllOf(StartsWith("Aborted: "), HasSubstr("this lane is in no group")));
  const auto joined = lanes.join(7, 0, kAll);
  EXPECT_THAT(lanes.wait(lanes.all_reduce(0, value)),
              StartsWith("Aborted: group 7 of lanes has not formed yet"));
}

TEST(LaneGroup, AMemberThatGivesUpEndsTheCallsOfAllWhateverItsErrorIs) {
  LaneGroups lanes(3);
  ASSERT_THAT(lanes.join_all(7, kAll), Each(""));
  std::vector<Tensor> values = {filled(1), filled(2), filled(3)};
  const std::vector<std::shared_ptr<Outcome>> calls = {lanes.all_reduce(0, values[0]),
                                                       lanes.all_reduce(1, values[1])};
  lanes[2].abort({Code::kInvalidArgument, "row 7 of 5", ""});
  lanes.reactor.advance(10ms);
  for (const auto& each : calls) {
    ASSERT_TRUE(each->settled);
    EXPECT_EQ(each->error,
              "Aborted: rank 2 (/job:worker/task:2 at sim://w2) gave up: row 7 of 5 "
              "@/job:worker/task:2");
  }
  EXPECT_THAT(lanes.wait(lanes.all_reduce(2, values[2])), StartsWith("Aborted: rank 2 "));
  EXPECT_EQ(lanes[2].number(), 0u);
}

TEST(LaneGroup, AnArgumentThatHasNoSumIsItsCallersErrorAndTheGroupGoesOn) {
  LaneGroups lanes(1);
  ASSERT_THAT(lanes.join_all(7, {0}), Each(""));
  Tensor value = Tensor::zeros(DType::kBool, {2});
  EXPECT_THAT(lanes.wait(lanes.all_reduce(0, value)), StartsWith("InvalidArgument: "));
  EXPECT_EQ(lanes[0].number(), 7u);
}

TEST(LaneGroup, WithoutMembersItIsLeftAndTheOthersCallsFail) {
  LaneGroups lanes(3);
  ASSERT_THAT(lanes.join_all(7, kAll), Each(""));
  Tensor value = filled(1);
  const auto call = lanes.all_reduce(0, value);
  EXPECT_EQ(lanes.wait(LaneGroups::watch(lanes[1].join({}))), "");
  EXPECT_EQ(lanes[1].number(), 0u);
  lanes.reactor.advance(1s);
  ASSERT_TRUE(call->settled);
  EXPECT_THAT(call->error, AllOf(StartsWith("Aborted: rank 1 "), HasSubstr("has left the group")));
}

TEST(LaneGroup, AConfigurationThatNoGroupCanHaveIsRefusedAndTheLaneStaysInItsGroup) {
  LaneGroups lanes(3);
  ASSERT_THAT(lanes.join_all(7, kAll), Each(""));
  const auto refusal = [&](GroupConfig config) {
    return lanes.wait(LaneGroups::watch(lanes[0].join(std::move(config))));
  };
  const GroupConfig good = LaneGroups::config(8, 0, kAll);
  GroupConfig numberless = good, beyond = good, another = good, twice = good, nowhere = good,
              many = good;
  numberless.number = 0;
  beyond.rank = 3;
  another.rank = 1;
  twice.members[2].task = 1;
  nowhere.members[1].address = "nowhere";
  many.members.resize(LaneGroup::kMembersMax + 1, {9, "sim://w9"});
  for (const GroupConfig& wrong : {numberless, beyond, another, twice, nowhere, many})
    EXPECT_THAT(refusal(wrong), StartsWith("InvalidArgument: "));
  EXPECT_EQ(lanes[0].number(), 7u);
}

TEST(LaneGroup, MayEndWhileItFormsReducesAndLeaves) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    LaneGroups lanes(3, seed);
    std::vector<std::shared_ptr<Outcome>> begun;
    for (std::uint32_t rank = 0; rank < 3; ++rank) begun.push_back(lanes.join(7, rank, kAll));
    lanes.reactor.advance(std::chrono::microseconds(200 * seed));
    std::vector<Tensor> values = {uneven(100'000, 1), uneven(100'000, 2), uneven(100'000, 3)};
    for (std::uint32_t task = 0; task < 3; ++task)
      begun.push_back(lanes.all_reduce(task, values[task]));
    lanes.reactor.advance(std::chrono::microseconds(100 * (seed % 7)));
    if (seed % 2 == 0) lanes[1].leave();
    lanes.reactor.advance(std::chrono::microseconds(100 * (seed % 5)));
    lanes.kill(static_cast<std::uint32_t>(seed % 3));
    lanes.reactor.advance(1s);
  }
}

}  // namespace
}  // namespace cairn::worker
