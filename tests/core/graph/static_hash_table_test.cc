#include "core/graph/static_hash_table.h"

#include <gtest/gtest.h>

#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

using testing::ids_of;
using testing::tensor;

std::vector<std::int64_t> integers(const Array& array) {
  const Tensor value = array.eval();
  const auto all = value.values<std::int64_t>();
  return {all.begin(), all.end()};
}

TEST(StaticHashTable, GivesTheValueOfAKeyAndTheDefaultForOthers) {
  const StaticHashTable table({ids_of({50, -3, 7}), tensor({3}, {5, 3, 7}), Tensor::scalar(-1.0f)});
  EXPECT_EQ(table.size(), 3);
  const Array keys = ids_of({7, 8, -3, 50, 51});
  const Tensor found = table.lookup(reshape(keys, {5, 1})).eval();
  EXPECT_EQ(found.shape(), Shape({5, 1}));
  EXPECT_TRUE(std::ranges::equal(found.values<float>(), std::vector<float>{7, -1, 3, 5, -1}));
}

TEST(StaticHashTable, HasKeysOfText) {
  const StaticHashTable table({Tensor::strings({3}, {"ni", "de", ""}), ids_of({2, 1, 0}),
                               Tensor::scalar(std::int64_t{-1})});
  const Array keys = Tensor::strings({4}, {"de", "n", "", "ni"});
  EXPECT_EQ(integers(table.lookup(keys)), (std::vector<std::int64_t>{1, -1, 0, 2}));
}

TEST(StaticHashTable, MayBeEmpty) {
  const StaticHashTable table({Tensor::zeros(DType::kInt64, {0}), Tensor::zeros(DType::kInt64, {0}),
                               Tensor::scalar(std::int64_t{4})});
  EXPECT_EQ(integers(table.lookup(ids_of({1, 2}))), (std::vector<std::int64_t>{4, 4}));
}

TEST(StaticHashTable, TakesAPairTwiceButNoKeyWithTwoValues) {
  const Tensor none = Tensor::scalar(std::int64_t{0});
  EXPECT_EQ(StaticHashTable({ids_of({1, 1}), ids_of({2, 2}), none}).size(), 1);
  EXPECT_THROW(StaticHashTable({ids_of({1, 1}), ids_of({2, 3}), none}), FailedPreconditionError);
}

TEST(StaticHashTable, RefusesWhatIsNoDictionary) {
  const Tensor keys = ids_of({1, 2}), none = Tensor::scalar(std::int64_t{0});
  EXPECT_THROW(StaticHashTable({tensor({2}, {1, 2}), keys, none}), InvalidArgumentError);
  EXPECT_THROW(StaticHashTable({keys, ids_of({1}), none}), InvalidArgumentError);
  EXPECT_THROW(StaticHashTable({keys, keys, Tensor::scalar(0.0f)}), InvalidArgumentError);
  EXPECT_THROW(StaticHashTable({keys, Tensor::strings({2}, {"a", "b"}), none}),
               InvalidArgumentError);
  EXPECT_THROW(StaticHashTable({keys, keys, none}).lookup(tensor({1}, {1})), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn
