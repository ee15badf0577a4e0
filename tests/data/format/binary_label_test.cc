// Labels of two classes: what lies outside [0, 1] is no truth, and is named with its place.
#include <gmock/gmock.h>

#include <limits>

#include "data/file/tfrecord_writer.h"
#include "data/stage/dataset_wire.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

CsvSchema clicks(DType dtype) {
  return {.columns = {{"n", DType::kInt32}, {"clicked", dtype}},
          .label = {.column = "clicked", .binary = true}};
}

TEST(BinaryLabel, OfTextOutsideOfZeroToOneIsNamedWithLineColumnAndValue) {
  TempFolder folder;
  for (const char* value : {"11", "-7", "2", "1.5", "nan", "inf"}) {
    const std::string path = folder.write("a.csv", std::string("1,0\n2,") + value + "\n");
    EXPECT_THAT(
        error_of([&] { open(Dataset::csv(path, clicks(DType::kFloat32)).batch(2))->next(); }),
        AllOf(HasSubstr("a.csv:2:3"), HasSubstr("\"clicked\""), HasSubstr(value),
              HasSubstr("[0, 1]")));
  }
  const std::string path = folder.write("a.csv", "1,0\n2,11\n");
  EXPECT_THAT(error_of([&] { open(Dataset::csv(path, clicks(DType::kInt32)).batch(2))->next(); }),
              HasSubstr("[0, 1]"));
}

TEST(BinaryLabel, IsCountedAndLeftOutWhereBadLinesAre) {
  TempFolder folder;
  const std::string path = folder.write("a.csv", "1,0\n2,11\n3,0.5\n4,nan\n5,1\n");
  auto iterator =
      open(Dataset::csv(path, clicks(DType::kFloat32), {OnError::kSkipAndCount}).batch(5));
  EXPECT_THAT((*iterator->next())[1].values<float>(), ElementsAre(0, 0.5f, 1));
}

TEST(BinaryLabel, IsAnyNumberWhereNobodySaysThatItIsBinary) {
  TempFolder folder;
  CsvSchema schema = clicks(DType::kFloat32);
  schema.label.binary = false;
  const std::string path = folder.write("a.csv", "1,11\n");
  EXPECT_THAT((*open(Dataset::csv(path, schema).batch(1))->next())[1].values<float>(),
              ElementsAre(11));
}

TEST(BinaryLabel, OfRecordsIsNamedWithFileRecordAndField) {
  TempFolder folder;
  for (const float bad : {2.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    const float labels[] = {0, 1, 0.5f, bad, 0};
    const std::string path =
        folder.write("a.bin", std::string(reinterpret_cast<const char*>(labels), sizeof labels));
    const RecordSchema schema{
        .fields = {{"y", DType::kFloat32, 1}}, .label = "y", .binary_label = true};
    EXPECT_THAT(error_of([&] { open(Dataset::records(path, schema).skip(1).batch(4))->next(); }),
                AllOf(HasSubstr("a.bin: record 3 "), HasSubstr("\"y\""), HasSubstr("[0, 1]")));
  }
}

TEST(LabelOfClasses, OfRecordsAndExamplesIsNamedWithItsPlace) {
  TempFolder folder;
  for (const float bad : {3.0f, -1.0f, 1.5f, std::numeric_limits<float>::quiet_NaN()}) {
    const float labels[] = {0, 2, 1, bad};
    const std::string path =
        folder.write("a.bin", std::string(reinterpret_cast<const char*>(labels), sizeof labels));
    const RecordSchema schema{
        .fields = {{"y", DType::kFloat32, 1}}, .label = "y", .label_classes = 3};
    const Dataset data = parse_dataset(serialize(Dataset::records(path, schema)));
    EXPECT_THAT(error_of([&] { open(data.batch(4))->next(); }),
                AllOf(HasSubstr("a.bin: record 3 "), HasSubstr("from 0 to 2")));
  }
  const std::string path = folder.path("a.tfrecord");
  TfRecordWriter file(path);
  for (const std::int64_t label : {2, 0, 3, 1})
    file.write(ExampleMessage().integers("y", {label}).bytes());
  file.finish();
  const ExampleSchema schema{
      .features = {{.name = "y", .dtype = DType::kInt64}}, .label = "y", .label_classes = 3};
  const Dataset data = parse_dataset(serialize(Dataset::tfrecords(path, schema)));
  EXPECT_THAT(error_of([&] { open(data.batch(4))->next(); }),
              AllOf(HasSubstr("a.tfrecord"), HasSubstr("record 2"), HasSubstr("from 0 to 2")));
  EXPECT_THAT(error_of([] {
                Dataset::records(
                    "a",
                    {.fields = {{"y", DType::kFloat32, 1}}, .label = "y", .label_classes = 70'000});
              }),
              HasSubstr("label_classes is 70000"));
}

}  // namespace
}  // namespace cairn::testing
