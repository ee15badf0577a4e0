#include "coordinator/progress/pipelines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

std::vector<std::byte> state(int n) { return {static_cast<std::byte>(n)}; }

TEST(Pipeline, NumbersItsElementsAndReachesThemFromTheNearestState) {
  Pipeline pipeline("data/0");
  TakeRecord first = pipeline.take(0, 2), second = pipeline.take(0, 2), third = pipeline.take(0, 2);
  EXPECT_EQ(third.ordinal, 4u);
  EXPECT_EQ(pipeline.base(4).first, 0u);

  pipeline.commit(first, 2, state(2));

  EXPECT_EQ(pipeline.base(second.ordinal).first, 2u);
  EXPECT_EQ(pipeline.base(third.ordinal).first, 2u);
}

TEST(Pipeline, KeepsTheStateThatAnOpenElementNeeds) {
  Pipeline pipeline("data/0");
  TakeRecord first = pipeline.take(0, 1), second = pipeline.take(0, 1);
  pipeline.commit(second, 2, state(2));
  EXPECT_EQ(pipeline.base(first.ordinal).first, 0u);  // the first may still be asked for again
  pipeline.commit(first, 1, state(1));
  EXPECT_EQ(pipeline.base(2).first, 2u);
}

TEST(Pipeline, RestoredTakesWhatWasLeftOpenFirst) {
  Pipeline pipeline("data/0");
  TakeRecord first = pipeline.take(0, 1), second = pipeline.take(0, 1), third = pipeline.take(0, 1);
  pipeline.commit(second, 2, state(2));
  pipeline.commit(third, 3, state(3));
  PipelinePosition saved = pipeline.position();

  Pipeline restored(saved);

  EXPECT_EQ(restored.take(0, 1).ordinal, first.ordinal);
  EXPECT_EQ(restored.take(0, 1).ordinal, 3u);
}

TEST(Pipeline, AnElementOfAFailedClosureIsSpent) {
  Pipeline pipeline("data/0");
  TakeRecord first = pipeline.take(0, 1);
  pipeline.commit(first, 0, {});
  EXPECT_EQ(pipeline.take(0, 1).ordinal, 1u);
  EXPECT_THAT(pipeline.position().open, ::testing::SizeIs(1));
}

}  // namespace
}  // namespace cairn
