#include "tools/job/run/wide_rows.h"

#include <gmock/gmock.h>

#include <map>

namespace cairn::tools {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kGone = kRowGone;

// Columns that this does not name are gone.
ColumnRows rows_of(std::map<std::string, RowNumbers> all) {
  return [all](const std::string& column) -> std::optional<RowNumbers> {
    const auto found = all.find(column);
    return found == all.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(WideRows, FollowTheirColumnToItsNewPlaceInTheTable) {
  const WideLayout saved{{{"a", 2}, {"b", 3}}, {}}, now{{{"new", 4}, {"b", 3}, {"a", 2}}, {}};
  EXPECT_THAT(wide_rows(saved, now, rows_of({{"a", {0, 1}}, {"b", {0, 1, 2}}})),
              ElementsAre(7, 8, 4, 5, 6));
}

TEST(WideRows, FollowTheirValuesWithinAColumn) {
  const WideLayout saved{{{"a", 3}, {"b", 1}}, {}}, now{{{"a", 5}, {"b", 1}}, {}};
  EXPECT_THAT(wide_rows(saved, now, rows_of({{"a", {0, 4, kGone}}, {"b", {0}}})),
              ElementsAre(0, 4, kGone, 5));
}

TEST(WideRows, GoWithTheirColumn) {
  const WideLayout saved{{{"a", 2}, {"b", 1}}, {}};
  EXPECT_THAT(wide_rows(saved, {{{"b", 1}}, {}}, rows_of({{"b", {0}}})),
              ElementsAre(kGone, kGone, 0));
  // of as many rows, but of another meaning
  EXPECT_THAT(wide_rows(saved, saved, rows_of({{"b", {0}}})), ElementsAre(kGone, kGone, 2));
}

TEST(WideRows, OfACrossStayOnlyIfNoneOfItsColumnsHasChanged) {
  const WideLayout::Cross ab{{"a", "b"}, 0}, ac{{"a", "c"}, 3};
  const WideLayout saved{{{"a", 2}, {"b", 2}, {"c", 2}}, {ab, ac}};
  const WideLayout now{{{"a", 2}, {"b", 3}, {"c", 2}}, {ac, ab}};
  EXPECT_THAT(wide_rows(saved, now, rows_of({{"a", {0, 1}}, {"b", {1, 2}}, {"c", {0, 1}}})),
              ElementsAre(0, 1, 3, 4, 5, 6, kGone, kGone, kGone, kGone, 7, 8, 9));
}

}  // namespace
}  // namespace cairn::tools
