// Data that comes through a pipe: read once, as it comes, or refused.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <thread>

#include "data/file/tfrecord_writer.h"
#include "data/stage/fit.h"
#include "tests/data/damage.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

CsvSchema number_lines(bool header = false) {
  return {.columns = {{"n", DType::kInt32}}, .header = header};
}

// A FIFO that a thread writes `bytes` to, once it is opened for reading.
class Fifo {
 public:
  explicit Fifo(std::string bytes) : path_(folder_.path("fifo")) {
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    writer_ = std::thread([path = path_, bytes = std::move(bytes)] {
      std::ofstream(path, std::ios::binary) << bytes;
    });
  }
  ~Fifo() { writer_.join(); }
  const std::string& path() const { return path_; }

 private:
  TempFolder folder_;
  std::string path_;
  std::thread writer_;
};

std::vector<std::string> read_once(const Dataset& dataset) {
  return rest_of(*open(dataset, {}, {.pipes = Pipes::kReadOnce}), 1 << 20);
}

TEST(Pipes, AreReadOnceInEveryFormatOfLinesAndRecords) {
  const TempFolder folder;
  const auto expect_read = [&](const std::string& bytes, auto dataset) {
    const std::vector<std::string> wanted = read_all(dataset(folder.write("a", bytes)), 1 << 20);
    ASSERT_FALSE(wanted.empty());
    for (const std::string& sent : {bytes, as_gzip(bytes)}) {
      const Fifo fifo(sent);
      EXPECT_EQ(read_once(dataset(fifo.path())), wanted);
    }
  };
  std::string rows, lines, records;
  for (int i = 0; i < 100'000; ++i) {
    rows += std::to_string(i) + "\n";
    lines += "1 " + std::to_string(i + 1) + ":1\n";
    records += framed(std::to_string(i));
  }
  expect_read(rows,
              [](const auto& path) { return Dataset::csv(path, number_lines()).batch(1000); });
  expect_read("n\n" + rows,
              [](const auto& path) { return Dataset::csv(path, number_lines(true)).batch(9); });
  expect_read(rows, [](const auto& path) { return Dataset::text_lines(path).batch(1000); });
  expect_read(lines, [](const auto& path) { return Dataset::libsvm(path).batch(1000); });
  expect_read(records, [](const auto& path) { return Dataset::tfrecords(path).batch(1000); });
}

TEST(Pipes, StandBesideFiles) {
  const TempFolder folder;
  const std::string file = folder.write("a", "1\n");
  const Fifo fifo("2\n3\n");
  EXPECT_EQ(read_once(Dataset::csv({file, fifo.path(), file}, number_lines()).batch(9)),
            read_all(Dataset::csv(folder.write("b", "1\n2\n3\n1\n"), number_lines()).batch(9)));
}

TEST(Pipes, ASecondPassIsRefused) {
  const Fifo fifo("1\n2\n");
  const auto twice =
      open(Dataset::csv(fifo.path(), number_lines()).repeat(2), {}, {.pipes = Pipes::kReadOnce});
  EXPECT_EQ(to_text(*twice->next()), "int32[]{1} ");
  EXPECT_EQ(to_text(*twice->next()), "int32[]{2} ");
  EXPECT_THAT(error_of([&] { twice->next(); }),
              HasSubstr("InvalidArgument: " + fifo.path() + " is a pipe, which can be read only "));
}

// The FIFO has no writer, so that opening it would wait for ever.
TEST(Pipes, AreRefusedWithoutWaitingForAWriter) {
  const TempFolder folder;
  const std::string path = folder.path("fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Dataset sources[] = {Dataset::csv(path, number_lines()),
                             Dataset::text_lines(path),
                             Dataset::libsvm(path),
                             Dataset::tfrecords(path),
                             Dataset::csv(path, number_lines()).interleave(2),
                             Dataset::records(path, {{{"n", DType::kInt32}}}),
                             Dataset::idx({{"n", {path}}})};
  const auto refused = AllOf(HasSubstr("InvalidArgument: " + path + " is a pipe, which can be "),
                             HasSubstr("as with `cat " + path + " > FILE`"));
  for (const Dataset& source : sources) {
    EXPECT_THAT(error_of([&] { open(source); }), refused);
    EXPECT_THAT(error_of([&] { cardinality(source); }), refused);
    EXPECT_THAT(error_of([&] { fit(source, {}); }), refused);
  }
  // how many records there are is known from a file's size alone
  EXPECT_THAT(error_of([&] { read_once(sources[5]); }), refused);
}

TEST(Pipes, ColumnsThatFilesMayLackAreToldByTheFirstRow) {
  const TempFolder folder;
  CsvSchema schema = number_lines();
  schema.columns.insert(schema.columns.begin(), {.name = "label", .skip = true, .optional = true});
  schema.comment = "#";
  const std::string with = folder.write("a", "#\n\"x,y\",1\n,2\n"),
                    without = folder.write("b", "3\n");
  EXPECT_THAT(
      read_all(Dataset::csv({with, without, with}, schema)),
      ElementsAre("int32[]{1} ", "int32[]{2} ", "int32[]{3} ", "int32[]{1} ", "int32[]{2} "));
  const Fifo fifo("4\n5\n");
  EXPECT_THAT(read_once(Dataset::csv(fifo.path(), schema)),
              ElementsAre("int32[]{4} ", "int32[]{5} "));
  EXPECT_THAT(error_of([&] { read_all(Dataset::csv(folder.write("c", "1\n2,3\n"), schema)); }),
              HasSubstr("c:2: a long row: 2 cells where 1 are expected"));
  schema.columns.front().skip = false;
  EXPECT_THAT(error_of([&] { Dataset::csv(with, schema); }), HasSubstr("can be optional"));
}

}  // namespace
}  // namespace cairn::testing
