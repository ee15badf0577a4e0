#include "collective/sum.h"

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
