#include "worker/lane/lookahead.h"

#include <gtest/gtest.h>

#include <map>

namespace cairn::worker {
namespace {

using namespace std::chrono_literals;

// A lane that computes for `compute` a closure, and whose pull and push take `latency` together.
// How many decisions it spent at each number of places.
std::map<std::size_t, int> spent(Lookahead& lookahead, Duration latency, Duration compute,
                                 int decisions) {
  std::map<std::size_t, int> at;
  for (int i = 0; i < decisions; ++i) {
    ++at[lookahead.limit()];
    const auto places = static_cast<std::int64_t>(lookahead.limit());
    const Duration idled = std::max(Duration(0), (latency + compute) / places - compute);
    for (int turn = 0; turn < Lookahead::kTurns; ++turn) lookahead.took(idled, compute);
  }
  return at;
}

TEST(Lookahead, WhereRowsComeAtOnceTwoOverlapWhateverTheDepth) {
  for (const std::size_t depth : {2, 3, 4, 64}) {
    Lookahead lookahead(depth);
    EXPECT_EQ(spent(lookahead, 100us, 1ms, 100)[2], 100) << depth;
  }
}

TEST(Lookahead, AtDepthOneNothingOverlaps) {
  Lookahead lookahead(1);
  EXPECT_EQ(spent(lookahead, 5ms, 1ms, 100)[1], 100);
}

TEST(Lookahead, AsManyOverlapAsTheLatencyDemands) {
  Lookahead lookahead(64);
  spent(lookahead, 1900us, 1ms, 100);
  EXPECT_EQ(lookahead.limit(), 3u);
  spent(lookahead, 8900us, 1ms, 100);
  EXPECT_EQ(lookahead.limit(), 10u);
}

TEST(Lookahead, NoMoreThanTheDepthOverlap) {
  Lookahead lookahead(4);
  spent(lookahead, 1s, 1ms, 100);
  EXPECT_EQ(lookahead.limit(), 4u);
}

TEST(Lookahead, FewerOverlapAgainWhenRowsComeSooner) {
  Lookahead lookahead(8);
  spent(lookahead, 20ms, 1ms, 100);
  ASSERT_EQ(lookahead.limit(), 8u);
  EXPECT_GT(spent(lookahead, 100us, 1ms, 100)[2], 80);
}

TEST(Lookahead, WithOneFewerItTriesSeldomWhereThatFails) {
  Lookahead lookahead(4);
  EXPECT_GT(spent(lookahead, 2900us, 1ms, 1000)[4], 970);
}

TEST(Lookahead, OneSlowStepAmongManyChangesNothing) {
  Lookahead lookahead(4);
  for (int i = 0; i < 10 * Lookahead::kTurns; ++i) {
    lookahead.took(i % Lookahead::kTurns == 0 ? 900us : 0us, 1ms);
    EXPECT_EQ(lookahead.limit(), 2u);
  }
}

}  // namespace
}  // namespace cairn::worker
