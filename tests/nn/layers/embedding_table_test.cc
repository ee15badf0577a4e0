#include "nn/layers/embedding_table.h"

#include <gmock/gmock.h>

#include <array>
#include <limits>

#include "core/graph/ops.h"
#include "core/rows/layout.h"
#include "tests/nn/values.h"

namespace cairn::nn {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

TEST(EmbeddingTable, GivesEachKeyBelowItsNumberOfRowsARowOfItsOwn) {
  for (const std::int64_t dim : {1, 3, 16, 500}) {
    const EmbeddingTable table({.dim = dim});
    for (std::int64_t key = 1; key < table.rows() && key > 0; key = key * 3 + 1)
      ASSERT_EQ(table.key_of(table.row_of(key)), key) << dim;
  }
}

TEST(EmbeddingTable, SpreadsKeysThatFollowOneAnotherOverAllParts) {
  const EmbeddingTable table({.dim = 16});
  constexpr std::int64_t kParts = 8, kKeys = 8000;
  std::array<int, kParts> counts{};
  for (std::int64_t key = 5'000'000; key < 5'000'000 + kKeys; ++key)
    ++counts[static_cast<std::size_t>(table.row_of(key) / (table.rows() / kParts))];
  for (const int count : counts) EXPECT_NEAR(count, kKeys / kParts, 20);
}

TEST(EmbeddingTable, TakesAnyKeyOf64Bits) {
  const EmbeddingTable table({.name = "any_key", .dim = 2, .seed = 3});
  const std::vector<std::int64_t> keys{0, 7, -1, kLeast, std::int64_t{1} << 60};
  const Array vectors = table(Array(Tensor::of<std::int64_t>({5}, keys)));
  std::vector<std::int64_t> rows;
  for (const std::int64_t key : keys) {
    rows.push_back(table.row_of(key));
    EXPECT_TRUE(rows.back() >= 0 && rows.back() < table.rows()) << key;
  }
  EXPECT_EQ(numbers(vectors),
            numbers(table.table().gather(Array(Tensor::of<std::int64_t>({5}, rows)))));
}

}  // namespace
}  // namespace cairn::nn
