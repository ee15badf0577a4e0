// Feature columns and the statistics that they need.
#include <gmock/gmock.h>

#include <cmath>

#include "data/fit.h"
#include "data/hash.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

// The same rows as text, whose features the source makes, and as tensors, whose features a stage
// makes.
class Features : public ::testing::TestWithParam<bool> {
 protected:
  Dataset rows() {
    if (!GetParam())
      return Dataset::from_tensor_slices(
          {{"age", Tensor::of<std::int32_t>({3}, std::vector<std::int32_t>{17, 30, 64})},
           {"gain", Tensor::of<float>({3}, std::vector<float>{0, 9, -9})},
           {"job", Tensor::strings({3}, {"clerk", "sailor", "?"})},
           {"y", Tensor::of<std::int64_t>({3}, std::vector<std::int64_t>{1, 0, 1})}},
          "y");
    CsvSchema schema{.columns = {{"age", DType::kInt32},
                                 {"gain"},
                                 {"job", DType::kString},
                                 {"y", DType::kInt64}},
                     .label = {"y"}};
    return Dataset::csv(folder_.write("a.csv", "17,0,clerk,1\n30,9,sailor,0\n64,-9,?,1\n"), schema);
  }
  Element made(std::vector<FeatureColumn> columns) {
    return *open(rows().features(std::move(columns)).batch(3))->next();
  }
  TempFolder folder_;
};

TEST_P(Features, NumericsAreNormalisedSideBySide) {
  Element batch =
      made({FeatureColumn::numeric({{"age", 30, 2}, {.column = "gain", .log1p = true}})});
  EXPECT_EQ(batch[0].shape(), (Shape{3, 2}));
  float log10 = std::log(10.0f);
  EXPECT_THAT(batch[0].values<float>(),
              ElementsAre(-6.5f, 0, 0, FloatEq(log10), 17, FloatEq(-log10)));
  EXPECT_THAT(batch[1].values<std::int64_t>(), ElementsAre(1, 0, 1)) << "the label stays";
}

TEST_P(Features, VocabularyPutsTheUnseenFirstOrLast) {
  Element batch = made({FeatureColumn::vocabulary("job", {"sailor", "clerk"}),
                        FeatureColumn::vocabulary("job", {"sailor", "clerk"}, Oov::kLast, "last"),
                        FeatureColumn::vocabulary("age", {"30", "64"}, Oov::kFirst, "age_id")});
  EXPECT_THAT(batch[0].values<std::int64_t>(), ElementsAre(2, 1, 0));
  EXPECT_THAT(batch[1].values<std::int64_t>(), ElementsAre(1, 0, 2));
  EXPECT_THAT(batch[2].values<std::int64_t>(), ElementsAre(0, 1, 2));
  EXPECT_EQ(FeatureColumn::vocabulary("job", {"sailor", "clerk"}).ids(), 3);
}

TEST_P(Features, BucketsHashesAndCrosses) {
  Element batch = made({FeatureColumn::bucketised("age", {18, 30, 65}),
                        FeatureColumn::hashed("job", 1000), FeatureColumn::hashed("age", 1000),
                        FeatureColumn::crossed({"age_bucket", "job"}, 1 << 20),
                        FeatureColumn::crossed({"job", "age"}, 1 << 20)});
  EXPECT_THAT(batch[0].values<std::int64_t>(), ElementsAre(0, 2, 2));
  EXPECT_EQ(batch[1].values<std::int64_t>()[0], hash_bucket(text_hash("clerk"), 1000));
  EXPECT_EQ(batch[2].values<std::int64_t>()[0], hash_bucket(text_hash("17"), 1000))
      << "an integer hashes as its text";
  EXPECT_NE(batch[3].values<std::int64_t>()[0], batch[3].values<std::int64_t>()[1]);
  EXPECT_NE(batch[4].values<std::int64_t>()[0], batch[3].values<std::int64_t>()[0]);
}

INSTANTIATE_TEST_SUITE_P(OfTextAndTensors, Features, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "Text" : "Tensors"; });

TEST(Hash, NeverChanges) {  // ids in checkpoints hang on it
  EXPECT_EQ(text_hash(""), mix_bits(0xCBF29CE484222325ull));
  EXPECT_EQ(text_hash("a"), mix_bits(0xAF63DC4C8601EC8Cull));
}

TEST(Ragged, ColumnsBecomeIdsWithRowSplits) {
  TempFolder folder;
  CsvSchema schema{.columns = {{"tags", DType::kString, {}, false, '|'}, {"n", DType::kInt64}}};
  Dataset rows = Dataset::csv(folder.write("a.csv", "a|b,0\n,1\nc|a|zz,2\n"), schema)
                     .features({FeatureColumn::vocabulary("tags", {"a", "b", "c"})});
  Element batch = *open(rows.batch(3))->next();
  EXPECT_THAT(batch[0].values<std::int64_t>(), ElementsAre(1, 2, 3, 1, 0));
  EXPECT_THAT(batch[1].values<std::int64_t>(), ElementsAre(0, 2, 2, 5));
  EXPECT_EQ(rows.element_spec().columns[1].name, "tags/row_splits");
  auto iterator = open(rows);
  iterator->skip_to(2);
  Element last = *iterator->next();
  EXPECT_THAT(last[0].values<std::int64_t>(), ElementsAre(3, 1, 0));
  EXPECT_THAT(last[1].values<std::int64_t>(), ElementsAre(0, 3));
}

TEST(Fit, FindsMeansDeviationsAndVocabularies) {
  TempFolder folder;
  CsvSchema schema{.columns = {{"x"}, {"one", DType::kInt32}, {"w", DType::kString}}};
  Dataset rows = Dataset::csv(folder.write("a.csv", "1,5,b\n3,5,a\n5,5,b\n7,5,c\n"), schema);
  Fit found =
      fit(rows, {.numeric = {{.column = "x"}, {.column = "one"}}, .vocabularies = {"w", "one"}});
  EXPECT_EQ(found.examples, 4);
  EXPECT_FLOAT_EQ(found.numeric[0].mean, 4);
  EXPECT_FLOAT_EQ(found.numeric[0].stddev, std::sqrt(5.0f));
  EXPECT_EQ(found.numeric[1].stddev, 1) << "a constant column";
  EXPECT_THAT(found.vocabularies[0], ElementsAre("b", "a", "c"));
  EXPECT_THAT(found.vocabularies[1], ElementsAre("5"));
  EXPECT_THAT(fit_vocabulary(rows, "w", {.min_count = 2}), ElementsAre("b"));
  EXPECT_THAT(fit_vocabulary(rows, "w", {.max_size = 2}), ElementsAre("b", "a"));
  EXPECT_THAT(error_of([&] { fit_numeric(rows, {{.column = "w"}}); }),
              HasSubstr("\"w\" is string"));
}

}  // namespace
}  // namespace cairn::testing
