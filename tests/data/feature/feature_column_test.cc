// Feature columns and the statistics that they need.
#include <gmock/gmock.h>

#include <cmath>

#include "data/feature/hash.h"
#include "data/stage/fit.h"
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

TEST(Ragged, NumbersOfACellAreOneColumn) {
  TempFolder folder;
  CsvSchema schema{.columns = {{.name = "ids", .dtype = DType::kInt64, .separator = '|'},
                               {.name = "x", .separator = ' '}},
                   .unknown = "?"};
  const Dataset rows = Dataset::csv(folder.write("a.csv", "7|-3,0.5 1\n?,\n8,2\n"), schema);
  const std::string text =
      "int64[3]{7, -3, 8} int64[4]{0, 2, 2, 3} float32[3]{0.5, 1, 2} int64[4]{0, 2, 2, 3} ";
  EXPECT_EQ(to_text(*open(rows.batch(3))->next()), text);
  const std::vector<FeatureColumn> unchanged = {FeatureColumn::as_is("ids"),
                                                FeatureColumn::as_is("x")};
  EXPECT_EQ(to_text(*open(rows.features(unchanged).batch(3))->next()), text);
  EXPECT_EQ(to_text(*open(rows.take(3).features(unchanged).batch(3))->next()), text)
      << "from tensors";
  schema.columns[0].default_value = "1";
  EXPECT_THAT(error_of([&] { Dataset::csv("a.csv", schema); }), HasSubstr("several numbers"));
}

TEST(AsIs, KeepsNumbersOfAnyShapeAndRefusesText) {
  const Dataset rows =
      Dataset::from_tensor_slices({{"x", Tensor::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4})},
                                   {"s", Tensor::strings({2}, {"a", "b"})}});
  EXPECT_EQ(to_text(*open(rows.features({FeatureColumn::as_is("x", 0, "y")}).batch(2))->next()),
            "float32[2, 2]{1, 2, 3, 4} ");
  EXPECT_THAT(error_of([&] { rows.features({FeatureColumn::as_is("s")}); }),
              HasSubstr("\"s\" is a string"));
}

class Words : public ::testing::Test {
 protected:
  std::vector<std::int64_t> of(const std::string& text, Ngrams ngrams) const {
    const Dataset rows = Dataset::from_tensor_slices({{"t", Tensor::strings({1}, {text})}})
                             .features({FeatureColumn::words("t", kBuckets, ngrams)});
    const auto element = open(rows)->next();
    const auto values = element->front().values<std::int64_t>();
    return {values.begin(), values.end()};
  }
  static std::int64_t id(std::uint64_t hash) { return hash_bucket(hash, kBuckets); }
  static constexpr std::int64_t kBuckets = 1 << 20;
};

TEST_F(Words, AreRunsOfLettersAndDigitsWithoutTheirCase) {
  EXPECT_EQ(of("  It's 2 Caf\xC3\xA9s!", {}), of("it S 2 caf\xC3\xA9s", {}));
  EXPECT_THAT(of("Red red", {}), ElementsAre(id(text_hash("red")), id(text_hash("red"))));
  EXPECT_THAT(of("Red", {.keep_case = true}), ElementsAre(id(text_hash("Red"))));
  EXPECT_TRUE(of(" ,.!", {.words_max = 3, .characters_min = 1, .characters_max = 9}).empty());
}

TEST_F(Words, ThatFollowOneAnotherCountTogether) {
  const std::uint64_t a = text_hash("a"), b = text_hash("b"), c = text_hash("c");
  EXPECT_THAT(of("a b c", {.words_max = 3}),
              ElementsAre(id(a), id(b), id(cross_hash(a, b)), id(c), id(cross_hash(b, c)),
                          id(cross_hash(cross_hash(a, b), c))));
}

// A character of several bytes is one.
TEST_F(Words, HaveCharactersBetweenTheirEnds) {
  const auto piece = [](const char* text) { return id(cross_hash(0x63, text_hash(text))); };
  EXPECT_THAT(of("\xC3\xA9 x", {.words_max = 0, .characters_min = 2, .characters_max = 3}),
              ElementsAre(piece("<\xC3\xA9"), piece("<\xC3\xA9>"), piece("\xC3\xA9>"), piece("<x"),
                          piece("<x>"), piece("x>")));
}

TEST_F(Words, WantSomethingToCount) {
  EXPECT_THAT(error_of([] { FeatureColumn::words("t", 9, {.words_max = 0}); }),
              HasSubstr("neither words nor characters"));
  EXPECT_THAT(
      error_of([] { FeatureColumn::words("t", 9, {.characters_min = 3, .characters_max = 2}); }),
      HasSubstr("the least first"));
  EXPECT_THAT(error_of([] { FeatureColumn::words("t", 0); }), HasSubstr("at least 1"));
  EXPECT_THAT(error_of([] { Dataset::range(3).features({FeatureColumn::words("value", 9)}); }),
              HasSubstr("one text per example"));
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
