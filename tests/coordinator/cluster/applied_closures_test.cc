#include <gtest/gtest.h>

#include <set>

#include "coordinator/cluster/shard_client.h"
#include "core/base/random.h"

namespace cairn {
namespace {

// Against a set, whatever the order in which closures come.
TEST(AppliedClosures, HoldsWhatWasAddedAndAllBelowItsWatermark) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    AppliedClosures closures;
    std::set<std::uint64_t> added;
    std::uint64_t below = 0;
    for (int i = 0; i < 60; ++i) {
      if (random.below(8) == 0) {
        below = std::max(below, random.below(40));
        closures.raise(below);
      } else {
        const std::uint64_t one = random.below(50);
        added.insert(one);
        closures.add(one);
      }
      for (std::uint64_t closure = 0; closure < 52; ++closure)
        ASSERT_EQ(closures.contains(closure), closure < below || added.contains(closure))
            << closure << ", seed " << seed;
      for (std::size_t range = 0; range < closures.ranges.size(); ++range) {
        ASSERT_LT(closures.ranges[range].first, closures.ranges[range].second);
        if (range > 0) ASSERT_GT(closures.ranges[range].first, closures.ranges[range - 1].second);
      }
    }
  }
}

}  // namespace
}  // namespace cairn
