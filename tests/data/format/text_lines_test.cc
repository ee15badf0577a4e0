// text_lines(): what a line is, and what becomes of files that are no text.
#include <gmock/gmock.h>

#include "tests/data/damage.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

Texts lines_of(const Dataset& dataset) {
  Texts lines;
  const auto iterator = open(dataset);
  while (auto element = iterator->next()) lines.push_back(element->front().string_values()[0]);
  return lines;
}

TEST(TextLines, AreTheTextBetweenLineEnds) {
  const TempFolder folder;
  const Dataset lines = Dataset::text_lines(folder.write("t", "one\r\n\n  two \nthree"));
  EXPECT_THAT(lines_of(lines), ElementsAre("one", "", "  two ", "three"));
  EXPECT_EQ(lines.element_spec(), (ElementSpec{{{"line", {DType::kString, {}}}}, ""}));
  EXPECT_THAT(lines_of(Dataset::text_lines(folder.path("t"), {.skip_blank = true})),
              ElementsAre("one", "  two ", "three"));
  EXPECT_THAT(lines_of(Dataset::text_lines(folder.write("n", "\n"))), ElementsAre(""));
}

TEST(TextLines, GoOnFromFileToFileGzipOrNot) {
  const TempFolder folder;
  const Texts paths{folder.write("a",
                                 "\xEF\xBB\xBF"
                                 "1\n2"),
                    folder.write("b", ""), folder.write("c", as_gzip("3\n4\n") + as_gzip("5")),
                    folder.write("d", "6\n\n7\n8\n9\n")};
  const Dataset lines =
      Dataset::text_lines(paths, {.column = "text", .empty_files = EmptyFiles::kSkip});
  EXPECT_THAT(lines_of(lines), ElementsAre("1", "2", "3", "4", "5", "6", "", "7", "8", "9"));
  expect_reads_as_a_source(lines);
  EXPECT_THAT(lines_of(lines.interleave(4, 1)),
              ElementsAre("1", "3", "6", "2", "4", "", "5", "7", "8", "9"));
  LinesRead read;
  cardinality(lines, &read);
  EXPECT_THAT(read.empty_files, ElementsAre(paths[1]));
}

TEST(TextLines, LongerThanAnyBufferAreWhole) {
  const TempFolder folder;
  const std::string longest(3 << 20, 'x');
  const Texts lines{"a", longest, "b", longest.substr(0, (256 << 10) - 3), "c"};
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  EXPECT_EQ(lines_of(Dataset::text_lines(folder.write("t", text))), lines);
  EXPECT_EQ(lines_of(Dataset::text_lines(folder.write("t.gz", as_gzip(text)))), lines);
}

TEST(TextLines, BeyondTheirBoundAreBadOnes) {
  const TempFolder folder;
  const std::string text = "12345\n123456\n" + std::string(1 << 20, 'x') + "\nend";
  const std::string path = folder.write("t", text);
  EXPECT_THAT(error_of([&] { lines_of(Dataset::text_lines(path, {.line_bytes_max = 5})); }),
              ::testing::AllOf(HasSubstr("InvalidArgument"), HasSubstr(path + ":2: a line of more"),
                               HasSubstr("OnError::kSkipAndCount")));
  const Dataset some =
      Dataset::text_lines(path, {.line_bytes_max = 5, .on_error = OnError::kSkipAndCount});
  EXPECT_THAT(lines_of(some), ElementsAre("12345", "end"));
  LinesRead read;
  EXPECT_EQ(cardinality(some, &read), 2);
  EXPECT_EQ(read.skipped, 2);
  EXPECT_THAT(read.first_skipped,
              ElementsAre(HasSubstr(path + ":2: a line"), HasSubstr(path + ":3: a line")));
}

TEST(TextLines, RefuseWhatIsNoTextAndWhatMakesNoSense) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { open(Dataset::text_lines(folder.path("none"))); }),
              HasSubstr("NotFound"));
  const std::string wide = folder.write("wide", "\xFF\xFEx");
  EXPECT_THAT(error_of([&] { open(Dataset::text_lines(wide)); }), HasSubstr("is UTF-16"));
  EXPECT_THAT(error_of([] { Dataset::text_lines("t", {.line_bytes_max = 0}); }),
              HasSubstr("line_bytes_max"));
  EXPECT_THAT(error_of([] { Dataset::text_lines("t", {.column = ""}); }), HasSubstr("no name"));
  EXPECT_THAT(error_of([] { Dataset::text_lines(Texts{}); }), HasSubstr("at least one path"));
}

TEST(TextLines, OfDamagedFilesAreReadOrRefused) {
  std::string good;
  for (int i = 0; i < 50; ++i) good += "line " + std::to_string(i * i * i) + "\n";
  const Damages found = read_damaged(good, 200, [](const std::string& path, OnError policy) {
    return Dataset::text_lines(path, {.line_bytes_max = 12, .on_error = policy});
  });
  EXPECT_GT(found.told, 50);
  EXPECT_GT(found.left_out, 20);
}

}  // namespace
}  // namespace cairn::testing
