// Files without a single row: an error names them, or they are passed over and reported.
#include <gmock/gmock.h>

#include "data/file/tfrecord_writer.h"
#include "data/stage/fit.h"
#include "tests/data/damage.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// How a format is read, and a file of one row; in each, `empty` files have none.
struct EmptyFormat {
  std::string name, row;
  std::vector<std::string> empty;
  std::function<Dataset(const std::vector<std::string>& paths, EmptyFiles policy)> dataset;
};

std::vector<EmptyFormat> empty_formats() {
  const auto csv = [](bool header) {
    return [header](const std::vector<std::string>& paths, EmptyFiles policy) {
      const CsvSchema schema{.columns = {{"n", DType::kInt32}}, .header = header, .comment = "#"};
      return Dataset::csv(paths, schema, {.empty_files = policy});
    };
  };
  return {{"csv", "1\n", {"", "\n  \n", "#\n", "\xEF\xBB\xBF", as_gzip("")}, csv(false)},
          {"csv with a header", "n\n1\n", {"", "\n", "n\n", "n", as_gzip("n\n")}, csv(true)},
          {"text",
           "a\n",
           {"", as_gzip("")},
           [](const auto& paths, EmptyFiles policy) {
             return Dataset::text_lines(paths, {.empty_files = policy});
           }},
          {"libsvm",
           "1 1:1\n",
           {"", "# none\n"},
           [](const auto& paths, EmptyFiles policy) {
             return Dataset::libsvm(paths, {}, {.empty_files = policy});
           }},
          {"tfrecords",
           framed("a"),
           {"", as_gzip("")},
           [](const auto& paths, EmptyFiles policy) {
             return Dataset::tfrecords(paths, {}, {.empty_files = policy});
           }},
          {"records", "abcd", {""}, [](const auto& paths, EmptyFiles policy) {
             return Dataset::records(paths, {{{"n", DType::kInt32}}}, {.empty_files = policy});
           }}};
}

template <typename Body>
void for_each_empty_file(Body body) {
  for (const EmptyFormat& format : empty_formats())
    for (const std::string& empty : format.empty) {
      const TempFolder folder;
      const std::string row = folder.write("row", format.row), none = folder.write("none", empty);
      SCOPED_TRACE(format.name + ", " + std::to_string(empty.size()) + " bytes");
      body(format, row, none, empty.size());
    }
}

TEST(EmptyFiles, AreErrorsThatNameThem) {
  for_each_empty_file([](const EmptyFormat& format, const std::string& row, const std::string& none,
                         std::size_t bytes) {
    const Dataset dataset = format.dataset({row, none, row}, EmptyFiles::kFail);
    const auto told =
        HasSubstr(str("InvalidArgument: no rows are in ", none, " (", bytes, " bytes); fetch "));
    for (const Dataset& each : {dataset, dataset.shard(2, 0), dataset.interleave(2)}) {
      EXPECT_THAT(error_of([&] { read_all(each); }), told);
      EXPECT_THAT(error_of([&] { cardinality(each); }), told);
      EXPECT_THAT(error_of([&] { fit(each, {}); }), told);
    }
  });
}

TEST(EmptyFiles, ArePassedOverAndToldWhereThatIsAskedFor) {
  for_each_empty_file(
      [](const EmptyFormat& format, const std::string& row, const std::string& none, std::size_t) {
        const std::vector<std::string> one = read_all(format.dataset({row}, EmptyFiles::kSkip));
        ASSERT_EQ(one.size(), 1u);
        const Dataset dataset = format.dataset({none, row, none}, EmptyFiles::kSkip);
        for (const Dataset& each : {dataset, dataset.shard(1, 0), dataset.interleave(2)}) {
          EXPECT_EQ(read_all(each), one);
          LinesRead lines;
          EXPECT_EQ(cardinality(each, &lines), 1);
          EXPECT_THAT(lines.empty_files, ElementsAre(none, none));
          EXPECT_THAT(fit(each, {}).lines.empty_files, ElementsAre(none, none));
          lines = {};
          EXPECT_EQ(cardinality(each.batch(2).unbatch(), &lines), 1);
          EXPECT_THAT(lines.empty_files, ElementsAre(none, none)) << "told twice";
        }
        expect_resumes_everywhere(dataset);
        const Dataset nothing = format.dataset({none}, EmptyFiles::kSkip);
        EXPECT_THAT(read_all(nothing), IsEmpty());
        EXPECT_THAT(error_of([&] { fit(nothing, {}); }),
                    AllOf(HasSubstr("no examples"), HasSubstr("no rows are in " + none)));
      });
}

TEST(EmptyFiles, AFileWhoseRowsAreAllBadOrLeftOutIsNone) {
  const TempFolder folder;
  CsvSchema schema{.columns = {{"n", DType::kInt32}}};
  const std::string path = folder.write("a", "x\n");
  EXPECT_THAT(read_all(Dataset::csv(path, schema, {OnError::kSkipAndCount})), IsEmpty());
  schema.where = {"n > 5"};
  EXPECT_THAT(read_all(Dataset::csv(folder.write("b", "1\n"), schema)), IsEmpty());
}

}  // namespace
}  // namespace cairn::testing
