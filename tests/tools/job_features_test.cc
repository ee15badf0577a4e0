// [features] of a job file beside the types of its columns, and what bounds ids.
#include "tools/job_features.h"

#include <gmock/gmock.h>

#include "data/dataset_iterator.h"
#include "tests/tools/temp_folder.h"
#include "tools/fitted_features.h"
#include "tools/job_model.h"
#include "tools/job_words.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class JobFeaturesTest : public ::testing::Test {
 protected:
  Job job(const std::string& text) const { return parse_job(text, folder_.path() + "/some.toml"); }
  // What a job's user reads of the error of `call`.
  template <typename Call>
  static std::string said_by(Call call) {
    try {
      call();
    } catch (const Error& error) {
      return in_job_words(error.what());
    }
    return "it was taken";
  }
  std::string error_of(const std::string& text) const {
    return said_by([&] {
      const Job read = job(text);
      JobNetwork(read, fit_features(read));
    });
  }
  // The first batch of the training data.
  std::map<std::string, Tensor> batch_of(const std::string& text) const {
    const Job read = job(text);
    const Dataset data = train_source(read, fit_features(read)).batch(100);
    const Element all = *open(data)->next();
    std::map<std::string, Tensor> columns;
    for (std::size_t i = 0; i < all.size(); ++i)
      columns[data.element_spec().columns[i].name] = all[i];
    return columns;
  }

  TempFolder folder_;
};

const std::string kCars =
    "[data]\ntrain = 'a.csv'\n[data.csv]\nheader = true\n"
    "columns = ['price:float32', 'carat:float32', 'color', 'cut:int64[]']\n"
    "label = 'price'\n[model]\nobjective = 'regression'\nkind = 'deep'\n[features]\n";

TEST_F(JobFeaturesTest, ALabelOfCsvMayBeAName) {
  folder_.write("a.csv", "price,carat,color,cut\n326,0.2,E,1|2\n327,0.3,F,\n");
  EXPECT_EQ(job(kCars).data.label(), "price");
  EXPECT_EQ(error_of(kCars + "numeric = 'carat'\n"), "it was taken");
}

TEST_F(JobFeaturesTest, AColumnOfTextsUnderNumericIsToldWithKeyAndLine) {
  EXPECT_THAT(error_of(kCars + "numeric = ['carat', 'color']\n"),
              AllOf(HasSubstr("some.toml:11: features.numeric names \"color\", whose dtype is "
                              "string"),
                    HasSubstr("\"color:float32\"")));
  EXPECT_THAT(error_of(kCars + "ids = {color = 7}\n"), HasSubstr("\"color:int64\""));
  EXPECT_THAT(error_of(kCars + "log1p = 'cut'\n"), HasSubstr("holds several values"));
  EXPECT_THAT(
      error_of(kCars + "vocabulary = 'carat'\n"),
      HasSubstr("some.toml:11: features.vocabulary names \"carat\", whose dtype is float32"));
}

TEST_F(JobFeaturesTest, AColumnThatIsNotThereIsToldWithThoseThatAre) {
  folder_.write("a.csv", "price,carat,color\n326,0.2,E\n");
  EXPECT_THAT(error_of(kCars + "numeric = 'clarity'\n"),
              HasSubstr("There are \"price\", \"carat\", \"color\", \"cut\""));
  EXPECT_THAT(error_of(kCars + "hashed = {cut = 9}\n"),
              AllOf(HasSubstr("a.csv:1: the header has no column \"cut\""),
                    HasSubstr("here are \"price\", \"carat\", \"color\"")));
}

TEST_F(JobFeaturesTest, AWidePartWithoutIdsNamesTheKeyOfTheModelsKind) {
  folder_.write("a.csv", "price,carat,color,cut\n326,0.2,E,1\n327,0.3,F,\n");
  std::string wide = kCars;
  wide.replace(wide.find("'deep'"), 6, "'wide'");
  EXPECT_THAT(error_of(wide + "numeric = 'carat'\n"),
              AllOf(HasSubstr("model.kind = \"wide\""), HasSubstr("model.kind = \"deep\"")));
}

// ---- words ----

TEST_F(JobFeaturesTest, BadCellsAreToldWithTheKeysOfTheJob) {
  const auto complaint = [&](const std::string& line) {
    folder_.write("a.csv", "price,carat,color,cut\n" + line + "\n");
    return error_of(kCars + "numeric = 'carat'\nhashed = {color = 9}\n");
  };
  EXPECT_THAT(complaint("1,x,E,1"),
              HasSubstr("\"x\" is not of type float32; mend the line, or leave "
                        "such lines out with data.skip_bad_rows = true"));
  EXPECT_THAT(
      complaint("1,,E,1"),
      HasSubstr("the value is unknown (\"\") and the column has no \"default\"; give it one"));
  EXPECT_THAT(complaint("1,nan,E,1"),
              HasSubstr("name it in \"unknown\" of its table in data.csv.columns, and give the "
                        "column a \"default\""));
  EXPECT_THAT(complaint("1,2,\"E,1"),
              AllOf(HasSubstr("data.csv.quote = \"\""), HasSubstr("data.csv.cell_lines_max"),
                    Not(HasSubstr("::"))));
}

}  // namespace
}  // namespace cairn::tools
