// Each stage yields the elements that its call promises.
#include <gmock/gmock.h>

#include <numeric>

#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Tensor ints(std::vector<std::int64_t> values) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

TEST(Range, CountsAndThenStaysAtItsEnd) {
  auto iterator = open(Dataset::range(2));
  EXPECT_EQ((*iterator->next())[0].item<std::int64_t>(), 0);
  EXPECT_EQ((*iterator->next())[0].item<std::int64_t>(), 1);
  EXPECT_FALSE(iterator->next());
  EXPECT_FALSE(iterator->next());
  EXPECT_EQ(iterator->ordinal(), 2);
}

TEST(Batch, LastOneIsShortOrDropped) {
  auto shapes = [](const Dataset& dataset) {
    std::vector<std::int64_t> sizes;
    auto iterator = open(dataset);
    while (auto element = iterator->next()) sizes.push_back((*element)[0].shape()[0]);
    return sizes;
  };
  EXPECT_THAT(shapes(Dataset::range(7).batch(3)), ElementsAre(3, 3, 1));
  EXPECT_THAT(shapes(Dataset::range(7).batch(3, {.drop_remainder = true})), ElementsAre(3, 3));
  EXPECT_EQ(Dataset::range(7).batch(3).element_spec().columns[0].type.shape,
            Shape{Shape::kUnknown});
  EXPECT_EQ(
      Dataset::range(7).batch(3, {.drop_remainder = true}).element_spec().columns[0].type.shape,
      Shape{3});
}

TEST(Batch, SpansTheEpochsOfARepeatBelow) {
  EXPECT_THAT(values_of(Dataset::range(3).repeat(2).batch(4)), ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(Batch, MoreBytesThanTheOpenerAllowsAreRefusedBeforeTheyAreRead) {
  OpenOptions options;
  options.buffer_bytes_max = 1 << 20;
  const Dataset endless = Dataset::range(std::int64_t{1} << 60);
  for (const Dataset& greedy :
       {endless.batch(std::int64_t{1} << 31), endless.shuffle(std::int64_t{1} << 60)}) {
    try {
      open(greedy, {}, options)->next();
      ADD_FAILURE() << "it was read";
    } catch (const ResourceExhaustedError& error) {
      EXPECT_THAT(error.what(), HasSubstr("takes more than 1048576 bytes"));
    }
  }
}

TEST(TakeSkipShard, PickByPlace) {
  EXPECT_THAT(values_of(Dataset::range(10).skip(3).take(4)), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(values_of(Dataset::range(2).skip(5)), IsEmpty());
  EXPECT_THAT(values_of(Dataset::range(10).shard(3, 1)), ElementsAre(1, 4, 7));
  EXPECT_THAT(values_of(Dataset::range(10).batch(2).shard(2, 1)), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(values_of(Dataset::range(10).shard(
                  InputContext{.num_input_pipelines = 4, .input_pipeline_id = 3})),
              ElementsAre(3, 7));
}

TEST(Deal, CutsEachBatchIntoAPieceForEveryReplica) {
  const Dataset dealt = Dataset::range(9).batch(5).deal(3, Deal::kCut);
  EXPECT_THAT(read_all(dealt), ElementsAre("int64[2]{0, 1} ", "int64[2]{2, 3} ", "int64[1]{4} ",
                                           "int64[2]{5, 6} ", "int64[2]{7, 8} ", "int64[0]{} "));
  const Dataset even = Dataset::range(8).batch(4, {.drop_remainder = true}).deal(2, Deal::kCut);
  EXPECT_EQ(even.element_spec().columns[0].type.shape, Shape{2});
  EXPECT_EQ(dealt.element_spec().columns[0].type.shape, Shape{Shape::kUnknown});
}

TEST(Deal, FillsUpTheLastTurnWithBatchesOfNoExamples) {
  EXPECT_THAT(read_all(Dataset::range(8).batch(2).deal(3, Deal::kInTurn)),
              ElementsAre("int64[2]{0, 1} ", "int64[2]{2, 3} ", "int64[2]{4, 5} ",
                          "int64[2]{6, 7} ", "int64[0]{} ", "int64[0]{} "));
  EXPECT_THAT(read_all(Dataset::range(4).batch(2).deal(2, Deal::kInTurn)),
              ElementsAre("int64[2]{0, 1} ", "int64[2]{2, 3} "));
  EXPECT_EQ(error_of([] { Dataset::range(4).deal(2, Deal::kCut); }),
            "InvalidArgument: the dataset's elements are single examples, which cannot be dealt "
            "out to several replicas: batch() it, by the global batch size");
}

TEST(Repeat, OfNothingEnds) {
  EXPECT_THAT(values_of(Dataset::range(0).repeat()), IsEmpty());
  EXPECT_THAT(values_of(Dataset::range(3).repeat(0)), IsEmpty());
}

TEST(Shuffle, PermutesBlocksAndChangesWithSeedAndEpoch) {
  auto one = values_of(Dataset::range(100).shuffle(10, 7));
  for (std::int64_t i = 0; i < 100; ++i)
    EXPECT_EQ(one[static_cast<std::size_t>(i)] / 10, i / 10) << "moved out of its block";
  EXPECT_EQ(one, values_of(Dataset::range(100).shuffle(10, 7)));
  EXPECT_NE(one, values_of(Dataset::range(100).shuffle(10, 8)));

  auto two = values_of(Dataset::range(100).shuffle(100, 7).repeat(2));
  EXPECT_NE(std::vector(two.begin(), two.begin() + 100), std::vector(two.begin() + 100, two.end()));
  std::vector<std::int64_t> second(two.begin() + 100, two.end()), all(100);
  std::sort(second.begin(), second.end());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(second, all);

  auto same =
      values_of(Dataset::range(100).shuffle(100, 7, {.reshuffle_each_iteration = false}).repeat(2));
  EXPECT_EQ(std::vector(same.begin(), same.begin() + 100),
            std::vector(same.begin() + 100, same.end()));
}

TEST(FromTensors, SlicesTheFirstDimension) {
  float rows[] = {1, 2, 3, 4, 5, 6};
  Dataset dataset = Dataset::from_tensor_slices({{"x", Tensor::of<float>({3, 2}, rows)},
                                                 {"name", Tensor::strings({3}, {"a", "b", "c"})},
                                                 {"y", ints({7, 8, 9})}},
                                                "y");
  auto iterator = open(dataset.skip(1).batch(5));
  Element batch = *iterator->next();
  EXPECT_THAT(batch[0].values<float>(), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(batch[1].string_values(), ElementsAre("b", "c"));
  EXPECT_THAT(batch[2].values<std::int64_t>(), ElementsAre(8, 9));
  EXPECT_EQ(dataset.element_spec().label, "y");
  EXPECT_EQ((*open(dataset)->next())[0].shape(), Shape{2});
}

TEST(Records, AreDealtOutFieldByField) {
  TempFolder folder;
  struct Record {
    float label;
    std::int32_t ids[2];
    std::uint8_t flag[4];
  } records[] = {
      {0.5f, {1, 2}, {1, 2, 3, 4}}, {1.5f, {3, 4}, {5, 6, 7, 8}}, {2.5f, {5, 6}, {9, 10, 11, 12}}};
  std::string path =
      folder.write("a.bin", std::string(reinterpret_cast<char*>(records), sizeof(records)));
  RecordSchema schema{
      {{"label", DType::kFloat32, 1}, {"ids", DType::kInt32, 2}, {"flag", DType::kUint8, 4}},
      "label"};
  Dataset dataset = Dataset::records({path, path}, schema);
  EXPECT_EQ(cardinality(dataset), 6);
  auto iterator = open(dataset.skip(1).batch(3));
  Element batch = *iterator->next();
  EXPECT_THAT(batch[0].values<float>(), ElementsAre(1.5f, 2.5f, 0.5f));
  EXPECT_THAT(batch[1].values<std::int32_t>(), ElementsAre(3, 4, 5, 6, 1, 2));
  EXPECT_EQ(batch[2].values<std::uint8_t>()[4], 9);

  std::string cut = folder.write("cut.bin", std::string(17, 'x'));
  EXPECT_THAT(error_of([&] { open(Dataset::records(cut, schema)); }),
              HasSubstr("17 bytes are not a whole number of records of 16"));
}

TEST(Cardinality, AgreesWithReading) {
  TempFolder folder;
  std::string path = folder.write("a.csv", "1\n2\n\nx\n4\n5");
  CsvSchema schema{.columns = {{"n", DType::kInt64}}};
  Dataset csv = Dataset::csv(path, schema, {OnError::kSkipAndCount});
  for (const Dataset& dataset :
       {csv, csv.shard(2, 1), csv.shuffle(2).batch(3), csv.repeat(3).skip(2).take(7),
        Dataset::range(10).shard(4, 3).repeat(2).batch(4, {true}),
        Dataset::range(10).repeat().take(25).batch(4), Dataset::range(0).repeat(),
        Dataset::range(10).batch(4).deal(3, Deal::kCut),
        Dataset::range(10).batch(4).deal(2, Deal::kInTurn),
        Dataset::range(10).batch(4).rebatch({3, 0, 2})})
    EXPECT_EQ(cardinality(dataset), static_cast<std::int64_t>(read_all(dataset).size()));
  EXPECT_EQ(cardinality(csv.repeat()), kInfiniteCardinality);
}

TEST(InputContext, DividesAGlobalBatchOrSaysWhyNot) {
  InputContext context{.num_replicas_in_sync = 4};
  EXPECT_EQ(context.get_per_replica_batch_size(64), 16);
  EXPECT_THAT(error_of([&] { context.get_per_replica_batch_size(66); }),
              HasSubstr("is not divisible by `num_replicas_in_sync`"));
}

TEST(Dataset, RefusesWhatDoesNotFitAtTheCallThatIsWrong) {
  EXPECT_THAT(error_of([] { Dataset::range(3).batch(0); }), HasSubstr("batch: n is 0"));
  EXPECT_THAT(error_of([] { Dataset::range(3).shard(2, 2); }), HasSubstr("[0, 2)"));
  EXPECT_THAT(error_of([] { Dataset().batch(2); }), HasSubstr("this one is empty"));
  EXPECT_THAT(error_of([] { Dataset::range(3).features({FeatureColumn::hashed("valu", 10)}); }),
              HasSubstr("did you mean \"value\""));
  EXPECT_THAT(error_of([] { FeatureColumn::vocabulary("a", {}); }),
              HasSubstr("the vocabulary is empty"));
  EXPECT_THAT(error_of([] {
                Dataset::from_tensor_slices({{"a", ints({1, 2})}, {"b", ints({1})}});
              }),
              HasSubstr("\"b\" has 1 rows, \"a\" has 2"));
}

}  // namespace
}  // namespace cairn::testing
