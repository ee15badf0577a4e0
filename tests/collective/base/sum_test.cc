#include "collective/base/sum.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/collective/collective_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::Each;
using ::testing::ElementsAre;

std::vector<std::byte*> arrays_of(std::vector<Tensor>& tensors) {
  std::vector<std::byte*> arrays;
  for (Tensor& each : tensors) arrays.push_back(each.mutable_raw());
  return arrays;
}

TEST(ReduceAll, AddsInTheOrderOfTheRanksAndLeavesTheSameBitsEverywhere) {
  for (const std::int64_t elements : {1, 7, 4095, 4096, 4097, 30000}) {
    std::vector<Tensor> values;
    for (std::uint64_t rank = 0; rank < 5; ++rank) values.push_back(uneven(elements, 11 + rank));
    Tensor expected = values[0].clone();
    for (std::size_t rank = 1; rank < values.size(); ++rank)
      for (std::size_t i = 0; i < static_cast<std::size_t>(elements); ++i)
        expected.mutable_values<float>()[i] += values[rank].values<float>()[i];

    reduce_all(ReduceOp::kSum, DType::kFloat32, arrays_of(values),
               static_cast<std::size_t>(elements));

    for (const Tensor& each : values) EXPECT_TRUE(same_bits(each, expected)) << elements;
  }
}

// Element i of `all`, summed one value after another in the order that `order` fixes.
float sum_of(SumOrder order, const std::vector<Tensor>& values, std::size_t i, std::size_t all) {
  std::vector<float> own;
  for (const Tensor& each : values) own.push_back(each.values<float>()[i]);
  const std::size_t n = own.size();
  if (order == SumOrder::kPairs) {
    while (own.size() > 1) {
      std::vector<float> pairs;
      for (std::size_t k = 0; k < own.size(); k += 2)
        pairs.push_back(k + 1 < own.size() ? own[k] + own[k + 1] : own[k]);
      own = pairs;
    }
    return own[0];
  }
  const std::size_t first = order == SumOrder::kRing ? i / ((all + n - 1) / n) + 1 : 0;
  float sum = own[first % n];
  for (std::size_t k = 1; k < n; ++k) sum += own[(first + k) % n];
  return sum;
}

TEST(ReduceRange, AddsInTheOrderAskedForHoweverTheElementsAreCut) {
  for (const SumOrder order : {SumOrder::kRanks, SumOrder::kPairs, SumOrder::kRing})
    for (const std::int64_t elements : {1, 3, 5000, 20011})
      for (const std::int64_t cut : {elements, std::int64_t{4099}, std::int64_t{1000}}) {
        std::vector<Tensor> values;
        for (std::uint64_t rank = 0; rank < 6; ++rank) values.push_back(uneven(elements, 3 + rank));
        Tensor expected = values[0].clone();
        for (std::size_t i = 0; i < static_cast<std::size_t>(elements); ++i)
          expected.mutable_values<float>()[i] =
              sum_of(order, values, i, static_cast<std::size_t>(elements));

        for (std::int64_t begin = 0; begin < elements; begin += cut) {
          std::vector<std::byte*> arrays = arrays_of(values);
          for (std::byte*& array : arrays) array += static_cast<std::size_t>(begin) * sizeof(float);
          reduce_range(order, ReduceOp::kSum, DType::kFloat32, arrays,
                       {begin, std::min(cut, elements - begin), elements});
        }

        for (const Tensor& each : values)
          ASSERT_TRUE(same_bits(each, expected))
              << "order " << static_cast<int>(order) << ", " << elements << " by " << cut;
      }
}

TEST(ReduceRange, AMeanIsTheSumDividedInEveryOrder) {
  for (const SumOrder order : {SumOrder::kRanks, SumOrder::kPairs, SumOrder::kRing}) {
    std::vector<Tensor> values;
    for (float x : {1.0f, 2.0f, 4.0f})
      values.push_back(Tensor::of<float>({2}, std::vector<float>{x, -x}));
    reduce_range(order, ReduceOp::kMean, DType::kFloat32, arrays_of(values), {0, 2, 2});
    for (const Tensor& each : values)
      EXPECT_THAT(values_of<float>(each), ElementsAre(7.0f / 3.0f, -7.0f / 3.0f));
  }
}

TEST(ReduceAll, AMeanIsTheSumDividedByTheNumberOfMembers) {
  std::vector<Tensor> values;
  for (float x : {1.0f, 2.0f, 4.0f})
    values.push_back(Tensor::of<float>({2}, std::vector<float>{x, -x}));
  reduce_all(ReduceOp::kMean, DType::kFloat32, arrays_of(values), 2);
  for (const Tensor& each : values)
    EXPECT_THAT(values_of<float>(each), ElementsAre(7.0f / 3.0f, -7.0f / 3.0f));
}

TEST(ReduceAll, IntegersWrapAround) {
  constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
  std::vector<Tensor> values = {Tensor::scalar(kMost), Tensor::scalar(std::int32_t{2})};
  reduce_all(ReduceOp::kSum, DType::kInt32, arrays_of(values), 1);
  EXPECT_EQ(values[1].item<std::int32_t>(), std::numeric_limits<std::int32_t>::min() + 1);

  const std::vector<std::int64_t> large(100, std::int64_t{1} << 40);
  std::vector<Tensor> longs(3, Tensor());
  for (Tensor& each : longs) each = Tensor::of<std::int64_t>({100}, large);
  reduce_all(ReduceOp::kSum, DType::kInt64, arrays_of(longs), 100);
  EXPECT_THAT(values_of<std::int64_t>(longs[0]), Each(std::int64_t{3} << 40));
}

}  // namespace
}  // namespace cairn
