#include "coordinator/dispatch/least_loaded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/base/random.h"

namespace cairn {
namespace {

TEST(LeastLoaded, NobodyIsFirstOfNone) {
  LeastLoaded lanes;
  EXPECT_EQ(lanes.first(), std::nullopt);
  lanes.remove(3);
  lanes.put(3, 1);
  lanes.remove(3);
  EXPECT_EQ(lanes.first(), std::nullopt);
}

TEST(LeastLoaded, EqualsTakeTurns) {
  LeastLoaded lanes;
  for (std::size_t who : {2, 0, 1}) lanes.put(who, 0);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < 6; ++i) {
    order.push_back(*lanes.first());
    lanes.put(order.back(), i / 3 + 1);
  }
  EXPECT_EQ(order, (std::vector<std::size_t>{2, 0, 1, 2, 0, 1}));
}

TEST(LeastLoaded, WhatIsKnownAlreadyCostsNobodyHisPlace) {
  LeastLoaded lanes;
  lanes.put(0, 5);
  lanes.put(1, 5);
  lanes.put(0, 5);
  EXPECT_EQ(lanes.first(), 0u);
}

TEST(LeastLoaded, FirstHasTheLeastAfterAnyHistory) {
  constexpr std::size_t kMembers = 50, kLoads = 20;
  LeastLoaded lanes;
  std::map<std::size_t, std::size_t> loads;
  Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t who = random.below(kMembers);
    if (random.below(4) == 0) {
      lanes.remove(who);
      loads.erase(who);
    } else {
      loads[who] = random.below(kLoads);
      lanes.put(who, loads[who]);
    }
    const auto first = lanes.first();
    ASSERT_EQ(first.has_value(), !loads.empty());
    if (!first) continue;
    const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
    ASSERT_EQ(loads.at(*first), std::min_element(loads.begin(), loads.end(), less)->second);
  }
}

}  // namespace
}  // namespace cairn
