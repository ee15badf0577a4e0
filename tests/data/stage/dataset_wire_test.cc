// Descriptions as bytes.
#include <gmock/gmock.h>

#include <cstring>
#include <set>

#include "data/dataset/hash_split.h"
#include "data/feature/hash.h"
#include "data/stage/dataset_wire.h"
#include "testing/adult_schema.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

std::vector<Dataset> one_of_each() {
  CsvSchema schema = adult_schema();
  schema.columns[1].default_value = "none";
  schema.label.binary = true;
  schema.columns[13].separator = '|';
  schema.columns[13].missing_indicator = true;
  schema.columns[0].unknown = {"NA", "-"};
  CsvSchema plain = adult_schema();
  plain.quote = 0;
  plain.cell_lines_max = 1000;
  plain.strict = true;
  plain.last_takes_rest = true;
  std::vector<FeatureColumn> features = adult_features();
  features.push_back(FeatureColumn::vocabulary("workclass", {"a", "b"}, Oov::kLast, "v"));
  features.push_back(FeatureColumn::as_is("age", 99, "as"));
  features.push_back(FeatureColumn::words("workclass", 9, {2, 3, 4, true}, "w"));
  RecordSchema records{{{"label", DType::kFloat32, 1}, {"ids", DType::kInt32, 8}}, "label", true};
  return {
      Dataset::csv({"a.csv", "b.csv"}, schema, {OnError::kSkipAndCount})
          .features(features)
          .shard(3, 2)
          .shuffle(100, 7, {false})
          .batch(32, {true})
          .prefetch(4)
          .repeat(),
      Dataset::records("r.bin", records).skip(3).take(9).batch(2).deal(3, Deal::kCut),
      Dataset::records({"r.bin", "s.bin"}, records)
          .shuffle(9)
          .interleave(7, 5)
          .cache({1 << 20, "kept"})
          .repeat(),
      Dataset::csv("a.csv", schema).interleave(1).cache(),
      Dataset::csv("a.csv", plain, {OnError::kSkipAndCount, EmptyFiles::kSkip}),
      Dataset::from_tensor_slices({{"x", Tensor::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4})},
                                   {"s", Tensor::strings({2}, {"p", ""})}},
                                  "x")
          .repeat(2),
      Dataset::text_lines({"a", "b"}, {"text", true, 99, OnError::kSkipAndCount, EmptyFiles::kSkip})
          .shard(3, 1),
      Dataset::libsvm("a", {"i", "v", {"y", {"1"}, {"0"}, true}, "q", true, 9},
                      {OnError::kSkipAndCount, EmptyFiles::kSkip}),
      Dataset::tfrecords(
          {"a", "b"},
          {{{"x", DType::kInt64, {2, 3}, false, "7"}, {"y", DType::kString, {}, true}, {"z"}},
           "z",
           true},
          {OnError::kSkipAndCount, 99, EmptyFiles::kSkip}),
      Dataset::idx({{"i", {"a", "b"}, DType::kUint8, {2, 3}}, {"l", {"c", "d"}, DType::kInt32}},
                   "l"),
      Dataset::range(5).batch(2).deal(2, Deal::kInTurn),
      hash_split(Dataset::range(5), "value", 0.25, 0.5),
      Dataset::range(5).map(
          [](const cairn::Features& features) {
            return Outputs{{"n", features["value"]}};
          },
          {kAutotune}),
      Dataset::csv("a.csv", {.columns = {{.name = "l", .skip = true, .optional = true}, {"n"}}}),
      Dataset::records("r.bin", records, {.empty_files = EmptyFiles::kSkip}),
      Dataset::range(5).shard_hint().batch(2).rebatch({3, 0}, {.drop_remainder = true})};
}

// A body under a checksum that fits, so that the checks behind it are met.
std::vector<std::byte> resealed(std::vector<std::byte> bytes) {
  std::uint64_t sum = bytes.size() - 24, word;
  for (std::size_t at = 24; at + 8 <= bytes.size(); at += 8) {
    std::memcpy(&word, &bytes[at], 8);
    sum = cross_hash(sum, word);
  }
  std::memcpy(&bytes[16], &sum, 8);
  return bytes;
}

// A checkpoint keeps the fingerprint of the data that its positions are of. These were recorded
// before formats became classes of their own.
TEST(DatasetWire, SourcesOfFilesKeepTheirFingerprints) {
  CsvSchema csv{{{"a", DType::kInt64}, {"b", DType::kString, "none"}, {"c", DType::kFloat32}},
                {"c"}};
  csv.where = {"a > 0"};
  csv.columns[0].ids = {{100}, 7};
  csv.columns[1].unknown = {"x", "y"};
  const RecordSchema records{
      {{"l", DType::kFloat32, 1}, {"ids", DType::kInt32, 4, {{9}, {}}}}, "l", true};
  const ExampleSchema examples{
      {{"l"}, {"x", DType::kInt64, {3}, false, "1", {{9}, 3}}, {"r", DType::kString, {}, true}},
      "l",
      false,
      3,
      false};
  const std::vector<std::string> files{"f1", "f2"}, others{"a", "b"};
  EXPECT_EQ(fingerprint(
                Dataset::csv(files, csv, {OnError::kSkipAndCount, EmptyFiles::kSkip}).shard(3, 1)),
            0x26bfbdacaa9a28b6u);
  EXPECT_EQ(fingerprint(Dataset::records(files, records)), 0xa03999d89b950abfu);
  EXPECT_EQ(fingerprint(Dataset::text_lines(
                others, {"t", true, 99, OnError::kSkipAndCount, EmptyFiles::kSkip})),
            0x89b36be107f7dfcdu);
  EXPECT_EQ(fingerprint(Dataset::libsvm("a", {"i", "v", {"y", {"1"}, {"0"}, true}, "q", true, 9})),
            0x978367f25c69d588u);
  EXPECT_EQ(fingerprint(Dataset::tfrecords(others, examples,
                                           {OnError::kSkipAndCount, 77, EmptyFiles::kSkip})),
            0xed80ac5ee85f1c01u);
  EXPECT_EQ(
      fingerprint(Dataset::idx(
          {{"i", {"a", "b"}, DType::kUint8, {28, 28}}, {"l", {"c", "d"}, DType::kInt32, {}}}, "l")),
      0x433c70714eec0819u);
}

TEST(DatasetWire, RoundTripKeepsEveryFact) {
  for (const auto& dataset : one_of_each()) {
    auto bytes = serialize(dataset);
    Dataset arrived = parse_dataset(bytes);
    EXPECT_EQ(arrived.element_spec(), dataset.element_spec());
    EXPECT_EQ(serialize(arrived), bytes);
    EXPECT_EQ(fingerprint(arrived), fingerprint(dataset));
  }
  EXPECT_EQ(read_all(parse_dataset(serialize(one_of_each()[5]))), read_all(one_of_each()[5]));
}

TEST(DatasetWire, FingerprintsTellTensorsApartByTypeShapeAndValues) {
  const auto of = [](Tensor values) {
    return fingerprint(Dataset::from_tensor_slices({{"x", std::move(values)}}));
  };
  const std::vector<std::int32_t> some = {1, 2, 3, 4}, others = {1, 2, 3, 5};
  const std::vector<std::int64_t> wider = {1, 2, 3, 4};
  const std::vector<Tensor> all = {Tensor::of<std::int32_t>({4}, some),
                                   Tensor::of<std::int32_t>({4}, others),
                                   Tensor::of<std::int32_t>({4, 1}, some),
                                   Tensor::of<std::int64_t>({4}, wider),
                                   Tensor::strings({2}, std::vector<std::string>{"ab", "c"}),
                                   Tensor::strings({2}, std::vector<std::string>{"a", "bc"})};
  std::set<std::uint64_t> prints;
  for (const Tensor& values : all) {
    EXPECT_EQ(of(values), of(values.clone()));
    prints.insert(of(values));
  }
  EXPECT_EQ(prints.size(), all.size());
}

// Only what is sent to another process has a bound.
TEST(DatasetWire, TensorsBeyondItsBoundAreReadWhereTheyAre) {
  const std::int64_t rows = static_cast<std::int64_t>(kDatasetBytesMax) / 1024 + 1;
  const Dataset large =
      Dataset::from_tensor_slices({{"x", Tensor::zeros(DType::kUint8, {rows, 1024})}});
  auto elements = open(large.skip(rows - 1));
  EXPECT_EQ(elements->next().value()[0].shape(), Shape({1024}));
  EXPECT_THAT(error_of([&] { serialize(large); }), HasSubstr("put large data into files"));
}

TEST(DatasetWire, AnyFlippedBitIsRefused) {
  auto bytes = serialize(one_of_each()[1]);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto flipped = bytes;
    flipped[at] ^= static_cast<std::byte>(1 << at % 8);
    EXPECT_THAT(error_of([&] { parse_dataset(flipped); }), HasSubstr("InvalidArgument"))
        << "byte " << at;
  }
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THAT(error_of([&] { parse_dataset(std::span(bytes).first(size)); }),
                HasSubstr("InvalidArgument"));
}

TEST(DatasetWire, AForgedDescriptionIsRefusedOrHarmless) {
  int refused = 0;
  for (const auto& dataset : one_of_each()) {
    auto bytes = serialize(dataset);
    for (std::size_t at = 24; at < bytes.size(); ++at) {
      auto forged = bytes;
      forged[at] ^= static_cast<std::byte>(1 + at * 37 % 255);
      try {
        Dataset arrived = parse_dataset(resealed(forged));
        EXPECT_NO_THROW(serialize(arrived));
      } catch (const InvalidArgumentError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(DatasetWire, NamesWhatIsWrong) {
  std::vector<std::byte> rubbish(64);
  EXPECT_THAT(error_of([&] { parse_dataset(rubbish); }), HasSubstr("not a dataset"));
  auto bytes = serialize(Dataset::range(3));
  bytes[8] = std::byte{9};
  EXPECT_THAT(error_of([&] { parse_dataset(bytes); }), HasSubstr("version 9"));
}

}  // namespace
}  // namespace cairn::testing
