// Several files at once: in which order, through which stages, and how many.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

CsvSchema one_number() {
  CsvSchema schema;
  schema.columns = {{"value", DType::kInt64}};
  return schema;
}

// File i (from 1) holds sizes[i - 1] lines i.
std::vector<std::string> files_of(const TempFolder& folder, const std::vector<int>& sizes) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::string text;
    for (int k = 0; k < sizes[i]; ++k) text += std::to_string(i + 1) + "\n";
    paths.push_back(folder.write("file" + std::to_string(i + 1), text));
  }
  return paths;
}

Dataset numbers(const std::vector<std::string>& paths) {
  return Dataset::csv(paths, one_number(), {.empty_files = EmptyFiles::kSkip});
}

TEST(Interleave, TakesABlockOfEachOpenFileInTurn) {
  TempFolder folder;
  Dataset files = numbers(files_of(folder, {6, 6, 6, 6, 6}));
  EXPECT_EQ(values_of(files.interleave(2, 4)),
            (std::vector<std::int64_t>{1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3,
                                       3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5}));
  EXPECT_EQ(values_of(files.interleave(1, 2)), values_of(files));
}

TEST(Interleave, AFileThatEndsLeavesItsPlaceToTheNext) {
  TempFolder folder;
  Dataset files = numbers(files_of(folder, {1, 4, 0, 2}));
  EXPECT_EQ(values_of(files.interleave(2)), (std::vector<std::int64_t>{1, 2, 2, 2, 4, 2, 4}));
  EXPECT_EQ(values_of(files.interleave(9)), (std::vector<std::int64_t>{1, 2, 4, 2, 4, 2, 2}));
}

TEST(Interleave, EachFileGoesThroughTheStagesBelowOnItsOwn) {
  TempFolder folder;
  Dataset files = numbers(files_of(folder, {3, 4}));
  EXPECT_EQ(values_of(files.take(2).interleave(2)), (std::vector<std::int64_t>{1, 2, 1, 2}));
  EXPECT_EQ(values_of(files.shard(2, 1).interleave(2)), (std::vector<std::int64_t>{1, 2, 2}));
  EXPECT_EQ(values_of(files.interleave(2).shard(2, 1)), (std::vector<std::int64_t>{2, 2, 2}));
  EXPECT_EQ(values_of(files.take(1).repeat(2).interleave(2)),
            (std::vector<std::int64_t>{1, 2, 1, 2}));
  EXPECT_EQ(values_of(files.batch(3).interleave(1)),
            (std::vector<std::int64_t>{1, 1, 1, 2, 2, 2, 2}));
}

TEST(Interleave, AShuffleBelowItShufflesEachFileInAnOrderOfItsOwn) {
  TempFolder folder;
  std::string text;
  for (int i = 0; i < 50; ++i) text += std::to_string(i) + "\n";
  const std::vector<std::string> paths = {folder.write("a", text), folder.write("b", text)};
  const std::vector<std::int64_t> mixed = values_of(numbers(paths).shuffle(50, 7).interleave(2));
  std::vector<std::int64_t> first, second;
  for (std::size_t i = 0; i < mixed.size(); ++i) (i % 2 == 0 ? first : second).push_back(mixed[i]);
  EXPECT_NE(first, second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  EXPECT_EQ(first, second);
}

TEST(Interleave, CardinalityIsWhatIsRead) {
  TempFolder folder;
  Dataset files = numbers(files_of(folder, {5, 0, 3, 4}));
  for (const Dataset& dataset :
       {files.interleave(2, 3), files.skip(2).interleave(2),
        files.shard(3, 1).batch(2).interleave(3), files.interleave(4).batch(5)})
    EXPECT_EQ(cardinality(dataset), static_cast<std::int64_t>(read_all(dataset).size()));
  EXPECT_EQ(cardinality(files.repeat().interleave(2)), kInfiniteCardinality);
  const std::string records = folder.write("r", std::string(8 * 7, 'x'));
  EXPECT_EQ(cardinality(Dataset::records({records, records}, {{{"v", DType::kInt64, 1}}, ""})
                            .skip(3)
                            .interleave(2)),
            8);
}

TEST(Interleave, CountsTheBadLinesOfFilesThatHaveEnded) {
  TempFolder folder;
  const std::vector<std::string> paths = {
      folder.write("a", "x\n1\n"), folder.write("b", "2\ny\nz\n"), folder.write("c", "w\n3\n")};
  auto iterator = open(Dataset::csv(paths, one_number(), {OnError::kSkipAndCount}).interleave(1));
  EXPECT_EQ(rest_of(*iterator).size(), 3u);
  EXPECT_EQ(iterator->skipped(), 4);
}

TEST(Interleave, TheStateOfAsManyFilesAsCanBeOpenIsSmallAndExact) {
  TempFolder folder;
  Dataset dataset =
      numbers(files_of(folder, std::vector<int>(300, 3))).shuffle(2).interleave(256, 2);
  const std::vector<std::string> whole = read_all(dataset, 2000);
  ASSERT_EQ(whole.size(), 900u);
  auto running = open(dataset);
  for (int i = 0; i < 600; ++i) running->next();
  EXPECT_LT(running->state().bytes.size(), kIteratorStateBytesMax);
  EXPECT_EQ(rest_of(*open(dataset, running->state()), 2000),
            std::vector<std::string>(whole.begin() + 600, whole.end()));
}

TEST(Interleave, RefusesWhatItCannotRead) {
  TempFolder folder;
  Dataset files = numbers(files_of(folder, {1}));
  EXPECT_THAT(error_of([] { Dataset::range(3).interleave(2); }), HasSubstr("csv(), records()"));
  EXPECT_THAT(error_of([&] { files.interleave(2).batch(2).interleave(2); }), HasSubstr("already"));
  EXPECT_THAT(error_of([&] { files.cache().interleave(2); }), HasSubstr("above interleave()"));
  EXPECT_THAT(error_of([&] { files.interleave(0); }), HasSubstr("cycle_length is 0"));
  EXPECT_THAT(error_of([&] { files.interleave(1, 0); }), HasSubstr("block_length is 0"));
  EXPECT_THAT(error_of([&] { files.interleave(257); }), HasSubstr("at most 256"));
  Dataset tall = files;
  for (int i = 0; i < 8; ++i) tall = tall.skip(0);
  EXPECT_THAT(error_of([&] { tall.interleave(256); }), HasSubstr("fewer files at once"));
  EXPECT_THAT(error_of([&] {
                open(numbers({files_of(folder, {1})[0], folder.path("gone")}).interleave(1));
              }),
              HasSubstr("NotFound"));
}

}  // namespace
}  // namespace cairn::testing
