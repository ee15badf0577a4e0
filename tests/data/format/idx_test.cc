// idx(): big-endian files side by side.
#include <gmock/gmock.h>

#include <numeric>

#include "tests/data/damage.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string idx_head(int type, const std::vector<std::uint32_t>& dims) {
  std::string head{0, 0, static_cast<char>(type), static_cast<char>(dims.size())};
  for (const std::uint32_t dim : dims)
    for (int shift = 24; shift >= 0; shift -= 8) head.push_back(static_cast<char>(dim >> shift));
  return head;
}

std::string ramp(std::size_t bytes, int first = 0) {
  std::string all(bytes, '\0');
  std::iota(all.begin(), all.end(), static_cast<char>(first));
  return all;
}

// Images [2, 3] and labels: those of `count` examples from number `first` on.
std::string images(std::uint32_t count, int first = 0) {
  return idx_head(8, {count, 2, 3}) + ramp(std::size_t{count} * 6, first);
}
std::string labels(std::uint32_t count, int first = 0) {
  return idx_head(8, {count}) + ramp(count, first);
}

Dataset pairs(std::vector<std::string> image_files, std::vector<std::string> label_files) {
  return Dataset::idx(
      {{"image", std::move(image_files), DType::kUint8, {2, 3}}, {"label", std::move(label_files)}},
      "label");
}

TEST(Idx, FilesSideBySideAreColumns) {
  const TempFolder folder;
  const Dataset data = pairs({folder.write("i", images(2))}, {folder.write("l", labels(2, 7))});
  EXPECT_EQ(
      data.element_spec(),
      (ElementSpec{{{"image", {DType::kUint8, {2, 3}}}, {"label", {DType::kUint8, {}}}}, "label"}));
  EXPECT_THAT(read_all(data), ElementsAre("uint8[2, 3]{0, 1, 2, 3, 4, 5} uint8[]{7} ",
                                          "uint8[2, 3]{6, 7, 8, 9, 10, 11} uint8[]{8} "));
}

TEST(Idx, NumbersOfEveryTypeAreReadBigEndian) {
  const TempFolder folder;
  const auto column = [&](int type, const std::string& bytes, DType dtype) {
    const std::string path = folder.write("n", idx_head(type, {2}) + bytes);
    return read_all(Dataset::idx({{"n", {path}, dtype}}));
  };
  EXPECT_THAT(column(0x09, {'\x01', '\xFF'}, DType::kInt32),
              ElementsAre("int32[]{1} ", "int32[]{-1} "));
  EXPECT_THAT(column(0x0B, {'\x01', '\x02', '\xFF', '\xFE'}, DType::kInt32),
              ElementsAre("int32[]{258} ", "int32[]{-2} "));
  EXPECT_THAT(column(0x0C, std::string("\x00\x00\x01\x02\xFF\xFF\xFF\xFE", 8), DType::kInt32),
              ElementsAre("int32[]{258} ", "int32[]{-2} "));
  EXPECT_THAT(column(0x0D, std::string("\x3F\x80\x00\x00\xC0\x00\x00\x00", 8), DType::kFloat32),
              ElementsAre("float32[]{1} ", "float32[]{-2} "));
  EXPECT_THAT(
      column(0x0E, std::string("\x3F\xF0\0\0\0\0\0\0\xC0\0\0\0\0\0\0\0", 16), DType::kFloat64),
      ElementsAre("float64[]{1} ", "float64[]{-2} "));
}

TEST(Idx, ReadAsASourceDoes) {
  const TempFolder folder;
  const Dataset data =
      pairs({folder.write("i0", images(3)), folder.write("i1", images(0)),
             folder.write("i2.gz", as_gzip(images(2, 50))), folder.write("i3", images(4, 90))},
            {folder.write("l0", as_gzip(labels(3))), folder.write("l1", labels(0)),
             folder.write("l2", labels(2, 3)), folder.write("l3", labels(4, 5))});
  expect_reads_as_a_source(data);
  EXPECT_EQ(cardinality(data), 9);
}

TEST(Idx, FilesThatAreNotWhatWasSaidAreRefusedWhenOpened) {
  const TempFolder folder;
  const std::string image_file = folder.write("i", images(3)),
                    label_file = folder.write("l", labels(3));
  const auto error = [](const Dataset& data) {
    const std::string opened = error_of([&] { open(data); });
    EXPECT_EQ(error_of([&] { cardinality(data); }), opened);
    return opened;
  };
  EXPECT_THAT(error(pairs({image_file}, {folder.write("l4", labels(4))})),
              AllOf(HasSubstr("InvalidArgument: " + image_file + " has 3 examples, and "),
                    HasSubstr("l4 has 4; do they belong together?")));
  EXPECT_THAT(error(pairs({label_file}, {label_file})),
              HasSubstr(label_file + ": the file has 1 dimensions, and column \"image\" of shape "
                                     "[2, 3] wants 3"));
  EXPECT_THAT(error(pairs({folder.write("t", idx_head(8, {3, 3, 2}) + ramp(18))}, {label_file})),
              HasSubstr("t: dimension 0 of each example is 3, and column \"image\" is of shape"));
  EXPECT_THAT(error(pairs({image_file}, {folder.write("f", idx_head(0x0D, {3}) + ramp(12))})),
              HasSubstr("f: the file holds float32 (type 13), which is read as float32, and column "
                        "\"label\" is of dtype uint8"));
  EXPECT_THAT(error(pairs({image_file}, {folder.write("x", "text")})),
              HasSubstr("x: the first 4 bytes are not those of an IDX file"));
  EXPECT_THAT(error(pairs({image_file}, {folder.write("h", labels(3).substr(0, 6))})),
              AllOf(HasSubstr("DataLoss"), HasSubstr("h ends after 6 bytes, within its head")));
  EXPECT_THAT(error(pairs({folder.write("s", images(3).substr(0, 20))}, {label_file})),
              AllOf(HasSubstr("DataLoss"),
                    HasSubstr("s has 20 bytes, and by its head 3 examples of 6 bytes make it 34")));
  EXPECT_THAT(error(pairs({folder.write("g", images(3) + "x")}, {label_file})),
              HasSubstr("g has 35 bytes"));
  EXPECT_THAT(error(pairs({image_file}, {folder.path("none")})), HasSubstr("NotFound"));
}

TEST(Idx, AGzipFileThatIsShorterThanItsHeadSaysIsRefusedWhenRead) {
  const TempFolder folder;
  const std::string path = folder.write("i.gz", as_gzip(images(1'000'000).substr(0, 30)));
  const Dataset data = Dataset::idx({{"image", {path}, DType::kUint8, {2, 3}}});
  EXPECT_EQ(cardinality(data), 1'000'000);
  EXPECT_THAT(error_of([&] { read_all(data); }),
              AllOf(HasSubstr("DataLoss: " + path + " ends after 30 bytes")));
  EXPECT_THAT(error_of([&] { read_all(data.skip(900'000)); }), HasSubstr("DataLoss: " + path));
}

TEST(Idx, RefusesColumnsThatMakeNoSense) {
  const auto refusal = [](const std::vector<IdxColumn>& columns, const std::string& label = "") {
    return error_of([&] { Dataset::idx(columns, label); });
  };
  EXPECT_THAT(refusal({}), HasSubstr("no columns"));
  EXPECT_THAT(refusal({{"a", {}}}), HasSubstr("at least one path"));
  EXPECT_THAT(refusal({{"a", {"x"}}, {"b", {"y", "z"}}}), HasSubstr("\"b\" has 2 files, \"a\" 1"));
  EXPECT_THAT(refusal({{"a", {"x"}, DType::kInt64}}), HasSubstr("int64"));
  EXPECT_THAT(refusal({{"a", {"x"}, DType::kUint8, {0}}}), HasSubstr("shape"));
  EXPECT_THAT(refusal({{"a", {"x"}}}, "b"), HasSubstr("\"b\""));
}

TEST(Idx, DamagedFilesAreReadOrRefused) {
  const TempFolder folder;
  const std::string label_file = folder.write("l", labels(20));
  const Damages found = read_damaged(images(20), 200, [&](const std::string& path, OnError) {
    return pairs({path}, {label_file});
  });
  EXPECT_GT(found.told, 100);
}

}  // namespace
}  // namespace cairn::testing
