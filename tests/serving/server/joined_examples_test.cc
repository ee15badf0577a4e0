#include "serving/server/joined_examples.h"

#include <gtest/gtest.h>

namespace cairn::serving::testing {
namespace {

ElementSpec spec() {
  return {{{"x", {DType::kFloat32, {Shape::kUnknown, 2}}},
           {"ids", {DType::kInt32, {Shape::kUnknown}}},
           {"ids/row_splits", {DType::kInt64, {Shape::kUnknown}}},
           {"word", {DType::kString, {Shape::kUnknown}}}},
          ""};
}

template <typename T>
Tensor of(Shape shape, std::vector<T> values) {
  return Tensor::of<T>(std::move(shape), std::span<const T>(values));
}

TEST(JoinedExamplesTest, AreThoseOfAllPartsInTheirOrder) {
  const Element a{of<float>({1, 2}, {1, 2}), of<std::int32_t>({2}, {5, 6}),
                  of<std::int64_t>({2}, {0, 2}), Tensor::strings({1}, {"a"})};
  const Element b{of<float>({2, 2}, {3, 4, 5, 6}), of<std::int32_t>({1}, {7}),
                  of<std::int64_t>({3}, {0, 0, 1}), Tensor::strings({2}, {"b", "c"})};
  const Element all = joined_examples(spec(), {&a, &b}, 3);
  EXPECT_EQ(all[0].to_string(), "float32[3, 2]{1, 2, 3, 4, 5, 6}");
  EXPECT_EQ(all[1].to_string(), "int32[3]{5, 6, 7}");
  EXPECT_EQ(all[2].to_string(), "int64[4]{0, 2, 2, 3}");
  EXPECT_EQ(all[3].string_values()[2], "c");
}

TEST(JoinedExamplesTest, AreFilledUpWithCopiesOfTheLastAndWithoutRaggedValues) {
  const Element a{of<float>({1, 2}, {1, 2}), of<std::int32_t>({2}, {5, 6}),
                  of<std::int64_t>({2}, {0, 2}), Tensor::strings({1}, {"a"})};
  const Element all = joined_examples(spec(), {&a}, 3);
  EXPECT_EQ(all[0].to_string(), "float32[3, 2]{1, 2, 1, 2, 1, 2}");
  EXPECT_EQ(all[1].to_string(), "int32[2]{5, 6}");
  EXPECT_EQ(all[2].to_string(), "int64[4]{0, 2, 2, 2}");
  EXPECT_EQ(all[3].string_values()[2], "a");
}

TEST(ComputedAsTest, IsAtMostHalfAsManyAgainAndOneOfTwoInAnOctave) {
  std::int64_t before = 0;
  int sizes = 0;
  for (std::int64_t n = 1; n <= 4096; ++n) {
    const std::int64_t as = computed_as(n);
    ASSERT_GE(as, n);
    ASSERT_LE(2 * as, 3 * n) << n;
    ASSERT_EQ(computed_as(as), as);
    sizes += as != before;
    before = as;
  }
  EXPECT_LE(sizes, 24);
}

}  // namespace
}  // namespace cairn::serving::testing
