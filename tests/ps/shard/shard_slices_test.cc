// Large dense updates, which a shard applies slice by slice.
#include <gmock/gmock.h>

#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ShardSlices : public testing::Test {
 protected:
  // Subtracts one from row `slice - 1`.
  PushResult push(std::uint64_t closure, std::uint32_t slice, ShardVersion pulled = {},
                  std::uint64_t worker = 1, UpdateRule rule = sgd(), std::uint32_t pieces = 1) {
    const UpdateHeader header{0, 0, 1, false, rule, 1};
    const std::int64_t row = slice == 0 ? 3 : slice - 1;
    const Floats one{1};
    PushRequest request{shard.step(closure, 0, worker),
                        pulled,
                        {&header, 1},
                        {&row, 1},
                        std::as_bytes(std::span(one)),
                        RowEncoding::kRaw,
                        0,
                        pieces};
    request.slice = slice;
    return shard.shard.push(request);
  }
  ShardHarness shard{{whole_table(0, variable("w", {4, 1}), sgd())}};
};

TEST_F(ShardSlices, AreAppliedWhenTheyComeAndOnce) {
  EXPECT_FALSE(push(1, 2).duplicate);
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(0, -1, 0, 0));
  EXPECT_TRUE(push(1, 2).duplicate);
  EXPECT_FALSE(push(1, 1).duplicate);
  EXPECT_FALSE(push(1, 0).duplicate);  // the rest of the push
  EXPECT_TRUE(push(1, 0).duplicate);
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(-1, -1, 0, -1));
  EXPECT_EQ(shard.shard.counters().kept.staged_bytes.load(), 0u);
}

// The worker is lost between two slices; where its closure runs again it sends all of them.
TEST_F(ShardSlices, OfALostWorkerAreCompletedByTheRetry) {
  push(1, 1, {}, 2);
  const LaneIncarnation alive = 1;
  shard.shard.fence(ShardHarness::kSession, 2, {&alive, 1});
  EXPECT_THROW(push(1, 2, {}, 2), CancelledError);
  EXPECT_TRUE(push(1, 1, {}, 1).duplicate);
  EXPECT_FALSE(push(1, 2, {}, 1).duplicate);
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(-1, -1, 0, 0));
}

TEST_F(ShardSlices, CountAsOnePush) {
  const ShardVersion pulled = shard.shard.version();
  EXPECT_EQ(push(1, 1, pulled).staleness, 0u);
  EXPECT_EQ(push(2, 1, pulled).staleness, 1u);
  EXPECT_EQ(push(1, 2, pulled).staleness, 0u);
  EXPECT_EQ(push(2, 2, pulled).staleness, 0u);
  EXPECT_EQ(push(3, 1, pulled).staleness, 2u);
  EXPECT_EQ(shard.shard.version().counter, 3u);
  EXPECT_EQ(shard.shard.counters().pushes.calls.load(), 3u);
  EXPECT_EQ(shard.shard.counters().staleness.sum.load(), 3u);
  // A second push of the closure: its own slices before it were none of others.
  const UpdateHeader header{0, 0, 1, false, sgd(), 1};
  const Ids row{0};
  const Floats one{1};
  EXPECT_EQ(
      shard.shard.push({shard.step(2, 1), pulled, {&header, 1}, row, std::as_bytes(std::span(one))})
          .staleness,
      2u);
}

// A copy of what was read between two of them is not taken for what is there after.
TEST_F(ShardSlices, ChangeWhenThePartWasWritten) {
  const ReadHeader whole{0, 0, 0, true};
  std::uint64_t before = shard.written(whole);
  for (const std::uint32_t slice : {1u, 2u, 3u}) {
    push(1, slice);
    EXPECT_GT(shard.written(whole), before);
    before = shard.written(whole);
  }
}

std::string refusal(const std::function<void()>& push) {
  try {
    push();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "it was taken";
}

TEST_F(ShardSlices, OfWhatHasToBeAppliedAsAWholeAreRefused) {
  EXPECT_THAT(refusal([&] { push(1, 1, {}, 1, adam()); }),
              HasSubstr("slice 1 of a push updates by adam"));
  EXPECT_THAT(refusal([&] { push(1, 1, {}, 1, sgd(), 2); }),
              HasSubstr("slice 1 of a push comes in 2 pieces"));
  EXPECT_THAT(refusal([&] { push(1, 70'000); }), HasSubstr("at most 65536"));
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(0, 0, 0, 0));
  EXPECT_FALSE(push(1, 1).duplicate);
}

}  // namespace
}  // namespace cairn::ps
