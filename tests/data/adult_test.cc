// The real Adult files, whole.
#include <gmock/gmock.h>
#include <zlib.h>

#include "data/stage/fit.h"
#include "testing/adult_schema.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

std::pair<std::int64_t, std::int64_t> rows_and_positives(const Dataset& dataset) {
  std::int64_t rows = 0, positives = 0;
  std::size_t label = dataset.element_spec().find("income");
  auto iterator = open(dataset.batch(1000));
  while (auto batch = iterator->next()) {
    rows += (*batch)[label].shape()[0];
    for (float y : (*batch)[label].values<float>()) positives += y == 1.0f ? 1 : 0;
  }
  return {rows, positives};
}

TEST(Adult, EveryRowParsesWithItsLabel) {
  EXPECT_EQ(rows_and_positives(Dataset::csv(kAdultTrain, adult_schema())),
            std::pair(std::int64_t{32561}, std::int64_t{7841}));
  EXPECT_EQ(rows_and_positives(Dataset::csv(kAdultTest, adult_schema()).features(adult_features())),
            std::pair(std::int64_t{16281}, std::int64_t{3846}));
  EXPECT_EQ(cardinality(Dataset::csv({kAdultTrain, kAdultTest}, adult_schema())), 32561 + 16281);
}

TEST(Adult, CompressedAndPlainReadTheSame) {
  TempFolder folder;
  std::string text(8 << 20, '\0');
  gzFile file = gzopen(kAdultTest.c_str(), "rb");
  text.resize(
      static_cast<std::size_t>(gzread(file, text.data(), static_cast<unsigned>(text.size()))));
  gzclose(file);
  Dataset plain = Dataset::csv(folder.write("adult.test", text), adult_schema());
  EXPECT_EQ(read_all(plain.batch(500)),
            read_all(Dataset::csv(kAdultTest, adult_schema()).batch(500)));
}

TEST(Adult, ShardsHoldEveryRowOnce) {
  std::pair<std::int64_t, std::int64_t> all{0, 0};
  for (std::int64_t i = 0; i < 3; ++i) {
    auto [rows, positives] = rows_and_positives(Dataset::csv(kAdultTrain, adult_schema())
                                                    .shard(3, i)
                                                    .features(adult_features())
                                                    .shuffle(10'000, 1));
    all.first += rows;
    all.second += positives;
  }
  EXPECT_EQ(all, std::pair(std::int64_t{32561}, std::int64_t{7841}));
}

TEST(Adult, StatisticsAreTheKnownOnes) {
  Fit found = fit(Dataset::csv(kAdultTrain, adult_schema()),
                  {.numeric = {{.column = "age"}}, .vocabularies = kAdultText});
  EXPECT_NEAR(found.numeric[0].mean, 38.5816f, 1e-3);
  EXPECT_NEAR(found.numeric[0].stddev, 13.6402f, 1e-3);
  std::vector<std::size_t> sizes;
  for (const auto& vocabulary : found.vocabularies) sizes.push_back(vocabulary.size());
  EXPECT_THAT(sizes, ::testing::ElementsAre(9, 16, 7, 15, 6, 5, 2, 42))
      << "with \"?\" as a value of its own";
  EXPECT_EQ(found.vocabularies[0].front(), "Private");
}

}  // namespace
}  // namespace cairn::testing
