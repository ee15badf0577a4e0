// Stages that put elements and datasets together, and take them apart.
#include <gmock/gmock.h>

#include "core/graph/ops.h"
#include "data/stage/dataset_wire.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Dataset from(std::int64_t first, std::int64_t count) {
  return Dataset::range(first + count).skip(first);
}
Dataset named(const std::string& name, std::vector<std::int64_t> values) {
  const auto rows = static_cast<std::int64_t>(values.size());
  return Dataset::from_tensor_slices({{name, Tensor::of<std::int64_t>({rows}, values)}});
}
auto odd() {
  return [](const cairn::Features& features) {
    return floor_mod(features["value"], Array(std::int64_t{2})) == Array(std::int64_t{1});
  };
}
// It is counted as it is read, and means the same when it has travelled.
std::vector<std::string> read_twice(const Dataset& dataset) {
  const std::vector<std::string> all = read_all(dataset);
  EXPECT_EQ(read_all(parse_dataset(serialize(dataset))), all);
  EXPECT_EQ(cardinality(dataset), static_cast<std::int64_t>(all.size()));
  return all;
}

TEST(Concatenate, ReadsOneDatasetAfterTheOther) {
  EXPECT_THAT(values_of(from(0, 3).concatenate(from(10, 2)).concatenate(from(0, 1))),
              ElementsAre(0, 1, 2, 10, 11, 0));
  EXPECT_THAT(read_twice(from(0, 3).batch(2).concatenate(from(8, 3).batch(3))),
              ElementsAre("int64[2]{0, 1} ", "int64[1]{2} ", "int64[3]{8, 9, 10} "));
  EXPECT_EQ(cardinality(from(0, 3).concatenate(from(0, 1).repeat())), kInfiniteCardinality);
}

TEST(Concatenate, KnowsOnlyTheDimensionsThatBothHave) {
  const auto rows = [](std::int64_t n) {
    return Dataset::range(8).batch(n, {.drop_remainder = true});
  };
  EXPECT_EQ(rows(2).concatenate(rows(4)).element_spec(), Dataset::range(8).batch(2).element_spec());
  EXPECT_EQ(rows(2).concatenate(rows(2)).element_spec(), rows(2).element_spec());
}

TEST(Concatenate, RefusesOtherColumnsAndBatchesBehindExamples) {
  EXPECT_THAT(error_of([] { named("a", {1}).concatenate(named("b", {1})); }),
              AllOf(HasSubstr("concatenate: "), HasSubstr("{a: int64[]} and {b: int64[]}")));
  EXPECT_THAT(error_of([] { from(0, 2).concatenate(from(0, 2).batch(2)); }),
              HasSubstr("are batches"));
}

TEST(Concatenate, GoesAsDeepAsTheWireDoes) {
  Dataset nested = from(0, 1);
  const std::string error = error_of([&nested] {
    for (int i = 0; i < 10; ++i) nested = from(0, 1).concatenate(nested);
  });
  EXPECT_THAT(error, HasSubstr("6 deep at most"));
  EXPECT_EQ(read_twice(nested).size(), 7u);
}

TEST(Zip, PutsColumnsSideBySideUntilTheShortestEnds) {
  EXPECT_THAT(read_twice(Dataset::zip(
                  {named("a", {1, 2, 3}), named("b", {5, 6}).repeat(), named("c", {7, 8, 9, 10})})),
              ElementsAre("int64[]{1} int64[]{5} int64[]{7} ", "int64[]{2} int64[]{6} int64[]{8} ",
                          "int64[]{3} int64[]{5} int64[]{9} "));
  EXPECT_THAT(read_twice(Dataset::zip({named("a", {1, 2, 3}).batch(2), named("b", {5}).batch(9)})),
              ElementsAre("int64[2]{1, 2} int64[1]{5} "));
}

TEST(Zip, RefusesColumnsOfOneName) {
  EXPECT_THAT(error_of([] {
                Dataset::zip({named("a", {1}), named("a", {1})});
              }),
              HasSubstr("\"a\""));
}

TEST(SampleFromDatasets, DrawsByWeightUntilAllHaveEnded) {
  const Dataset drawn = Dataset::sample_from_datasets({from(0, 300), from(1'000, 100)}, {3, 1}, 7);
  std::vector<std::int64_t> all = values_of(drawn);
  EXPECT_EQ(all.size(), 400u);
  const auto of_second = std::ranges::count_if(all.begin(), all.begin() + 200,
                                               [](std::int64_t value) { return value >= 1'000; });
  EXPECT_GT(of_second, 30);
  EXPECT_LT(of_second, 70);
  EXPECT_EQ(values_of(drawn), all);
  std::stable_partition(all.begin(), all.end(), [](std::int64_t value) { return value < 1'000; });
  EXPECT_EQ(all, values_of(from(0, 300).concatenate(from(1'000, 100))));
  read_twice(drawn.take(20));
}

TEST(SampleFromDatasets, StopsAtTheFirstThatIsEmptyIfAsked) {
  const Dataset drawn =
      Dataset::sample_from_datasets({from(0, 1'000), from(0, 3)}, {}, 1, /*stop_on_empty=*/true);
  EXPECT_LT(values_of(drawn).size(), 40u);
  EXPECT_EQ(read_twice(drawn).size(), values_of(drawn).size());
}

TEST(SampleFromDatasets, WantsAWeightForEach) {
  EXPECT_THAT(error_of([] {
                Dataset::sample_from_datasets({from(0, 1), from(0, 1)}, {1});
              }),
              HasSubstr("1 weights for 2 datasets"));
  EXPECT_THAT(error_of([] { Dataset::sample_from_datasets({from(0, 1)}, {0}); }),
              HasSubstr("above 0"));
}

TEST(Filter, LeavesElementsOut) {
  EXPECT_THAT(values_of(Dataset::range(7).filter(odd())), ElementsAre(1, 3, 5));
  EXPECT_THAT(read_twice(Dataset::range(7).batch(2).filter([](const cairn::Features& features) {
                return reduce_sum(features["value"]) > Array(std::int64_t{4});
              })),
              ElementsAre("int64[2]{2, 3} ", "int64[2]{4, 5} ", "int64[1]{6} "));
  EXPECT_THAT(read_twice(Dataset::range(2).take(1).filter(odd())), IsEmpty());
}

TEST(Filter, WantsOneBool) {
  EXPECT_THAT(error_of([] {
                Dataset::range(4).batch(2).filter(
                    [](const cairn::Features& features) { return features["value"]; });
              }),
              HasSubstr("must return one bool, and returns int64[?]"));
}

TEST(TakeWhile, EndsWhereTheFunctionSaysSo) {
  const Dataset some = Dataset::range(9).repeat().take_while(
      [](const cairn::Features& features) { return features["value"] < Array(std::int64_t{4}); });
  EXPECT_EQ(read_twice(some).size(), 4u);
  EXPECT_THAT(values_of(some), ElementsAre(0, 1, 2, 3));
}

TEST(Map, TakesExamplesToo) {
  const Dataset squares = named("x", {1, 2, 3}).map([](const cairn::Features& features) {
    return Outputs{{"square", features["x"] * features["x"]}};
  });
  EXPECT_THAT(read_twice(squares.batch(2)), ElementsAre("int64[2]{1, 4} ", "int64[1]{9} "));
}

TEST(Unbatch, GivesTheRowsOfBatches) {
  const Dataset pairs = Dataset::range(5).batch(2).batch(2, {.drop_remainder = true});
  EXPECT_THAT(read_twice(pairs), ElementsAre("int64[2, 2]{0, 1, 2, 3} "));
  EXPECT_THAT(read_twice(pairs.unbatch()), ElementsAre("int64[2]{0, 1} ", "int64[2]{2, 3} "));
  EXPECT_THAT(values_of(pairs.unbatch().unbatch().batch(3)), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(Dataset::range(5).batch(2).unbatch().element_spec(), Dataset::range(5).element_spec());
}

TEST(Unbatch, RefusesExamplesAndColumnsOfDifferentLengths) {
  EXPECT_THAT(error_of([] { Dataset::range(3).unbatch(); }), HasSubstr("single examples"));
  const Dataset uneven = Dataset::range(4).batch(4).map([](const cairn::Features& features) {
    const Array all = features["value"];
    return Outputs{{"a", all}, {"b", concat({all, all}, 0)}};
  });
  EXPECT_THAT(error_of([&] { read_all(uneven.unbatch()); }),
              HasSubstr("4 rows in column \"a\", and 8 in \"b\""));
}

TEST(Batch, OfBatchesWantsThemOfOneShape) {
  EXPECT_THAT(error_of([] { read_all(Dataset::range(5).batch(2).batch(4)); }),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("first [2], element 2 [1]")));
}

class PaddedBatch : public ::testing::Test {
 protected:
  Dataset bags() const { return Dataset::libsvm(folder_.path("bags.svm")); }
  Dataset words() const {
    return Dataset::csv(
        folder_.path("words.csv"),
        {.columns = {{.name = "words", .dtype = DType::kString, .separator = '|'}}});
  }
  PaddedBatch() {
    folder_.write("bags.svm", "7 1:1 2:2 3:3\n8\n9 5:4\n");
    folder_.write("words.csv", "a|b\nc\n");
  }

 private:
  TempFolder folder_;
};

TEST_F(PaddedBatch, FillsUpRaggedColumns) {
  EXPECT_THAT(read_twice(bags().padded_batch(2)),
              ElementsAre("float32[2]{7, 8} int64[2, 3]{0, 1, 2, 0, 0, 0} "
                          "float32[2, 3]{1, 2, 3, 0, 0, 0} ",
                          "float32[1]{9} int64[1, 1]{4} float32[1, 1]{4} "));
  EXPECT_THAT(read_twice(words().padded_batch(9)),
              ElementsAre("string[2, 2]{\"a\"\"b\"\"c\"\"\"} "));
}

TEST_F(PaddedBatch, FillsUpDimensionsThatDiffer) {
  const Dataset rows = bags().shuffle(2).map([](const cairn::Features& features) {
    return Outputs{{"row", features["values"] * Array(2.0f)}};
  });
  EXPECT_THAT(error_of([&] { read_all(rows.batch(3)); }), HasSubstr("padded_batch()"));
  const std::vector<std::string> all = read_twice(rows.shuffle(3, 5).padded_batch(3));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0], AllOf(HasSubstr("float32[3, 3]"), HasSubstr("2, 4, 6"), HasSubstr("0, 0, 0"),
                            HasSubstr("8, 0, 0")));
}

TEST(Window, BatchesElementsThatMayOverlap) {
  const Dataset five = Dataset::range(5);
  EXPECT_THAT(read_twice(five.window(3, {.shift = 2})),
              ElementsAre("int64[3]{0, 1, 2} ", "int64[3]{2, 3, 4} ", "int64[1]{4} "));
  EXPECT_THAT(read_twice(five.window(2, {.shift = 1, .stride = 2, .drop_remainder = true})),
              ElementsAre("int64[2]{0, 2} ", "int64[2]{1, 3} ", "int64[2]{2, 4} "));
  EXPECT_THAT(read_twice(five.window(1, {.shift = 3})),
              ElementsAre("int64[1]{0} ", "int64[1]{3} "));
  EXPECT_EQ(read_twice(five.window(2)), read_all(five.batch(2)));
}

TEST(FromTensors, IsOneElement) {
  const Dataset pair =
      Dataset::from_tensors({{"x", Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{1, 2})},
                             {"y", Tensor::scalar(std::int64_t{3})}},
                            "y");
  EXPECT_THAT(read_twice(pair), ElementsAre("int64[2]{1, 2} int64[]{3} "));
  EXPECT_THAT(read_twice(pair.repeat(2).batch(2)),
              ElementsAre("int64[2, 2]{1, 2, 1, 2} int64[2]{3, 3} "));
}

TEST(ListFiles, AreInTheOrderOfTheirNames) {
  TempFolder folder;
  for (const char* name : {"part-2", "part-10", "part-1", "other"}) folder.write(name, "");
  EXPECT_THAT(list_files(folder.path("part-*")),
              ElementsAre(folder.path("part-1"), folder.path("part-10"), folder.path("part-2")));
  EXPECT_THAT(error_of([&] { list_files(folder.path("nothing-*")); }),
              AllOf(HasSubstr("NotFound"), HasSubstr("nothing-*")));
}

}  // namespace
}  // namespace cairn::testing
