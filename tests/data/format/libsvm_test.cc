// libsvm(): what lines say, and what is said about bad ones.
#include <gmock/gmock.h>

#include "tests/data/damage.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::vector<T> column_of(const Dataset& dataset, const Element& element, const std::string& name) {
  const auto values = element[dataset.element_spec().find(name)].values<T>();
  return {values.begin(), values.end()};
}

Element one_batch(const Dataset& dataset) { return open(dataset.batch(1000))->next().value(); }

std::string refusal_of(const std::string& line, const LibsvmSchema& schema = {}) {
  const TempFolder folder;
  const std::string path = folder.write("s", "1 1:1\n\n" + line + "\n");
  const std::string error = error_of([&] { read_all(Dataset::libsvm(path, schema)); });
  EXPECT_THAT(error, AllOf(HasSubstr("InvalidArgument: " + path + ":3:"),
                           HasSubstr("or leave such lines out with OnError::kSkipAndCount")));
  return error.substr(error.find(":3:") + 3);
}

TEST(Libsvm, PairsBecomeRaggedIdsAndValues) {
  const TempFolder folder;
  const Dataset data = Dataset::libsvm(folder.write("s",
                                                    "# a comment\n+1 1:0.5 3:-2e3  9:7#c\n"
                                                    "-1\n0.25\tqid:7 2:1 2:1 # x:y\r\n\n"));
  const ElementSpec spec = data.element_spec();
  EXPECT_EQ(spec.columns, (std::vector<ColumnSpec>{{"label", {DType::kFloat32, {}}},
                                                   {"ids", {DType::kInt64, {Shape::kUnknown}}},
                                                   {"ids/row_splits", {DType::kInt64, {2}}},
                                                   {"values", {DType::kFloat32, {Shape::kUnknown}}},
                                                   {"values/row_splits", {DType::kInt64, {2}}}}));
  EXPECT_EQ(spec.label, "label");
  const Element all = one_batch(data);
  EXPECT_THAT(column_of<float>(data, all, "label"), ElementsAre(1, -1, 0.25f));
  EXPECT_THAT(column_of<std::int64_t>(data, all, "ids"), ElementsAre(0, 2, 8, 1, 1));
  EXPECT_THAT(column_of<float>(data, all, "values"), ElementsAre(0.5f, -2000, 7, 1, 1));
  EXPECT_THAT(column_of<std::int64_t>(data, all, "ids/row_splits"), ElementsAre(0, 3, 3, 5));
  EXPECT_THAT(column_of<std::int64_t>(data, all, "values/row_splits"), ElementsAre(0, 3, 3, 5));
}

TEST(Libsvm, LabelsMapToOneAndZeroAndQidsAreAColumn) {
  const TempFolder folder;
  LibsvmSchema schema{.ids = "i",
                      .values = "v",
                      .label = {"y", {"+1", "1"}, {"-1", "0"}},
                      .qid = "query",
                      .zero_based = true,
                      .dimension = 4};
  const Dataset data =
      Dataset::libsvm(folder.write("s", "+1 qid:3 0:1\n-1 qid:3 3:2\n1 qid:4\n0 qid:12"), schema);
  const Element all = one_batch(data);
  EXPECT_THAT(column_of<float>(data, all, "y"), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(column_of<std::int64_t>(data, all, "query"), ElementsAre(3, 3, 4, 12));
  EXPECT_THAT(column_of<std::int64_t>(data, all, "i"), ElementsAre(0, 3));
}

TEST(Libsvm, BadLinesAreToldByCharacterAndCure) {
  EXPECT_THAT(refusal_of("x 1:1"), HasSubstr("1: the label \"x\" is not of type float32"));
  EXPECT_THAT(refusal_of("1 1:1 2"), HasSubstr("7: \"2\" is not index:value"));
  EXPECT_THAT(refusal_of("1 1:1 2:"), HasSubstr("7: \"2:\" is not index:value"));
  EXPECT_THAT(refusal_of("1 1:1 2:x#"), HasSubstr("7: \"2:x\" is not index:value"));
  EXPECT_THAT(refusal_of("1 -1:1"), HasSubstr("3: \"-1:1\" is not index:value"));
  EXPECT_THAT(refusal_of("1 9999999999999999999:1"), HasSubstr("is not index:value"));
  EXPECT_THAT(refusal_of("1 0:1"), HasSubstr("3: the index 0, where indexes begin at 1; if the "
                                             "file counts from 0, set LibsvmSchema::zero_based"));
  EXPECT_THAT(refusal_of("1 4:1 5:1", {.dimension = 4}),
              HasSubstr("7: the index 5 is beyond LibsvmSchema::dimension = 4, counted from 1"));
  EXPECT_THAT(refusal_of("1 1:1 qid:2"), HasSubstr("\"qid:2\" is not index:value"));
  EXPECT_THAT(refusal_of("1 qid:z 1:1"), HasSubstr("3: the qid \"z\""));
  EXPECT_THAT(refusal_of("1e99"),
              HasSubstr("\"1e99\" is not of type float32, whose range ends before it"));
  const TempFolder folder;
  const std::string path = folder.write("s", "1 qid:1 1:1\n2 1:1\n");
  EXPECT_THAT(error_of([&] { read_all(Dataset::libsvm(path, {.qid = "q"})); }),
              HasSubstr(path + ":2:2: the line has no qid"));
  const LibsvmSchema binary{.label = {.column = "label", .binary = true}};
  EXPECT_THAT(error_of([&] { read_all(Dataset::libsvm(path, binary)); }),
              HasSubstr(path + ":2:1: \"2\" is not a label of two classes"));
  const LibsvmSchema texts{.label = {"label", {"1"}, {"0"}}};
  EXPECT_THAT(error_of([&] { read_all(Dataset::libsvm(path, texts)); }),
              HasSubstr(":2:1: the label \"2\" is none of its positive and negative values"));
}

TEST(Libsvm, BadLinesMayBeLeftOutWhole) {
  const TempFolder folder;
  const Dataset data = Dataset::libsvm(folder.write("s", "1 1:1 2:2\n1 3:1 4\nbad\n0 5:1\n"), {},
                                       {.on_error = OnError::kSkipAndCount});
  const Element all = one_batch(data);
  EXPECT_THAT(column_of<std::int64_t>(data, all, "ids"), ElementsAre(0, 1, 4));
  EXPECT_THAT(column_of<float>(data, all, "label"), ElementsAre(1, 0));
  LinesRead lines;
  EXPECT_EQ(cardinality(data, &lines), 2);
  EXPECT_EQ(lines.skipped, 2);
  EXPECT_THAT(lines.first_skipped[0], HasSubstr(":2:7: \"4\" is not"));
}

TEST(Libsvm, RefusesASchemaThatMakesNoSense) {
  const auto refusal = [](const LibsvmSchema& schema) {
    return error_of([&] { Dataset::libsvm("s", schema); });
  };
  EXPECT_THAT(refusal({.ids = "label"}), HasSubstr("two columns are named \"label\""));
  EXPECT_THAT(refusal({.values = ""}), HasSubstr("no name"));
  EXPECT_THAT(refusal({.label = {.column = ""}}), HasSubstr("no name"));
  EXPECT_THAT(refusal({.dimension = -1}), HasSubstr("dimension"));
  EXPECT_THAT(refusal({.label = {"label", {"1"}, {"1"}}}), HasSubstr("both positive"));
  EXPECT_THAT(refusal({.qid = "ids/row_splits"}), HasSubstr("ids/row_splits"));
}

TEST(Libsvm, ReadsAsASourceDoes) {
  const TempFolder folder;
  expect_reads_as_a_source(Dataset::libsvm({folder.write("a", "1 1:1\n\n2\n#\n3 2:1 7:2\n"),
                                            folder.write("b", as_gzip("4 4:4\n5 5:1 6:1")),
                                            folder.write("c", "6 1:1\n7 1:2\n8 9:9\n")}));
  expect_resumes_everywhere(
      Dataset::libsvm({folder.write("d", "1 1:1\nbad\n2 2:2\n3:\n"), folder.write("e", "bad\n3\n")},
                      {}, {.on_error = OnError::kSkipAndCount})
          .shard(2, 0)
          .interleave(2));
}

TEST(Libsvm, DamagedFilesAreReadOrRefused) {
  std::string good;
  for (int i = 1; i < 60; ++i)
    good += std::to_string(i % 2) + " " + std::to_string(i) + ":" + std::to_string(i * 0.37) +
            " 77:1\n";
  const Damages found = read_damaged(good, 200, [](const std::string& path, OnError policy) {
    return Dataset::libsvm(path, {.dimension = 100}, {.on_error = policy});
  });
  EXPECT_GT(found.told, 50);
  EXPECT_GT(found.left_out, 50);
}

}  // namespace
}  // namespace cairn::testing
