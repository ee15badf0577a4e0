// The tables that a shard is configured with, and sessions.
#include <gmock/gmock.h>

#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ShardConfigure, MoreRowsThanThereIsMemoryForAreRefusedBeforeAnyIsMade) {
  ShardHarness shard({whole_table(0, variable("w", {4, 2}), sgd())},
                     {.lineage = 1, .tables_bytes_max = 1 << 20});
  try {
    shard.shard.configure({ShardHarness::kSession,
                           2,
                           42,
                           {whole_table(1, variable("huge", {std::int64_t{1} << 40, 8}), adam())},
                           ShardHarness::kEpoch});
    ADD_FAILURE() << "it was made";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("'huge'"), HasSubstr("1048576 bytes"), HasSubstr("more ps")));
  }
  EXPECT_EQ(shard.pull_whole(0).size(), 8u);
  for (VariableId id = 1; id < 100; ++id) {  // nor does a little at a time get past it
    try {
      shard.shard.configure(
          {ShardHarness::kSession,
           2,
           42,
           {whole_table(id, variable("w" + std::to_string(id), {1000, 8}), sgd())},
           ShardHarness::kEpoch});
    } catch (const ResourceExhaustedError&) {
      EXPECT_LT(id, 40u);
      return;
    }
  }
  ADD_FAILURE() << "3 MB were taken";
}

TEST(ShardConfigure, ANewVariableLeavesTheOthersAsTheyAre) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  shard.push(shard.step(1), 0, {0}, {1, 1});
  shard.shard.configure({ShardHarness::kSession,
                         2,
                         42,
                         {whole_table(1, variable("b", {3}, Initializer::constant(4)), sgd())},
                         ShardHarness::kEpoch});
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(-1, -1, 0, 0));
  EXPECT_THAT(shard.pull_whole(1), ElementsAre(4, 4, 4));
}

TEST(ShardConfigure, SlotsComeBesideRowsThatStay) {
  for (const Shape& shape : {Shape{3, 2}, Shape{6}}) {
    ShardHarness shard({whole_table(0, variable("w", shape, Initializer::uniform(-1, 1)),
                                    {RuleKind::kAssign, {}})});
    const Floats before = shard.pull_whole(0);
    shard.shard.configure(
        {ShardHarness::kSession,
         2,
         42,
         {whole_table(0, variable("w", shape, Initializer::uniform(-1, 1)), adagrad())},
         ShardHarness::kEpoch});
    EXPECT_EQ(shard.pull_whole(0), before);

    ShardHarness fresh(
        {whole_table(0, variable("w", shape, Initializer::uniform(-1, 1)), adagrad())});
    const Floats gradient(6, 0.5f);
    shard.push_whole(shard.step(1), 0, gradient, adagrad());
    fresh.push_whole(fresh.step(1), 0, gradient, adagrad());
    EXPECT_EQ(shard.pull_whole(0), fresh.pull_whole(0));
  }
}

TEST(ShardConfigure, AVariableOfAnotherShapeIsRefused) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  EXPECT_THROW(shard.shard.configure({ShardHarness::kSession,
                                      2,
                                      42,
                                      {whole_table(0, variable("w", {2, 3}), sgd())},
                                      ShardHarness::kEpoch}),
               FailedPreconditionError);
  EXPECT_THROW(shard.shard.configure({ShardHarness::kSession,
                                      2,
                                      42,
                                      {whole_table(0, variable("v", {2, 2}), sgd())},
                                      ShardHarness::kEpoch}),
               FailedPreconditionError);
  EXPECT_THROW(shard.shard.configure({ShardHarness::kSession,
                                      2,
                                      42,
                                      {{5, variable("x", {2, 2}), sgd(), {{0, {0, 3}}}}},
                                      ShardHarness::kEpoch}),
               InvalidArgumentError);
  EXPECT_THAT(shard.pull_whole(0), ElementsAre(0, 0, 0, 0));
}

TEST(ShardConfigure, ANewSessionForgetsTheOldOne) {
  ShardHarness shard({whole_table(0, variable("w", {2, 2}), sgd())});
  shard.push(shard.step(1), 0, {0}, {1, 1});
  shard.shard.configure(
      {8, 1, 42, {whole_table(0, variable("w", {2, 2}), sgd())}, ShardHarness::kEpoch});
  shard.shard.announce(8, 2, 0);
  shard.shard.open();
  StepContext step = shard.step(1);
  step.session = 8;
  EXPECT_FALSE(shard.push(step, 0, {1}, {1, 1}).duplicate);
  const ReadHeader header{0, 0, 0, true};
  EXPECT_THAT(shard.pull_request({step, {&header, 1}, {}}), ElementsAre(0, 0, -1, -1));
}

TEST(ShardConfigure, ASuccessorsTablesBeginAnewUnderItsOwnNumbers) {
  ShardHarness shard(
      {whole_table(0, variable("w", {2, 2}), sgd()), whole_table(1, variable("b", {2}), sgd())});
  shard.push(shard.step(1), 0, {0}, {1, 1});
  shard.shard.configure(
      {8,
       1,
       42,
       {whole_table(0, variable("b", {2}), sgd()), whole_table(1, variable("w", {2, 2}), sgd())},
       ShardHarness::kEpoch});
  shard.shard.open();
  StepContext step = shard.step(1);
  step.session = 8;
  const ReadHeader header{1, 0, 0, true};
  EXPECT_THAT(shard.pull_request({step, {&header, 1}, {}}), ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace cairn::ps
