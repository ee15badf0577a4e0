#include "coordinator/cluster/flapping.h"

#include <gmock/gmock.h>

#include <vector>

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;

TEST(Flapping, EachLossWithoutWorkIsWaitedForLongerUpToABound) {
  Flapping task;
  std::vector<Duration> pauses;
  for (int i = 0; i < 5; ++i) {
    task.lost(TimePoint(seconds(i)), 7, true);
    pauses.push_back(task.pause());
  }
  EXPECT_THAT(pauses, ElementsAre(Duration(0), milliseconds(20), milliseconds(40), milliseconds(80),
                                  milliseconds(160)));
  for (int i = 0; i < 1000; ++i) task.lost(TimePoint(seconds(5)), 7, true);
  EXPECT_EQ(task.pause(), seconds(10));
}

TEST(Flapping, ItsTimeRunsOnFromTheFirstLoss) {
  Flapping task;
  task.lost(TimePoint(seconds(1)), 0, true);
  EXPECT_FALSE(task.out_of_patience(TimePoint(minutes(60)), 0, minutes(10))) << "it is only away";
  for (int i = 2; i < 5; ++i) task.lost(TimePoint(seconds(i)), 0, true);
  EXPECT_EQ(task.since(), TimePoint(seconds(1)));
  EXPECT_FALSE(task.out_of_patience(TimePoint(minutes(10)), 0, minutes(10)));
  EXPECT_TRUE(task.out_of_patience(TimePoint(minutes(11)), 0, minutes(10)));
  EXPECT_FALSE(task.out_of_patience(TimePoint(minutes(11)), 1, minutes(10)))
      << "an answer came after its last loss";
}

TEST(Flapping, WorkThatIsDoneOrNotWantedBeginsTheCountAnew) {
  Flapping task;
  for (const bool wanted : {true, true, false}) task.lost(TimePoint(seconds(2)), 3, wanted);
  EXPECT_EQ(task.losses(), 1u);
  task.lost(TimePoint(seconds(3)), 3, true);
  EXPECT_EQ(task.losses(), 2u);
  task.lost(TimePoint(seconds(9)), 4, true);
  EXPECT_EQ(task.losses(), 1u);
  EXPECT_EQ(task.since(), TimePoint(seconds(9)));
}

}  // namespace
}  // namespace cairn
