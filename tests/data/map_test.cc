// map(): a traced function of a batch, inside the description.
#include <gmock/gmock.h>

#include "core/graph/ops.h"
#include "data/dataset_wire.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Dataset numbers() {
  return Dataset::from_tensor_slices({{"x", Tensor::of<float>({3}, std::vector<float>{1, 2, 3})},
                                      {"y", Tensor::of<float>({3}, std::vector<float>{0, 1, 0})}},
                                     "y");
}

TEST(Map, RunsOnEachBatchAndPassesTheLabelOn) {
  Dataset dataset = numbers().batch(2).map([](const cairn::Features& features) {
    return Outputs{{"square", features["x"] * features["x"]}};
  });
  EXPECT_EQ(dataset.element_spec().label, "y");
  auto iterator = open(dataset);
  EXPECT_THAT((*iterator->next())[0].values<float>(), ElementsAre(1, 4));
  Element last = *iterator->next();
  EXPECT_THAT(last[dataset.element_spec().find("square")].values<float>(), ElementsAre(9));
  EXPECT_THAT(last[dataset.element_spec().find("y")].values<float>(), ElementsAre(0));
  EXPECT_FALSE(iterator->next());
}

TEST(Map, MayReplaceTheLabelAndTravels) {
  Dataset dataset = numbers().batch(3).map([](const cairn::Features& features, const Array& label) {
    return Outputs{{"x", features["x"]}, {"y", label * Array(2.0f)}};
  });
  Dataset arrived = parse_dataset(serialize(dataset));
  EXPECT_EQ(read_all(arrived), read_all(dataset));
  EXPECT_THAT((*open(arrived)->next())[1].values<float>(), ElementsAre(0, 2, 0));
}

TEST(Map, NamesItsOutputs) {
  auto same = [](const cairn::Features& features) { return Outputs{{"", features["x"]}}; };
  EXPECT_THAT(error_of([&] { numbers().batch(2).map(same); }), HasSubstr("an output has no name"));
}

}  // namespace
}  // namespace cairn::testing
