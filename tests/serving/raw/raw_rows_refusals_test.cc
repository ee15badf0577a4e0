// Bodies and models that no rows come from, and what is said about them.
#include <gmock/gmock.h>

#include "tests/serving/raw/census.h"

namespace cairn::serving::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

template <typename Call>
std::string refusal_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return str(code_name(error.code()), ": ", error.what());
  }
  return "no error";
}

class Refusals : public ::testing::Test {
 protected:
  // A good body follows each bad one.
  std::string of(const std::string& body, RawForm form) {
    const std::string said = refusal_of([&] { read_.read(body, form); });
    EXPECT_EQ(read_.read(good_, RawForm::kText).examples, 2);
    return said;
  }
  std::string of_line(const std::string& line) { return of(good_ + line, RawForm::kText); }
  // An object where `key` has another value; empty: it has none.
  std::string of_value(const std::string& key, const std::string& value) {
    std::mt19937_64 random(3);
    Cells cells = rows_[0];
    for (auto& cell : cells)
      if (!cell) cell = "1";
    const std::string good = json_object(cells, true, random);
    const std::size_t at = good.find("\"" + key + "\"");
    const std::size_t end = std::min(good.find(", \"", at), good.size() - 1);
    const std::string changed = good.substr(0, at) +
                                (value.empty() ? "\"x\": 1" : "\"" + key + "\": " + value) +
                                good.substr(end);
    return of("[" + good + "," + changed + "]", RawForm::kJson);
  }

  Census census_;
  RawRows read_{census_.about(), {.examples_max = 50}};
  const std::vector<Cells> rows_ = random_rows(11, 2);
  const std::string good_ =
      "17,1,2,Private,x,2020-01-31,,1,4,one word,>50K\n"
      "18,1,2,Private,x,2020-01-31,,1,4,one word,>50K\n";
};

TEST_F(Refusals, NameTheLineTheCharacterAndTheColumn) {
  EXPECT_THAT(of_line("17.5,1,2,Private,x,2020-01-31,,1,4,w,>50K\n"),
              AllOf(HasSubstr("InvalidArgument: body:3:1: column \"age\": \"17.5\""),
                    Not(HasSubstr("OnError"))));
  EXPECT_THAT(of_line("17,1,2,Private,x,31.1.2020,,1,4,w,>50K\n"),
              HasSubstr("body:3:18: column \"since\": \"31.1.2020\""));
  EXPECT_THAT(of_line("17,1,2,Private,x,2020-01-31,,1|100,4,w,>50K\n"),
              AllOf(HasSubstr("body:3:30: column \"codes\""), HasSubstr("100")));
  EXPECT_THAT(of_line("17,nan,2,Private,x,2020-01-31,,1,4,w,>50K\n"),
              HasSubstr("body:3:4: column \"hours\": \"nan\""));
  EXPECT_THAT(of_line(",1,2,Private,x,2020-01-31,,1,4,w,>50K\n"),
              HasSubstr("body:3:1: column \"age\": the value is unknown"));
  EXPECT_THAT(of_line("17,1,2\n"), HasSubstr("body:3: a short row: 3 cells where 11"));
  EXPECT_THAT(of_line("17,1,2,Private,x,2020-01-31,,1,4,\"w,>50K\n"),
              HasSubstr("body:3:34: a quote is opened and never closed"));
  EXPECT_THAT(of("\xFF\xFE", RawForm::kText), HasSubstr("UTF-16"));
}

TEST_F(Refusals, OfJsonNameTheRowTheCharacterAndTheColumn) {
  EXPECT_THAT(of_value("age", "1"), HasSubstr("no error"));
  EXPECT_THAT(of_value("age", "1.5"),
              HasSubstr("body: row 2, character 9: column \"age\": \"1.5\""));
  EXPECT_THAT(of_value("age", ""), HasSubstr("body: row 2: column \"age\": there is no value"));
  EXPECT_THAT(of_value("since", "null"), HasSubstr("row 2: column \"since\": there is no value"));
  EXPECT_THAT(of_value("work", "[1]"), HasSubstr("column \"work\": a list stands there"));
  EXPECT_THAT(of_value("tags", "\"a\""), HasSubstr("column \"tags\": one value stands there"));
  EXPECT_THAT(of_value("codes", "[100]"), HasSubstr("row 2: column \"codes\": \"100\" is not"));
  EXPECT_THAT(of_value("work", "\"\xC3\""), HasSubstr("body: row 2, character"));
  EXPECT_THAT(of_value("hours", "NaN"), HasSubstr("body: row 2, character"));
  EXPECT_THAT(of_value("hours", "1e999"), HasSubstr("column \"hours\": \"1e999\""));
  EXPECT_THAT(of("{", RawForm::kJson), HasSubstr("body: row 1, character 2"));
  EXPECT_THAT(of("3", RawForm::kJson), HasSubstr("an object is wanted"));
}

TEST_F(Refusals, TellOfNoRowsAndOfTooMany) {
  for (const char* none : {"", "\n", "\r\n\r\n", " \n"})
    EXPECT_THAT(of(none, RawForm::kText), HasSubstr("InvalidArgument: the body has no rows"));
  for (const char* none : {"", "[]", "\n"})
    EXPECT_THAT(of(none, RawForm::kJson), HasSubstr("InvalidArgument: the body has no rows"));
  std::string many;
  for (int i = 0; i < 25; ++i) many += good_;
  EXPECT_EQ(read_.read(many, RawForm::kText).examples, 50);
  EXPECT_THAT(of(many + good_, RawForm::kText),
              HasSubstr("InvalidArgument: the body has more than 50 rows"));
  RawRows tight(census_.about(), {.bytes_max = 100});
  EXPECT_THAT(refusal_of([&] { tight.read(good_, RawForm::kText); }),
              HasSubstr("take more than 100 bytes"));
}

TEST(RawRowsWhere, RowsThatTheModelsDataLeavesOutAreRefusedSinceAnswersGoByPlace) {
  Census census(Census::Format::kCsv, {"age >= 18"});
  RawRows read(census.about());
  const std::string young = "17,1,2,Private,x,2020-01-31,,1,4,w,>50K\n";
  const std::string old = "18,1,2,Private,x,2020-01-31,,1,4,w,>50K\n";
  EXPECT_THAT(refusal_of([&] { read.read(old + young + old, RawForm::kText); }),
              HasSubstr("InvalidArgument: 1 rows of the body do not meet the conditions"));
  EXPECT_EQ(read.read(old + old, RawForm::kText).examples, 2);
}

TEST(RawRowsHeader, AHeaderWithoutAColumnIsRefusedByItsName) {
  Census census(Census::Format::kCsvWithHeader);
  RawRows read(census.about());
  const std::string line = "17,1,2,Private,x,2020-01-31,,1,4,w,>50K\n";
  EXPECT_THAT(refusal_of([&] { read.read(line + line, RawForm::kText); }),
              HasSubstr("body:1: the header has no column \"age\""));
  EXPECT_EQ(read.read(header_line() + line, RawForm::kText).examples, 1);
  EXPECT_THAT(refusal_of([&] { read.read("work,hours\nPrivate,1\n", RawForm::kText); }),
              HasSubstr("body:1: the header has no column \"age\""));
  EXPECT_THAT(refusal_of([&] { read.read(header_line(), RawForm::kText); }),
              HasSubstr("the body has no rows"));
}

// A model of one column, with these examples.
SavedModel saved_with(const tools::TempFolder& folder, const Dataset& examples) {
  const Function predict([](Iterator input) { return input.get_next().features["x"]; });
  OneDeviceStrategy strategy(1);
  save_model(strategy, predict, {{{"x", {DType::kFloat32, {Shape::kUnknown}}}}, ""},
             {.name = "one", .examples = examples}, folder.path() + "/model");
  return read_saved_model(folder.path() + "/model");
}

TEST(RawRowsModels, ThatReadNoTextSayWhatWorksInstead) {
  const tools::TempFolder folder;
  const auto refused = [&](const Dataset& examples, RawForm form) {
    RawRows read(saved_with(folder, examples));
    return refusal_of([&] { read.read("1\n", form); });
  };
  const Dataset records = Dataset::records("data", {.fields = {{"x"}}});
  for (const RawForm form : {RawForm::kText, RawForm::kJson})
    EXPECT_THAT(refused(records, form), AllOf(HasSubstr("Unimplemented"), HasSubstr("\"records\""),
                                              HasSubstr("send tensors")));
  const Dataset libsvm =
      Dataset::libsvm("data", {.ids = "i", .values = "v", .label = {.column = "x"}});
  EXPECT_THAT(refused(libsvm, RawForm::kJson),
              AllOf(HasSubstr("Unimplemented"), HasSubstr("send such lines as text")));
  EXPECT_THAT(refused(Dataset::from_tensor_slices({{"x", Tensor::zeros(DType::kFloat32, {2})}}),
                      RawForm::kText),
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr("come from no file")));
  EXPECT_THAT(refused({}, RawForm::kText),
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr("saved without examples")));
}

}  // namespace
}  // namespace cairn::serving::testing
