#include "data/dataset/hash_split.h"

#include <gmock/gmock.h>

#include <set>

#include "data/stage/dataset_wire.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

TEST(HashSplit, CutsADatasetInTwo) {
  const Dataset all = Dataset::range(10'000);
  const auto trained = values_of(hash_split(all, "value", 0, 0.8));
  const auto judged = values_of(hash_split(all, "value", 0.8, 1));
  EXPECT_NEAR(static_cast<double>(judged.size()), 2000, 150);
  std::set<std::int64_t> both(trained.begin(), trained.end());
  both.insert(judged.begin(), judged.end());
  EXPECT_EQ(both.size(), 10'000u);
  EXPECT_EQ(trained.size() + judged.size(), 10'000u);
}

TEST(HashSplit, SendsExamplesOfOneValueTheSameWayAsTextOrNumber) {
  TempFolder folder;
  const std::string path = folder.write("a.csv", "7,1\n8,2\n9,3\n7,4\n10,5\n11,6\n8,7\n");
  const auto part = [&](DType dtype) {
    const Dataset rows = Dataset::csv(path, {.columns = {{"user", dtype}, {"n", DType::kInt64}}});
    const Dataset half = hash_split(rows, "user", 0, 0.5);
    std::vector<std::int64_t> kept;
    const auto iterator = open(half);
    while (const auto row = iterator->next()) kept.push_back((*row)[1].item<std::int64_t>());
    return kept;
  };
  const auto kept = part(DType::kString);
  const std::set<std::int64_t> rows(kept.begin(), kept.end());
  EXPECT_EQ(rows.contains(1), rows.contains(4));
  EXPECT_EQ(rows.contains(2), rows.contains(7));
  EXPECT_EQ(part(DType::kInt64), kept);
  EXPECT_EQ(part(DType::kInt32), kept);
}

// Models were judged on them. By another implementation.
TEST(HashSplit, PlacesNeverChange) {
  EXPECT_EQ(values_of(hash_split(Dataset::range(40), "value", 0, 0.25)),
            (std::vector<std::int64_t>{16, 17, 18, 21, 27}));
}

TEST(HashSplit, GoesOnWhereItStoodAndTravels) {
  const Dataset half = hash_split(Dataset::range(100), "value", 0.25, 0.75);
  const auto all = read_all(half);
  const auto first = open(half);
  for (int i = 0; i < 10; ++i) first->next();
  const auto again = open(parse_dataset(serialize(half)), first->state());
  EXPECT_EQ(rest_of(*again), std::vector(all.begin() + 10, all.end()));
  EXPECT_EQ(cardinality(half), static_cast<std::int64_t>(all.size()));
}

TEST(HashSplit, RefusesBatchesRealNumbersAndWhatIsNoRange) {
  const Dataset rows =
      Dataset::from_tensor_slices({{"x", Tensor::of<float>({2}, std::vector<float>{1, 2})}});
  EXPECT_THAT(error_of([&] { hash_split(rows, "x", 0, 1); }), HasSubstr("\"x\" is float32"));
  EXPECT_THAT(error_of([] { hash_split(Dataset::range(9).batch(2), "value", 0, 1); }),
              HasSubstr("before batch()"));
  EXPECT_THAT(error_of([] { hash_split(Dataset::range(9), "value", 0.5, 0.5); }),
              HasSubstr("no range"));
  EXPECT_THAT(error_of([] { hash_split(Dataset::range(9), "valve", 0, 1); }),
              HasSubstr("\"value\""));
}

}  // namespace
}  // namespace cairn::testing
