// column_files(): a table's columns, each in a file that is mapped.
#include "data/format/column_files.h"

#include <gmock/gmock.h>

#include "data/stage/dataset_wire.h"
#include "tests/data/damage.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor numbers(std::int64_t from, std::int64_t count) {
  Tensor made(DType::kInt64, {count});
  for (std::int64_t i = 0; i < count; ++i)
    made.mutable_values<std::int64_t>()[static_cast<std::size_t>(i)] = from + i;
  return made;
}

// Rows number, pair of bytes, text and ragged ids, `rows` of them in a file of each column.
class Table {
 public:
  explicit Table(const TempFolder& folder) : folder_(folder) {}
  Table& add(std::int64_t from, std::int64_t rows) {
    std::vector<std::string> texts;
    std::vector<std::int64_t> splits{0};
    Tensor pairs(DType::kUint8, {rows, 2});
    for (std::int64_t i = 0; i < rows; ++i) {
      texts.push_back(std::string(static_cast<std::size_t>((from + i) % 4), 'x'));
      splits.push_back(splits.back() + (from + i) % 3);
      pairs.mutable_values<std::uint8_t>()[static_cast<std::size_t>(2 * i)] = 1;
      pairs.mutable_values<std::uint8_t>()[static_cast<std::size_t>(2 * i + 1)] =
          static_cast<std::uint8_t>(from + i);
    }
    const std::int64_t values = splits.back();
    add(0, numbers(from, rows));
    add(1, pairs);
    add(2, Tensor::strings({rows}, texts));
    add(3, numbers(100 * from, values));
    add(4, Tensor::of<std::int64_t>({rows + 1}, splits));
    return *this;
  }
  Dataset dataset() const { return column_files(columns_, "n"); }
  const std::vector<IdxColumn>& columns() const { return columns_; }

 private:
  void add(std::size_t column, const Tensor& values) {
    const std::string path = folder_.path(str("file", files_++));
    write_column_file(path, values);
    columns_[column].paths.push_back(path);
  }
  const TempFolder& folder_;
  int files_ = 0;
  std::vector<IdxColumn> columns_{{"n", {}, DType::kInt64},
                                  {"pair", {}, DType::kUint8, {2}},
                                  {"text", {}, DType::kString},
                                  {"ids", {}, DType::kInt64},
                                  {"ids/row_splits", {}, DType::kInt64}};
};

TEST(ColumnFiles, RowsAreThoseThatWereWritten) {
  const TempFolder folder;
  EXPECT_THAT(
      read_all(Table(folder).add(4, 2).dataset()),
      ElementsAre("int64[]{4} uint8[2]{1, 4} string[]{\"\"} int64[1]{400} int64[2]{0, 1} ",
                  "int64[]{5} uint8[2]{1, 5} string[]{\"x\"} int64[2]{401, 402} int64[2]{0, 2} "));
}

TEST(ColumnFiles, AreReadAsEverySourceIs) {
  const TempFolder folder;
  expect_reads_as_a_source(Table(folder).add(0, 5).add(5, 0).add(5, 4).dataset());
}

TEST(ColumnFiles, TravelInADescription) {
  const TempFolder folder;
  const Dataset data = Table(folder).add(0, 5).dataset().batch(2);
  EXPECT_EQ(read_all(parse_dataset(serialize(data))), read_all(data));
}

TEST(ColumnFiles, AFileThatThisMachineDoesNotSeeIsNamed) {
  const Dataset data = column_files({{"n", {"/not/here.column"}, DType::kInt64}});
  EXPECT_THAT(error_of([&] { open(data)->next(); }),
              HasSubstr("NotFound: this machine does not see the table's file /not/here.column"));
}

TEST(ColumnFiles, WhatDoesNotFitIsRefused) {
  const TempFolder folder;
  const Table table = Table(folder).add(0, 3);
  std::vector<IdxColumn> columns = table.columns();
  columns[0].dtype = DType::kFloat64;
  EXPECT_THAT(error_of([&] { open(column_files(columns)); }),
              HasSubstr("is not of the column \"n\""));
  columns = {table.columns()[3], table.columns()[4]};
  columns[1].dtype = DType::kFloat32;
  EXPECT_THAT(error_of([&] { column_files(columns); }), HasSubstr("splits of int64"));
  columns = {table.columns()[4]};
  EXPECT_THAT(error_of([&] { column_files(columns); }), HasSubstr("stands behind its values"));
  const TempFolder beside;
  Table other(beside);
  other.add(0, 2);
  columns = {table.columns()[0], other.columns()[2]};
  EXPECT_THAT(error_of([&] { open(column_files(columns)); }), HasSubstr("belong together"));
}

TEST(ColumnFiles, DamagedFilesEndTheRunOrGiveOtherValues) {
  const TempFolder folder;
  const Table table = Table(folder).add(0, 9);
  for (std::size_t column = 0; column < table.columns().size(); ++column) {
    std::vector<IdxColumn> columns = table.columns();
    std::ifstream file(columns[column].paths[0], std::ios::binary);
    const std::string good{std::istreambuf_iterator<char>(file), {}};
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      columns[column].paths = {folder.write("damaged", damaged(good, seed))};
      const std::string error = error_of([&] { read_all(column_files(columns)); });
      EXPECT_THAT(error, ::testing::AnyOf("no error", HasSubstr("/"))) << seed;
    }
  }
}

}  // namespace
}  // namespace cairn::testing
