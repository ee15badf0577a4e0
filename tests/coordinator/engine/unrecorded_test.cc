#include "coordinator/engine/unrecorded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::uint64_t> numbers_of(const std::vector<UnrecordedClosure>& all) {
  std::vector<std::uint64_t> numbers;
  for (const UnrecordedClosure& one : all) numbers.push_back(one.sequence);
  return numbers;
}

// The journal knows of closures below 10, and of 12.
const AppliedClosures known{10, {{12, 13}}};

TEST(UnrecordedClosures, AreThoseThatAShardHasAndTheJournalDoesNot) {
  const AppliedClosures first{8, {{9, 14}}}, second{10, {{12, 13}, {20, 21}}};
  EXPECT_THAT(numbers_of(find_unrecorded(known, {{first}, {second}})), ElementsAre(10, 11, 13, 20));
  EXPECT_THAT(find_unrecorded(known, {{AppliedClosures{10, {{12, 13}}}}, {AppliedClosures{9, {}}}}),
              IsEmpty());
}

TEST(UnrecordedClosures, AreLackingOnThePsSomeShardOfWhichDoesNotHaveThem) {
  const AppliedClosures has{10, {{11, 12}}}, has_not{10, {}};
  const auto lacking = [](const std::vector<AppliedOnShards>& by_ps) {
    return find_unrecorded(known, by_ps).at(0).lacking;
  };
  EXPECT_THAT(lacking({{has, has}, {has}}), IsEmpty());
  EXPECT_THAT(lacking({{has, has_not}, {has}, {has_not}}), ElementsAre(0, 2));
  // A shard without rows is pushed to by no closure.
  EXPECT_THAT(lacking({{has, std::nullopt}, {std::nullopt}}), IsEmpty());
}

}  // namespace
}  // namespace cairn
