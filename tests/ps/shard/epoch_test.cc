// Epochs of a shard: who goes by one that is over is told so, and its rows go on.
#include <gmock/gmock.h>

#include "tests/ps/shard/row_waits_fixture.h"

namespace cairn::ps {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Epoch kNext = ShardHarness::kEpoch.number + 1;

Configuration next_epoch() { return {ShardHarness::kSession, 2, 42, {}, kNext}; }

template <typename E, typename Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "it was not refused so";
}

class ShardEpoch : public testing::Test {
 protected:
  void push(std::uint64_t closure, Epoch epoch) {
    StepContext step = shard.step(closure);
    step.epoch = epoch;
    shard.push(step, 0, {0}, {1, 1});
  }
  void pull(Epoch epoch) {
    StepContext step = shard.step(1);
    step.epoch = epoch;
    const ReadHeader header{0, 0, 0, true};
    shard.pull_request({step, {&header, 1}, {}});
  }
  void read_state(Epoch epoch) {
    shard.shard.read_state({ShardHarness::kSession, epoch, 0, 0, 0, 2});
  }

  ShardHarness shard{{whole_table(0, variable("w", {2, 2}), sgd())}};
};

TEST_F(ShardEpoch, WhatGoesByAnOlderOneIsRefusedWithBothNamedAndChangesNothing) {
  push(1, ShardHarness::kEpoch);
  shard.shard.configure(next_epoch());
  shard.shard.open();
  const auto both = AllOf(HasSubstr("in epoch 2"), HasSubstr("of epoch 1"));
  EXPECT_THAT(refusal<AbortedError>([&] { push(2, ShardHarness::kEpoch); }), both);
  EXPECT_THAT(refusal<AbortedError>([&] { push(1, ShardHarness::kEpoch); }), both);  // a repetition
  EXPECT_THAT(refusal<AbortedError>([&] { pull(ShardHarness::kEpoch); }), both);
  EXPECT_THAT(refusal<AbortedError>([&] { read_state(ShardHarness::kEpoch); }), both);
  EXPECT_EQ(shard.shard.counters().outdated, 4u);

  push(2, kNext);
  StepContext step = shard.step(3);
  step.epoch = kNext;
  const ReadHeader header{0, 0, 0, true};
  EXPECT_THAT(shard.pull_request({step, {&header, 1}, {}}), ElementsAre(-2, -2, 0, 0));
}

TEST_F(ShardEpoch, OneThatHasNotBegunHereIsWaitedFor) {
  const auto both = AllOf(HasSubstr("in epoch 1"), HasSubstr("of epoch 2"));
  EXPECT_THAT(refusal<UnavailableError>([&] { push(1, kNext); }), both);
  EXPECT_THAT(refusal<UnavailableError>([&] { pull(kNext); }), both);
}

// A primary that was replaced, and has not heard of it, must not answer on in the other's epoch.
TEST_F(ShardEpoch, TheNextOneBeginsClosed) {
  shard.shard.configure(next_epoch());
  EXPECT_FALSE(shard.shard.is_open());
  EXPECT_THAT(refusal<UnavailableError>([&] { push(1, kNext); }), HasSubstr("not open yet"));
}

TEST_F(ShardEpoch, NeverGoesBack) {
  shard.shard.configure(next_epoch());
  const Configuration older{
      ShardHarness::kSession, 3, 42, {whole_table(1, variable("b", {3}), sgd())}, 1};
  EXPECT_THAT(refusal<FailedPreconditionError>([&] { shard.shard.configure(older); }),
              AllOf(HasSubstr("epoch 2"), HasSubstr("epoch 1, which is over")));
  EXPECT_EQ(shard.shard.counters().tables, 1u);
}

TEST_F(ShardEpoch, OfANewSessionBeginsAnew) {
  shard.shard.configure(next_epoch());
  shard.shard.configure({ShardHarness::kSession + 1, 1, 42, {}, 1});
  EXPECT_EQ(shard.shard.epoch(), 1u);
}

// The rows are the same: closures that pulled before it need not pull again, and staleness counts
// what came since.
TEST_F(ShardEpoch, TheNextOneGoesOnWithTheLineageOfTheRows) {
  const ShardVersion pulled = shard.shard.version();
  push(1, ShardHarness::kEpoch);
  shard.shard.configure(next_epoch());
  shard.shard.open();
  EXPECT_EQ(shard.shard.version(), (ShardVersion{pulled.lineage, 1}));

  StepContext step = shard.step(2);
  step.epoch = kNext;
  const UpdateHeader header{.rows = 1, .rule = sgd(), .learning_rate = 1};
  const Ids row{0};
  const Floats ones{1, 1};
  const PushResult result = shard.shard.push(
      {step, pulled, {&header, 1}, row, std::as_bytes(std::span<const float>(ones))});
  EXPECT_EQ(result.staleness, 1u);
}

TEST_F(RowWaitsTest, ANewEpochRefusesWhatWaitsInTheOldOne) {
  source.hold("a", 3, 30);
  const auto push_waits = push(shard.step(1), {3}, 1), pull_waits = pull({3});
  shard.shard.configure(next_epoch());
  EXPECT_EQ(push_waits->code(), Code::kUnavailable);
  EXPECT_EQ(pull_waits->code(), Code::kUnavailable);
  source.release();
  EXPECT_EQ(shard.shard.version().counter, 0u);
}

}  // namespace
}  // namespace cairn::ps
