// Text in memory: read as a file is, another one in each pass; and JSON of rows.
#include <gmock/gmock.h>

#include "data/dataset/file_source.h"
#include "data/dataset/stage.h"
#include "data/file/memory_bytes.h"
#include "data/format/json/json_lines.h"
#include "data/format/json/json_text.h"
#include "data/stage/dataset_wire.h"
#include "tests/data/damage.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Stages that stay open from one text to the next.
class OverTexts {
 public:
  explicit OverTexts(Dataset dataset) : dataset_(std::move(dataset)) {}
  // The rows of `text`, each as text.
  std::vector<std::string> rows(const std::string& text) {
    text_ = text;
    if (stages_)
      stages_->restart(0);
    else
      stages_ = open_stages(dataset_.last(), {.open_bytes = [this](const std::string&) {
                              return std::make_unique<MemoryBytes>(text_);
                            }});
    std::vector<std::string> all;
    for (;;) {
      const Block block = stages_->next(3);
      if (block.empty()) return all;
      for (std::int64_t i = 0; i < block.size(); ++i) all.push_back(to_text(block.element(i)));
    }
  }
  std::string refusal(const std::string& text) {
    return error_of([&] { rows(text); });
  }

 private:
  Dataset dataset_;
  std::string_view text_;
  StagePtr stages_;
};

const CsvColumn kNumber{"id", DType::kInt64}, kWord{"t", DType::kString};
const CsvColumn kNumbers{.name = "tags", .dtype = DType::kInt64, .separator = '|'};

std::vector<std::string> from_file(const std::string& text, const CsvSchema& schema) {
  const TempFolder folder;
  return read_all(Dataset::csv(folder.write("a", text), schema), 1 << 20);
}

TEST(MemoryText, IsReadAsAFileIsAnotherInEachPass) {
  const CsvSchema schema{
      .columns = {kNumber, kWord, kNumbers}, .header = true, .cell_lines_max = 9};
  OverTexts read(Dataset::csv("body", schema));
  std::string many = "tags,id,t\n";
  for (int i = 0; i < 40'000; ++i) many += str(i, "|2,", i, ",word", i, "\n");
  for (const std::string& text : {std::string("id,t,tags\n1,a,2|3\n"),
                                  std::string("\xEF\xBB\xBFtags,t,more,id\n,\"a\n\"\"b\",x,7"),
                                  many, std::string("id,t,tags\r\n\r\n4,d,\r\n5,e,6\r\n"),
                                  std::string("t,tags,id\n\n"), std::string("id,t,tags\n9,z,1\n")})
    EXPECT_EQ(read.rows(text),
              text == "t,tags,id\n\n" ? std::vector<std::string>() : from_file(text, schema));
}

TEST(MemoryText, IsReadOnAfterOneThatWasRefused) {
  OverTexts read(Dataset::csv("body", {.columns = {kNumber, kWord}, .header = true}));
  EXPECT_THAT(read.refusal("id,u\n1,a\n"),
              AllOf(HasSubstr("InvalidArgument: body:1: the header has no column \"t\"")));
  EXPECT_EQ(read.rows("t,id\na,1\n").size(), 1u);
  EXPECT_THAT(read.refusal("id\n1\n"), HasSubstr("body:1"));
  EXPECT_THAT(read.refusal("id,t\n1,a\nx,b\n"),
              AllOf(HasSubstr("body:3:1: column \"id\": \"x\""), Not(HasSubstr("OnError"))));
  EXPECT_EQ(read.rows("id,t\n1,a\n2,b\n").size(), 2u);
  EXPECT_THAT(read.rows(""), IsEmpty());
  EXPECT_THAT(read.rows(" \n"), IsEmpty());
}

TEST(MemoryText, ShowsAnewWhetherItHasAColumnThatMayBeMissing) {
  CsvColumn label = kWord;
  label.skip = label.optional = true;
  OverTexts read(Dataset::csv("body", {.columns = {kNumber, label}}));
  const std::vector<std::string> wanted = from_file("7\n8\n", {.columns = {kNumber}});
  EXPECT_EQ(read.rows("7,yes\n8,no\n"), wanted);
  EXPECT_EQ(read.rows("7\n8\n"), wanted);
  EXPECT_EQ(read.rows("7,yes\n8,no"), wanted);
  EXPECT_THAT(read.refusal("7\n8,no\n"), HasSubstr("body:2: a long row: 2 cells"));
}

TEST(MemoryText, ServesForLinesOfOtherFormatsAndNotForBinaryOnes) {
  OverTexts lines(Dataset::text_lines("body"));
  EXPECT_EQ(lines.rows("a\nb").size(), 2u);
  EXPECT_EQ(lines.rows("c\n").size(), 1u);
  OverTexts libsvm(Dataset::libsvm("body"));
  EXPECT_EQ(libsvm.rows("1 2:3 # x\n-1 4:0.5\n").size(), 2u);
  EXPECT_THAT(libsvm.refusal("1 2:3\n1 x\n"),
              AllOf(HasSubstr("body:2:3: \"x\" is not index:value"), Not(HasSubstr("OnError"))));
  EXPECT_EQ(libsvm.rows("1 2:3\n").size(), 1u);
  OverTexts records(Dataset::records("body", {.fields = {{"x"}}}));
  EXPECT_THAT(records.refusal("abcd"), AllOf(HasSubstr("Unimplemented"), HasSubstr("records")));
}

TEST(WithoutColumn, AFileWhoseHeaderNamesNoLabelIsReadAsOneWithIt) {
  const TempFolder folder;
  const Dataset data = Dataset::csv(folder.write("a", "id\n7\n"),
                                    {.columns = {kNumber, kWord}, .label = {"t"}, .header = true});
  EXPECT_THAT(error_of([&] { read_all(data); }), HasSubstr("no column \"t\""));
  const FileSourcePtr without = file_source_of(*data.last())->without_column("t");
  EXPECT_EQ(read_all(dataset_of(without)).size(), 1u);
  const Dataset chosen = Dataset::csv(
      "a", {.columns = {kNumber, kWord}, .label = {"t"}, .header = true, .where = {"t == 'x'"}});
  EXPECT_EQ(file_source_of(*chosen.last())->without_column("t"), nullptr) << "a condition reads it";
  EXPECT_NE(file_source_of(*chosen.last())->without_column("id"), nullptr);
}

// ---- JSON ----

TEST(JsonText, IsOneObjectOrAListOrObjectsOnLinesOfTheirOwn) {
  OverTexts read(json_text("body", {.columns = {kNumber, kWord, kNumbers}}));
  const std::string one =
      R"({"t": "a\n\u00e9", "more": [{}], "id": 12345678901234567, "tags":[1, 2]})";
  const std::string two = R"({"id": "8", "t": "b"})";
  const TempFolder folder;
  const std::vector<std::string> wanted = read_all(json_lines(
      {folder.write("a", one + "\n" + two + "\n")}, {.columns = {kNumber, kWord, kNumbers}}));
  ASSERT_EQ(wanted.size(), 2u);
  for (const std::string& text :
       {one + "\n" + two, one + "\r\n\n" + two + "\n ", "[" + one + "," + two + "]",
        "\xEF\xBB\xBF [ " + one + "\n,\n" + two + "\n]\n",
        "{\n\"id\": 12345678901234567, \"t\": \"a\\n\xC3\xA9\",\n\"tags\": [1,\n2]}\n" + two})
    EXPECT_EQ(read.rows(text), wanted) << text;
  EXPECT_THAT(read.rows(one), ElementsAre(wanted[0]));
  EXPECT_THAT(read.rows("[" + two + "]"), ElementsAre(wanted[1]));
  for (const char* none : {"", " \n", "[]", " [ ] "}) EXPECT_THAT(read.rows(none), IsEmpty());
  std::string many = "[";
  for (int i = 0; i < 5000; ++i) many += str(i == 0 ? "" : ",", two);
  EXPECT_EQ(read.rows(many + "]").size(), 5000u);
}

TEST(JsonText, RefusalsNameTheRowAndTheCharacterInIt) {
  OverTexts read(json_text("body", {.columns = {kNumber, kNumbers}}));
  const auto refused = [&](const std::string& text) {
    const std::string error = read.refusal(text);
    EXPECT_EQ(read.rows("{\"id\": 1}").size(), 1u) << text;
    return error;
  };
  EXPECT_THAT(refused("[{\"id\": 1}, {\"id\": 1.5}]"),
              HasSubstr("InvalidArgument: body: row 2, character 8: column \"id\": \"1.5\""));
  EXPECT_THAT(refused("{\"id\": 1}\n{\"tags\": [1]}"),
              HasSubstr("body: row 2: column \"id\": there is no value for it"));
  EXPECT_THAT(refused("[{\"id\": 1}, {\"id\": 2, \"id\": 3}]"),
              HasSubstr("row 2, character 12: column \"id\": the key stands there twice"));
  EXPECT_THAT(refused("[{\"id\": 1}, {\"id\": {}}]"), HasSubstr("row 2, character 3: column"));
  EXPECT_THAT(refused("[{\"id\": 1}, {\"id\": 2}"),
              HasSubstr("row 3: this is not JSON of rows: the "
                        "list of objects is not closed"));
  EXPECT_THAT(refused("[{\"id\": 1} {\"id\": 2}]"), HasSubstr("row 2: this is not JSON of rows: "
                                                              "objects of a list are parted by"));
  EXPECT_THAT(refused("[{\"id\": 1},]"), HasSubstr("row 2: this is not JSON of rows: an object"));
  EXPECT_THAT(refused("[{\"id\": 1}] 2"), HasSubstr("text follows the list"));
  EXPECT_THAT(refused("{\"id\": 1} {\"id\": 2}"), HasSubstr("text follows the object before it"));
  EXPECT_THAT(refused("{\"id\": 1}\n{\"id\""), HasSubstr("row 2, character 6: this is not one JSON "
                                                         "object: the text ends within it"));
  EXPECT_THAT(refused("{\"id\": \"\xFF\"}"), HasSubstr("row 1, character 9: this is not one JSON"));
  EXPECT_THAT(refused("3"), HasSubstr("row 1: this is not JSON of rows: an object is wanted"));
  EXPECT_THAT(refused("[[1]]"), HasSubstr("an object is wanted"));
  EXPECT_THAT(refused("\xFF\xFE{"), HasSubstr("UTF-16"));
  EXPECT_THAT(refused(std::string(100'000, '[')), HasSubstr("an object is wanted"));
  EXPECT_THAT(refused("{\"x\":" + std::string(100'000, '[')), HasSubstr("row 1, character"));
}

// How lines are cut is left aside; defaults, unknown texts and lists mean what they do there.
TEST(JsonText, TakesTheSchemaOfCsvLines) {
  CsvColumn id = kNumber, tags = kNumbers,
            words{.name = "w", .dtype = DType::kString, .separator = '|'};
  id.default_value = "-1";
  words.default_value = "none|at all";
  const CsvSchema schema{
      .columns = {id, tags, words, {.name = "s", .skip = true, .optional = true}},
      .delimiter = ';',
      .comment = "#",
      .unknown = "?",
      .quote = 0};
  CsvSchema lines = schema;
  lines.columns.pop_back();
  OverTexts read(json_text("body", schema));
  EXPECT_EQ(read.rows("[{\"tags\": [1, 2]}, {\"id\": \"?\", \"w\": [\"a\", \"c\"], \"s\": {}}]"),
            from_file("?;1|2;\n-1;;a|c\n", lines));
  EXPECT_THAT(read.rows("{\"w\": [\"a|b\"]}"), ElementsAre(HasSubstr("{\"a|b\"}")));
}

TEST(JsonText, DoesNotTravel) {
  EXPECT_THAT(error_of([] { serialize(json_text("body", {.columns = {kNumber}})); }),
              HasSubstr("does not travel"));
}

}  // namespace
}  // namespace cairn::testing
