// The coordinator reads the activity in a worker's status by its name, never by its text.
#include "coordinator/engine/reported_closure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "core/base/json.h"
#include "rpc/server/closure_activity.h"

namespace cairn {
namespace {
using rpc::Activity;
using ::testing::IsEmpty;
using Stage = ClosureProgress::Stage;

Json status_of(const Json& closure) {
  return {{"lanes", Json::array({{{"closures", Json::array({closure})}}})}};
}

ReportedClosure read_one(const Json& closure) {
  return reported_closures(json_text(status_of(closure))).at(0).at(0);
}

TEST(ReportedClosure, ItsStageFollowsFromTheNameOfItsActivity) {
  const auto stage_of = [](Activity activity) {
    return read_one({{"activity", activity_name(activity)}, {"doing", "pushing to"}}).stage;
  };
  for (const auto activity :
       {Activity::kWaitingToRead, Activity::kReading, Activity::kWaitingForOthers})
    EXPECT_EQ(stage_of(activity), Stage::kReading);
  for (const auto activity : {Activity::kConnecting, Activity::kWaitingToPull, Activity::kPulling})
    EXPECT_EQ(stage_of(activity), Stage::kPulling);
  for (const auto activity : {Activity::kWaitingToPush, Activity::kPushing})
    EXPECT_EQ(stage_of(activity), Stage::kPushing);
  for (const auto activity : {Activity::kWaitingToCompute, Activity::kComputing})
    EXPECT_EQ(stage_of(activity), Stage::kComputing);
  EXPECT_EQ(stage_of(Activity::kHeld), Stage::kHeld);
}

TEST(ReportedClosure, AWorkerWithoutNamesOfActivitiesIsShownInItsOwnWords) {
  for (const Json& closure :
       {Json{{"sequence", 41}, {"doing", "pushing to"}, {"ps", 1}, {"shard", 0}, {"seconds", 2.5}},
        Json{{"sequence", 41},
             {"activity", "dreaming"},
             {"doing", "pushing to"},
             {"ps", 1},
             {"shard", 0},
             {"seconds", 2.5}}}) {
    const ReportedClosure read = read_one(closure);
    EXPECT_EQ(read.sequence, 41u);
    EXPECT_EQ(read.stage, Stage::kReading);
    EXPECT_EQ(read.doing, "pushing to");
    EXPECT_EQ(read.ps, 1);
    EXPECT_EQ(read.shard, 0);
    EXPECT_EQ(read.seconds, 2.5);
  }
}

TEST(ReportedClosure, NonsenseReadsAsNothing) {
  EXPECT_THAT(reported_closures(""), IsEmpty());
  EXPECT_THAT(reported_closures("[1]"), IsEmpty());
  EXPECT_THAT(reported_closures(R"({"lanes": [3, {"closures": 4}]})").at(1), IsEmpty());
  EXPECT_EQ(read_one(7).doing, "");
  EXPECT_EQ(read_one({{"sequence", -1}, {"activity", 5}}).sequence, 0u);
}

}  // namespace
}  // namespace cairn
