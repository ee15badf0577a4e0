// Columns of ids: a number outside of its table is a bad cell or record, and padding is left out.
#include <gmock/gmock.h>

#include "data/dataset/stage_spec.h"
#include "data/file/tfrecord_writer.h"
#include "data/stage/dataset_wire.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "ad,tags", of which lines 3 and 4 hold what is no id.
constexpr const char* kLines = "1,1\n2,2|3\n0,9|10\n-1,1\n9,\n";

Dataset ads_in(const std::string& path, IdRange ids, OnError on_error = OnError::kFail) {
  return Dataset::csv(
      path,
      {.columns = {{.name = "ad", .dtype = DType::kInt64, .ids = ids},
                   {.name = "tags", .dtype = DType::kInt32, .separator = '|', .ids = ids}}},
      {on_error});
}
std::vector<std::int64_t> row_splits_of(const Tensor& splits) {
  return {splits.values<std::int64_t>().begin(), splits.values<std::int64_t>().end()};
}

TEST(Ids, OfCellsOutsideOfTheirTableAreNamedByLine) {
  const TempFolder folder;
  const Dataset data = ads_in(folder.write("a.csv", kLines), {{10}});
  EXPECT_THAT(error_of([&] { read_all(parse_dataset(serialize(data))); }),
              HasSubstr("a.csv:3:3: column \"tags\": \"10\" is not an id in [0, 10)"));
  EXPECT_THAT(error_of([&] { read_all(ads_in(folder.write("b.csv", "-1,1\n"), {{10}})); }),
              HasSubstr("b.csv:1:1: column \"ad\": \"-1\" is not an id in [0, 10)"));
}

TEST(Ids, BadCellsLeaveTheirRowsOut) {
  const TempFolder folder;
  const Dataset data = ads_in(folder.write("a.csv", kLines), {{10}}, OnError::kSkipAndCount);
  const auto iterator = open(data.batch(9));
  const Element all = *iterator->next();
  EXPECT_THAT(all[0].values<std::int64_t>(), ElementsAre(1, 2, 9));
  EXPECT_THAT(all[1].values<std::int32_t>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(iterator->skipped(), 2);
}

TEST(Ids, OfAFeatureBoundTheCellsThatItReads) {
  const TempFolder folder;
  const Dataset data = ads_in(folder.write("a.csv", kLines), {})
                           .features({FeatureColumn::as_is("ad", 2), FeatureColumn::as_is("tags")});
  EXPECT_THAT(error_of([&] { read_all(data); }),
              HasSubstr("a.csv:2:1: column \"ad\": \"2\" is not an id in [0, 2)"));
}

TEST(Ids, ThatArePaddingAreLeftOutOfBags) {
  const TempFolder folder;
  const Dataset data = ads_in(folder.write("a.csv", "-1,1|-1|2\n3,-1\n"), {{10}, -1})
                           .features({FeatureColumn::as_is("ad", 10, "", -1),
                                      FeatureColumn::as_is("tags", 10, "", -1)});
  const Dataset sent = parse_dataset(serialize(data));
  EXPECT_EQ(sent.element_spec(), data.element_spec());
  const Element all = *open(sent.batch(2))->next();
  EXPECT_THAT(all[0].values<std::int64_t>(), ElementsAre(3));
  EXPECT_THAT(row_splits_of(all[1]), ElementsAre(0, 0, 1));
  EXPECT_THAT(all[2].values<std::int32_t>(), ElementsAre(1, 2));
  EXPECT_THAT(row_splits_of(all[3]), ElementsAre(0, 2, 2));
  EXPECT_EQ(read_all(data).size(), 2u);
}

TEST(Ids, OfRecordsAreBoundedValueByValue) {
  const TempFolder folder;
  const std::int32_t values[] = {4, 9, -1, 8, 5, 0, 3, 10};
  const std::string path =
      folder.write("r.bin", {reinterpret_cast<const char*>(values), sizeof values});
  const auto of = [&](IdRange ids, OnError on_error = OnError::kFail) {
    const RecordSchema schema{{{"ids", DType::kInt32, 2, std::move(ids)}}};
    return parse_dataset(serialize(Dataset::records(path, schema, {on_error})));
  };
  EXPECT_THAT(error_of([&] {
                read_all(of({{5, 10}}));
              }),
              HasSubstr("r.bin: record 1 (from 0), field \"ids\": -1 is not an id in [0, 5)"));
  const auto left = open(of({{5, 10}}, OnError::kSkipAndCount).batch(9));
  EXPECT_THAT((*left->next())[0].values<std::int32_t>(), ElementsAre(4, 9));
  EXPECT_EQ(left->skipped(), 3);
  const Dataset padded = of({{11}, -1}).features({FeatureColumn::as_is("ids", 11, "", -1)});
  const Element all = *open(padded.batch(4))->next();
  EXPECT_THAT(all[0].values<std::int32_t>(), ElementsAre(4, 9, 8, 5, 0, 3, 10));
  EXPECT_THAT(row_splits_of(all[1]), ElementsAre(0, 2, 3, 5, 7));
}

TEST(Ids, OfExamplesAreBoundedToo) {
  const TempFolder folder;
  const std::string path = folder.path("e.tfrecord");
  {
    TfRecordWriter writer(path);
    for (const std::int64_t id : {3, 12, -1, 0})
      writer.write(ExampleMessage().integers("ids", {id, id + 1}).bytes());
    writer.finish();
  }
  const auto of = [&](bool ragged, OnError on_error) {
    ExampleFeature feature{.name = "ids", .dtype = DType::kInt64, .ragged = ragged, .ids = {{10}}};
    if (!ragged) feature.shape = {2};
    return parse_dataset(serialize(Dataset::tfrecords(path, {{feature}}, {on_error})));
  };
  for (const bool ragged : {true, false}) {
    EXPECT_THAT(error_of([&] { read_all(of(ragged, OnError::kFail)); }),
                AllOf(HasSubstr("record 1 (from 0)"), HasSubstr("12 is not an id in [0, 10)")));
    const auto left = open(of(ragged, OnError::kSkipAndCount).batch(9));
    EXPECT_THAT((*left->next())[0].values<std::int64_t>(), ElementsAre(3, 4, 0, 1));
  }
}

TEST(Ids, BoundsThatAColumnCannotHaveAreRefused) {
  const auto refusal = [](CsvColumn column) {
    return error_of([&] { Dataset::csv("a", {.columns = {column}}); });
  };
  EXPECT_THAT(refusal({.name = "x", .dtype = DType::kFloat32, .ids = {{5}}}),
              HasSubstr("column \"x\": ids are int32, int64 or uint8"));
  EXPECT_THAT(refusal({.name = "x", .dtype = DType::kInt32, .ids = {{5, 5}}}),
              HasSubstr("2 bounds of ids for 1 value"));
  EXPECT_THAT(refusal({.name = "x", .dtype = DType::kInt32, .ids = {{0}}}),
              HasSubstr("at least 1 is wanted"));
  EXPECT_EQ(error_of([] { FeatureColumn::as_is("x", 3, "", -1); }), "no error");
}

}  // namespace
}  // namespace cairn::testing
