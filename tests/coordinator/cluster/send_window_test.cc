#include "coordinator/cluster/send_window.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

// A lane that is kept full and takes so long for each of its closures.
struct BusyLane {
  explicit BusyLane(SendWindow made) : window(made) { fill(); }
  void fill() {
    if (under_way == 0) window.began(now);
    under_way = window.size();
  }
  void answer(int count, Duration each) {
    for (int i = 0; i < count; ++i) {
      now += each;
      window.answered(now);
      --under_way;
      if (under_way < window.size()) fill();
    }
  }
  SendWindow window;
  TimePoint now{};
  std::size_t under_way = 0;
};

TEST(SendWindow, BeginsWithWhatOverlapsAndOneMore) {
  EXPECT_EQ(SendWindow(1, 64).size(), 2u);
  EXPECT_EQ(SendWindow(4, 64).size(), 5u);
  EXPECT_EQ(SendWindow(4, 3).size(), 3u);
}

TEST(SendWindow, StaysThereForSlowClosures) {
  BusyLane lane(SendWindow(2, 64));
  lane.answer(100, std::chrono::milliseconds(50));
  EXPECT_EQ(lane.window.size(), 3u);
}

TEST(SendWindow, GrowsToTheMostForFastOnes) {
  BusyLane lane(SendWindow(2, 64));
  lane.answer(10, std::chrono::microseconds(20));
  EXPECT_EQ(lane.window.size(), 64u);
}

TEST(SendWindow, CoversTheTimeAheadInBetween) {
  BusyLane lane(SendWindow(2, 64));
  lane.answer(100, std::chrono::milliseconds(1));
  EXPECT_NEAR(static_cast<double>(lane.window.size()), 3 + 30, 1);
}

TEST(SendWindow, FollowsAChangeOfPace) {
  BusyLane lane(SendWindow(2, 64));
  lane.answer(1000, std::chrono::microseconds(20));
  lane.answer(50, std::chrono::milliseconds(20));
  EXPECT_LE(lane.window.size(), 5u);
}

TEST(SendWindow, TimeWithoutWorkDoesNotCount) {
  SendWindow window(2, 64);
  TimePoint now{};
  for (int i = 0; i < 100; ++i) {
    now += std::chrono::seconds(1);  // the program had nothing to do for the lane
    window.began(now);
    now += std::chrono::microseconds(50);
    window.answered(now);
  }
  EXPECT_EQ(window.size(), 64u);
}

}  // namespace
}  // namespace cairn
