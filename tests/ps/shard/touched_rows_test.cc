#include "ps/snapshot/touched_rows.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "core/base/random.h"

namespace cairn::ps {
namespace {

void expect_rows(const TouchedRows& touched, const std::set<std::int64_t>& wanted,
                 std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row)
    ASSERT_EQ(touched.has(row), wanted.count(row) > 0) << row << " of " << rows;
}

TEST(TouchedRows, AreThoseAddedInUpdatesOfAnySize) {
  for (const std::int64_t rows : {1, 63, 64, 65, 5000}) {
    TouchedRows touched(rows);
    std::set<std::int64_t> wanted;
    Random random(7);
    for (int update = 0; update < 40; ++update) {
      std::vector<std::int64_t> ids;
      for (std::uint64_t i = random.below(120); i > 0; --i)
        ids.push_back(
            static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rows) / 2 + 1)));
      touched.add(ids);
      wanted.insert(ids.begin(), ids.end());
      EXPECT_EQ(touched.none(), wanted.empty());
    }
    touched.settle();
    expect_rows(touched, wanted, rows);
  }
}

TEST(TouchedRows, ARangeMayBeginAndEndAnywhere) {
  for (const std::int64_t begin : {0, 1, 63, 64, 100})
    for (const std::int64_t end : {100, 127, 128, 129, 192}) {
      TouchedRows touched(192);
      touched.add(RowRange{begin, end});
      for (std::int64_t row = 0; row < 192; ++row)
        EXPECT_EQ(touched.has(row), row >= begin && row < end)
            << row << " of " << begin << " to " << end;
    }
}

TEST(TouchedRows, NothingIsTouchedAfterClear) {
  TouchedRows touched(1000);
  touched.add(std::vector<std::int64_t>{3, 900});
  touched.add(RowRange{10, 200});
  EXPECT_FALSE(touched.none());
  touched.clear();
  EXPECT_TRUE(touched.none());
  touched.settle();
  expect_rows(touched, {}, 1000);
}

}  // namespace
}  // namespace cairn::ps
