// float64 at the data edge: it is read, kept and cast, and nothing is computed in it.
#include <gmock/gmock.h>

#include <cstring>
#include <optional>

#include "core/graph/ops.h"
#include "data/stage/dataset_wire.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kFine = 1 + 1e-12;  // no float32 holds it

std::vector<double> doubles_of(const Dataset& dataset) {
  std::vector<double> all;
  auto iterator = open(dataset);
  while (auto element = iterator->next()) {
    const auto values = element->front().values<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}
Dataset slices() {
  return Dataset::from_tensor_slices(
      {{"x", Tensor::of<double>({4}, std::vector<double>{kFine, -2.75, 3e300, 1e10})}});
}

TEST(Float64, IsReadFromEverySourceWithoutLoss) {
  TempFolder folder;
  const std::string csv = folder.write("a.csv", "1.000000000001\n-2\n1e300\n");
  EXPECT_THAT(doubles_of(Dataset::csv(csv, {.columns = {{"x", DType::kFloat64}}})),
              ElementsAre(kFine, -2, 1e300));
  std::string bytes(sizeof kFine, 0);
  std::memcpy(bytes.data(), &kFine, sizeof kFine);
  EXPECT_THAT(doubles_of(Dataset::records(folder.write("r", bytes), {{{"x", DType::kFloat64, 1}}})),
              ElementsAre(kFine));
  const auto begin = [] {
    return [left = 2]() mutable -> std::optional<Element> {
      if (left-- == 0) return std::nullopt;
      return Element{Tensor::of<double>({}, std::vector<double>{kFine})};
    };
  };
  EXPECT_THAT(doubles_of(Dataset::from_generator(begin, {{{"x", {DType::kFloat64, {}}}}, ""})),
              ElementsAre(kFine, kFine));
}

TEST(Float64, PassesThroughStagesAndTravels) {
  const std::vector<double> values = doubles_of(slices());
  EXPECT_EQ(values, (std::vector<double>{kFine, -2.75, 3e300, 1e10}));
  for (const Dataset& dataset :
       {slices().batch(3), slices().batch(3).unbatch(), slices().padded_batch(2),
        slices().window(2), slices().cache().repeat(1), slices().batch(3).rebatch({1, 2})})
    EXPECT_EQ(doubles_of(parse_dataset(serialize(dataset))), values);
}

TEST(Float64, IsCastAndOtherArithmeticRefusesIt) {
  const auto cast_to = [](DType dtype) {
    return slices().batch(4).map([dtype](const cairn::Features& features) {
      return Outputs{{"y", cast(features["x"], dtype)}};
    });
  };
  EXPECT_THAT((*open(cast_to(DType::kInt64))->next())[0].values<std::int64_t>(),
              ElementsAre(1, -2, INT64_MAX, 10'000'000'000));
  EXPECT_THAT((*open(cast_to(DType::kInt32))->next())[0].values<std::int32_t>(),
              ElementsAre(1, -2, INT32_MAX, INT32_MAX));
  EXPECT_THAT((*open(cast_to(DType::kFloat32))->next())[0].values<float>(),
              ElementsAre(1, -2.75f, std::numeric_limits<float>::infinity(), 1e10f));
  const auto sum = [](const cairn::Features& features) {
    return Outputs{{"y", features["x"] + features["x"]}};
  };
  EXPECT_THAT(error_of([&] { slices().map(sum); }), HasSubstr("cast it to float32 first"));
}

}  // namespace
}  // namespace cairn::testing
