// CSV text, well formed and not.
#include <gmock/gmock.h>

#include "data/stage/fit.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CsvSchema two_columns() { return {.columns = {{"n", DType::kInt32}, {"s", DType::kString}}}; }

Element read_batch(const Dataset& dataset) { return *open(dataset.batch(1000))->next(); }

TEST(Csv, ReadsEveryDtype) {
  TempFolder folder;
  CsvSchema schema{.columns = {{"f", DType::kFloat32},
                               {"i", DType::kInt32},
                               {"l", DType::kInt64},
                               {"u", DType::kUint8},
                               {"b", DType::kBool},
                               {"s", DType::kString}}};
  std::string path = folder.write(
      "a.csv",
      "1.5e3,-2147483648,9223372036854775807,255,true,a\n -0.25 , +7, -9223372036854775808 "
      ",0,0,\n16777217,0,0,0,1, b c \n");
  Element all = read_batch(Dataset::csv(path, schema));
  EXPECT_THAT(all[0].values<float>(), ElementsAre(1500.0f, -0.25f, 16777217.0f));
  EXPECT_THAT(all[1].values<std::int32_t>(), ElementsAre(INT32_MIN, 7, 0));
  EXPECT_THAT(all[2].values<std::int64_t>(), ElementsAre(INT64_MAX, INT64_MIN, 0));
  EXPECT_THAT(all[3].values<std::uint8_t>(), ElementsAre(255, 0, 0));
  EXPECT_THAT(all[4].values<bool>(), ElementsAre(true, false, true));
  EXPECT_THAT(all[5].string_values(), ElementsAre("a", "", "b c"));
}

TEST(Csv, KnowsQuotesCommentsBlankLinesAndCarriageReturns) {
  TempFolder folder;
  CsvSchema schema = two_columns();
  schema.comment = "|";
  schema.cell_lines_max = 2;
  std::string path =
      folder.write("a.csv", "|x\r\n\r\n1,\"a,\"\"b\"\"\r\nc\"\r\n  \n2, it's 5\" wide\n|\n3,\"\"");
  Element all = read_batch(Dataset::csv(path, schema));
  EXPECT_THAT(all[0].values<std::int32_t>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(all[1].string_values(), ElementsAre("a,\"b\"\r\nc", "it's 5\" wide", ""));
}

TEST(Csv, FindsColumnsByHeader) {
  TempFolder folder;
  CsvSchema schema = two_columns();
  schema.header = true;
  std::string path = folder.write("a.csv", "other,s,n\n?,x,1\n?,y,2\n");
  EXPECT_THAT(read_batch(Dataset::csv(path, schema))[0].values<std::int32_t>(), ElementsAre(1, 2));
  EXPECT_THAT(read_batch(Dataset::csv({path, path}, schema))[1].string_values(),
              ElementsAre("x", "y", "x", "y"));
  schema.columns[1].name = "otter";
  EXPECT_THAT(error_of([&] { open(Dataset::csv(path, schema)); }),
              HasSubstr("a.csv:1: the header has no column \"otter\"; did you mean \"other\"?"));
}

TEST(Csv, UnknownValuesTakeTheDefault) {
  TempFolder folder;
  CsvSchema schema{
      .columns = {{"n", DType::kInt32, "-1"}, {"s", DType::kString}, {"t", DType::kString, "none"}},
      .unknown = "?"};
  Element all = read_batch(Dataset::csv(folder.write("a.csv", "?,?,?\n,x,\n"), schema));
  EXPECT_THAT(all[0].values<std::int32_t>(), ElementsAre(-1, -1));
  EXPECT_THAT(all[1].string_values(), ElementsAre("?", "x"));
  EXPECT_THAT(all[2].string_values(), ElementsAre("none", "none"));
}

TEST(Csv, ErrorsNameFileLineCharacterColumnAndCure) {
  TempFolder folder;
  auto fails_with = [&](const std::string& text, const std::string& message) {
    std::string path = folder.write("a.csv", text);
    EXPECT_THAT(error_of([&] { read_all(Dataset::csv(path, two_columns())); }),
                HasSubstr("InvalidArgument: " + path + message));
  };
  fails_with("1,a\n\n2x,b\n", ":3:1: column \"n\": \"2x\" is not of type int32; mend the line");
  fails_with("1,a\n 99999999999 ,b\n", ":2:2: column \"n\": \"99999999999\" is not of type int32");
  fails_with("1,a\n,b\n",
             ":2:1: column \"n\": the value is unknown (\"\") and the column has no "
             "CsvColumn::default_value; give it one");
  fails_with("1\n", ":1: a short row: 1 cells where 2 are expected");
  fails_with("1,a\n2,b,c\n", ":2: a long row: 3 cells where 2 are expected");
  fails_with("1,a\n2,\"b\n3,c\n", ":2:3: a quote is opened and not closed on this line");
  fails_with(std::string(100, '7') + ",a\n",
             ":1:1: column \"n\": \"" + std::string(40, '7') + "...\"");
  EXPECT_THAT(error_of([&] { open(Dataset::csv(folder.path("none.csv"), two_columns())); }),
              HasSubstr("NotFound: cannot read the file " + folder.path("none.csv")));
}

// The rows read from a CSV file of numbers and texts, and the complaints about the others.
struct Outcome {
  std::vector<std::int32_t> rows;
  std::vector<std::string> texts, complaints;
};
Outcome read_leniently(const std::string& path, CsvSchema schema) {
  Outcome outcome;
  auto note = [&](const std::string& why) {
    outcome.complaints.push_back(why.substr(path.size()));
  };
  auto iterator = open(Dataset::csv(path, schema, {OnError::kSkipAndCount}), {},
                       {.line_events = {.on_skipped_row = note}});
  while (auto element = iterator->next()) {
    outcome.rows.push_back((*element)[0].item<std::int32_t>());
    outcome.texts.push_back((*element)[1].string_values()[0]);
  }
  EXPECT_EQ(iterator->skipped(), static_cast<std::int64_t>(outcome.complaints.size()));
  return outcome;
}

TEST(Csv, AQuoteThatIsNotClosedOnItsLineSpoilsThatLineOnly) {
  TempFolder folder;
  // A cell of RFC 4180 over three lines, or a stray quote in two texts: the reader cannot
  // know, and reports the quote.
  const Outcome outcome =
      read_leniently(folder.write("a.csv", "1,\"a\n2,b\n3,c\"\n4,\"d\n5,e\n6,\"f"), two_columns());
  EXPECT_THAT(outcome.rows, ElementsAre(2, 3, 5));
  EXPECT_THAT(outcome.texts, ElementsAre("b", "c\"", "e"));
  EXPECT_THAT(outcome.complaints,
              ElementsAre(HasSubstr(":1:3: a quote is opened and not closed on this line"),
                          HasSubstr(":4:3: a quote is opened"), HasSubstr(":6:3: a quote is")));
}

TEST(Csv, AQuotedCellSpansAsManyLinesAsItMayAndNoMore) {
  TempFolder folder;
  CsvSchema schema = two_columns();
  schema.cell_lines_max = 3;
  const Outcome outcome = read_leniently(
      folder.write("a.csv",
                   "1,\"a\nb\nc\"\n2,\"d\n3,e\n4,f\n5,g\"\n6,\"h\n7,i\n8,\"j\nk\"\n9,\"l\n10,m"),
      schema);
  EXPECT_THAT(outcome.rows, ElementsAre(1, 3, 4, 5, 7, 8, 10));
  EXPECT_THAT(outcome.texts, ElementsAre("a\nb\nc", "e", "f", "g\"", "i", "j\nk", "m"));
  EXPECT_THAT(
      outcome.complaints,
      ElementsAre(
          HasSubstr(":4:3: a quote is opened and never closed, at least not within 3 lines"),
          HasSubstr(":8:3: text follows the closing quote of this cell"), HasSubstr(":12:3: a")));
}

TEST(Csv, TextBehindAClosingQuoteIsABadRow) {
  TempFolder folder;
  const Outcome outcome = read_leniently(
      folder.write("a.csv",
                   "1,\"a\" \r\n2,\"b\"c\n3,\"d\"\"e\"\n4,\"f\" g\"\n5,\"h\"\t,\n6,\"\"\n"),
      two_columns());
  EXPECT_THAT(outcome.rows, ElementsAre(1, 3, 6));
  EXPECT_THAT(outcome.texts, ElementsAre("a", "d\"e", ""));
  EXPECT_THAT(
      outcome.complaints,
      ElementsAre(
          HasSubstr(":2:3: text follows the closing quote of this cell; if quotes are ordinary"),
          HasSubstr(":4:3: text"), HasSubstr(":5: a long row: 3 cells")));
}

TEST(Csv, QuotesCanBeSwitchedOffOrBeAnotherCharacter) {
  TempFolder folder;
  const std::string path = folder.write("a.csv", "1,\"a\n2,b\"c\n3,'d,e'\n4,'f\n");
  CsvSchema schema = two_columns();
  schema.quote = 0;
  EXPECT_THAT(read_leniently(path, schema).texts, ElementsAre("\"a", "b\"c", "'f"));
  schema.quote = '\'';
  EXPECT_THAT(read_leniently(path, schema).texts, ElementsAre("\"a", "b\"c", "d,e"));
  schema.quote = ',';
  EXPECT_THAT(error_of([&] { Dataset::csv(path, schema); }),
              HasSubstr("the delimiter of a CSV file cannot be a quote"));
  schema = two_columns();
  schema.cell_lines_max = 0;
  EXPECT_THAT(error_of([&] { Dataset::csv(path, schema); }),
              HasSubstr("cell_lines_max is 0, it must lie in [1, 1000]"));
}

TEST(Csv, StrictRefusesAQuoteWithinACell) {
  TempFolder folder;
  CsvSchema schema = two_columns();
  schema.strict = true;
  const Outcome outcome =
      read_leniently(folder.write("a.csv", "1,5\" wide\n2,\"5\"\" wide\"\n"), schema);
  EXPECT_THAT(outcome.texts, ElementsAre("5\" wide"));
  EXPECT_THAT(
      outcome.complaints,
      ElementsAre(HasSubstr(":1:4: a quote stands within a cell that does not begin with one "
                            "(CsvSchema::strict)")));
}

TEST(Csv, AByteOrderMarkIsNoPartOfTheFirstCell) {
  TempFolder folder;
  CsvSchema schema = two_columns();
  const std::string path = folder.write("a.csv", "\xEF\xBB\xBF\"1\",a\n2,b\n");
  EXPECT_THAT(read_batch(Dataset::csv(path, schema).repeat(2))[0].values<std::int32_t>(),
              ElementsAre(1, 2, 1, 2));
  schema.header = true;
  EXPECT_THAT(read_batch(Dataset::csv(folder.write("b.csv", "\xEF\xBB\xBFn,s\n3,c\n"), schema))[0]
                  .values<std::int32_t>(),
              ElementsAre(3));
  for (const std::string mark : {"\xFF\xFE", "\xFE\xFF"}) {
    const std::string wide = folder.write("c.csv", mark + std::string("1\0,\0", 4));
    EXPECT_THAT(error_of([&] { read_all(Dataset::csv(wide, two_columns())); }),
                HasSubstr("c.csv is UTF-16"));
  }
}

TEST(Csv, MessagesShowRawBytesEscapedAndCutBetweenCharacters) {
  TempFolder folder;
  auto complaint = [&](const std::string& cell) {
    const auto all = read_leniently(folder.write("a.csv", cell + ",a\n"), two_columns()).complaints;
    return all.empty() ? "none" : all.front();
  };
  EXPECT_THAT(complaint("\x1b[31m\x07"), HasSubstr(R"("\x1B[31m\x07" is not of type int32)"));
  EXPECT_THAT(complaint("caf\xE9"), HasSubstr(R"("caf\xE9" is no)"));
  EXPECT_THAT(complaint("caf\xC3\xA9"), HasSubstr("\"caf\xC3\xA9\" is no"));
  EXPECT_THAT(complaint("\xED\xA0\x80\xC0\x80\xF5\xE2\x80"),
              HasSubstr(R"("\xED\xA0\x80\xC0\x80\xF5\xE2\x80" is no)"));
  EXPECT_THAT(complaint("\xE2\x80\xAE"),
              HasSubstr(R"("\xE2\x80\xAE" is no)"));  // turns the direction of writing
  EXPECT_THAT(complaint(std::string(39, 'x') + "\xC3\xA9yz"),
              HasSubstr(std::string(39, 'x') + "\xC3\xA9...\" is no"));
}

TEST(Csv, CountingAndFittingTellWhatTheyLeftOut) {
  TempFolder folder;
  const Dataset dataset = Dataset::csv(folder.write("a.csv", "1,a\nx,b\n3\n4,d\n"), two_columns(),
                                       {OnError::kSkipAndCount});
  LinesRead lines;
  EXPECT_EQ(cardinality(dataset, &lines), 2);
  EXPECT_EQ(lines.skipped, 2);
  EXPECT_THAT(lines.first_skipped,
              ElementsAre(HasSubstr("a.csv:2:1: column \"n\""), HasSubstr("a.csv:3: a short row")));
  const Fit fitted = fit(dataset, {.vocabularies = {"s"}});
  EXPECT_EQ(fitted.lines.skipped, 2);
  EXPECT_EQ(fitted.lines.first_skipped, lines.first_skipped);
  const Dataset none =
      Dataset::csv(folder.write("b.csv", "x,b\ny,c\n"), two_columns(), {OnError::kSkipAndCount});
  EXPECT_THAT(error_of([&] { fit(none, {}); }),
              HasSubstr("no examples; 2 lines were left out, the first one is "));
}

TEST(Csv, GoodRowsBeforeABadOneAreHandedOutAndTheIteratorStaysThere) {
  TempFolder folder;
  auto iterator =
      open(Dataset::csv(folder.write("a.csv", "1,a\n2,b\n3,c\nx,d\n"), two_columns()).batch(2));
  EXPECT_EQ((*iterator->next())[0].shape(), Shape{2});
  for (int i = 0; i < 2; ++i) EXPECT_THAT(error_of([&] { iterator->next(); }), HasSubstr(":4:1"));
  EXPECT_EQ(iterator->ordinal(), 1);
}

TEST(Csv, SkipAndCountLeavesBadLinesOut) {
  TempFolder folder;
  auto iterator = open(Dataset::csv(folder.write("a.csv", "1,a\nx,b\n3\n4,d\n5,e,f\n6,g\n"),
                                    two_columns(), {OnError::kSkipAndCount})
                           .batch(10));
  EXPECT_THAT((*iterator->next())[0].values<std::int32_t>(), ElementsAre(1, 4, 6));
  EXPECT_EQ(iterator->skipped(), 3);
}

TEST(Csv, EachLineBelongsToOneShardWhetherFeaturesStandAboveOrBelow) {
  TempFolder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i) + ",w" + std::to_string(i % 17) + "\n";
  Dataset csv = Dataset::csv(folder.write("a.csv", text), two_columns());
  std::vector<FeatureColumn> features = {FeatureColumn::hashed("n", 1 << 20),
                                         FeatureColumn::hashed("s", 100)};
  std::vector<std::string> rows, whole = read_all(csv.features(features), 10'000);
  for (std::int64_t i = 0; i < 3; ++i) {
    auto above = read_all(csv.shard(3, i).features(features), 10'000);
    EXPECT_EQ(above, read_all(csv.features(features).shard(3, i), 10'000));
    EXPECT_EQ(above, read_all(csv.take(5000).features(features).take(5000).shard(3, i), 10'000))
        << "read by the stages, not by the source";
    rows.insert(rows.end(), above.begin(), above.end());
  }
  std::sort(rows.begin(), rows.end());
  std::sort(whole.begin(), whole.end());
  EXPECT_EQ(rows, whole);
}

TEST(Csv, LinesLongerThanTheBufferAreRead) {
  TempFolder folder;
  std::string path = folder.write("a.csv", "1," + std::string(1 << 20, 'a') + "\n2,b\n");
  Element all = read_batch(Dataset::csv(path, two_columns()));
  EXPECT_EQ(all[1].string_values()[0].size(), std::size_t{1} << 20);
  EXPECT_EQ(all[1].string_values()[1], "b");
}

TEST(Csv, ADamagedGzipFileIsDataLoss) {
  TempFolder folder;
  std::ifstream in("examples/data/adult/adult.test.gz", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  EXPECT_THAT(error_of([&] {
                open(Dataset::csv(folder.write("cut.gz", bytes.substr(0, 50'000)), two_columns()));
              }),
              HasSubstr("DataLoss: the gzip file"));
  bytes[70'000] ^= 0x40;
  EXPECT_THAT(error_of([&] { open(Dataset::csv(folder.write("flip.gz", bytes), two_columns())); }),
              HasSubstr("DataLoss: the gzip file"));
}

}  // namespace
}  // namespace cairn::testing
