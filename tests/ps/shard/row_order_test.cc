// The places of rows in the order of their numbers, found while the table grows.
#include "ps/snapshot/row_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/base/random.h"

namespace cairn::ps {
namespace {

std::vector<std::uint32_t> places_by_row(const std::vector<std::int64_t>& rows) {
  std::vector<std::uint32_t> places(rows.size());
  std::iota(places.begin(), places.end(), 0u);
  std::sort(places.begin(), places.end(),
            [&](std::uint32_t a, std::uint32_t b) { return rows[a] < rows[b]; });
  return places;
}

// Distinct numbers in an order of no meaning, `apart` from each other on average.
std::vector<std::int64_t> numbers(std::size_t count, std::uint64_t apart, Random& random) {
  std::vector<std::int64_t> rows;
  std::int64_t row = -1;
  for (std::size_t i = 0; i < count; ++i)
    rows.push_back(row += 1 + static_cast<std::int64_t>(random.below(2 * apart - 1)));
  for (std::size_t i = count; i > 1; --i) std::swap(rows[i - 1], rows[random.below(i)]);
  return rows;
}

void expect_order(const std::vector<std::int64_t>& all, Random& random) {
  const auto wanted = places_by_row(all);
  std::vector<std::int64_t> rows = all;
  RowOrder order;
  order.begin(static_cast<std::int64_t>(all.size()),
              all.empty() ? 0 : *std::max_element(all.begin(), all.end()));
  std::vector<std::uint32_t> found;
  for (std::size_t i = random.below(5); i > 0; --i) {
    order.prepare(rows, 1 + static_cast<std::int64_t>(random.below(all.size() + 1)));
    rows.push_back(
        static_cast<std::int64_t>(random.below(1000)));  // it moves, and is not looked at
    rows.shrink_to_fit();
  }
  while (found.size() < all.size()) {
    const std::size_t end = std::min(all.size(), found.size() + 1 + random.below(9000));
    const auto some =
        order.sorted(rows, static_cast<std::int64_t>(found.size()), static_cast<std::int64_t>(end));
    found.insert(found.end(), some.begin(), some.end());
  }
  EXPECT_EQ(found, wanted);
}

TEST(RowOrder, IsThatOfTheNumbersHoweverTheyAreSpread) {
  Random random(1);
  for (const std::size_t count : {0u, 1u, 2u, 4095u, 8192u, 100'000u})
    for (const std::uint64_t apart : {1u, 7u, 1u << 20}) {
      SCOPED_TRACE(testing::Message() << count << " rows, " << apart << " apart");
      expect_order(numbers(count, apart, random), random);
    }
}

TEST(RowOrder, IsRightWhereOneNumberIsFarFromTheOthers) {
  Random random(2);
  auto rows = numbers(50'000, 3, random);
  rows[17] = (std::int64_t{1} << 40) + 5;
  expect_order(rows, random);
}

TEST(RowOrder, IsOfThosePlacesAloneThatAreWanted) {
  Random random(3);
  const auto rows = numbers(30'000, 5, random);
  std::vector<std::uint64_t> only(rows.size() / 64 + 1);
  for (std::size_t place = 0; place < rows.size(); ++place)
    if (random.below(50) == 0) only[place / 64] |= std::uint64_t{1} << (place % 64);
  std::vector<std::uint32_t> wanted;
  for (const std::uint32_t place : places_by_row(rows))
    if ((only[place / 64] >> (place % 64) & 1) != 0) wanted.push_back(place);
  RowOrder order;
  order.begin(30'000, *std::max_element(rows.begin(), rows.end()), &only);
  while (!order.prepared()) order.prepare(rows, 7000);
  ASSERT_EQ(order.size(), static_cast<std::int64_t>(wanted.size()));
  const auto found = order.sorted(rows, 0, order.size());
  EXPECT_EQ(std::vector(found.begin(), found.end()), wanted);
}

TEST(RowOrder, BeginsAnew) {
  RowOrder order;
  const std::vector<std::int64_t> first{5, 1, 3}, second{2, 9};
  order.begin(3, 5);
  EXPECT_EQ(order.sorted(first, 0, 1)[0], 1u);
  order.begin(2, 9);
  EXPECT_FALSE(order.prepared());
  EXPECT_EQ(order.sorted(second, 0, 2)[1], 1u);
}

}  // namespace
}  // namespace cairn::ps
