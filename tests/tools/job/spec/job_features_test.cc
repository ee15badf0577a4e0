// [features] of a job file beside the types of its columns, and what bounds ids.
#include "tools/job/spec/job_features.h"

#include <gmock/gmock.h>

#include <map>

#include "data/dataset/dataset_iterator.h"
#include "tests/tools/job_fixture.h"
#include "tools/job/parts/fitted_features.h"
#include "tools/job/parts/job_model.h"
#include "tools/job/toml/job_words.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class JobFeaturesTest : public JobFixture {
 protected:
  // The error of `call` in the words of a job.
  template <typename Call>
  static std::string said_by(Call call) {
    return in_job_words(raised_by(call));
  }
  std::string error_of(const std::string& text) const {
    return said_by([&] {
      const Job read = job(text);
      JobNetwork(read, fit_features(read));
    });
  }
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
  EXPECT_THAT(
      error_of(kCars + "numeric = 'clarity'\n"),
      HasSubstr(
          "some.toml:11: features.numeric names \"clarity\", which is no column of the "
          "data; did you mean \"carat\"? There are \"price\", \"carat\", \"color\", \"cut\""));
  EXPECT_THAT(error_of(kCars + "hashed = {cut = 9}\n"),
              AllOf(HasSubstr("a.csv:1: the header has no column \"cut\""),
                    HasSubstr("here are \"price\", \"carat\", \"color\"")));
}

TEST_F(JobFeaturesTest, AWidePartWithoutAnyFeatureNamesTheKeyOfTheModelsKind) {
  folder_.write("a.csv", "price,carat,color,cut\n326,0.2,E,1\n327,0.3,F,\n");
  std::string wide = kCars;
  wide.replace(wide.find("'deep'"), 6, "'wide'");
  EXPECT_EQ(error_of(wide + "numeric = 'carat'\n"), "it was taken");
  EXPECT_THAT(error_of(wide + "plain = 'carat'\n"),
              AllOf(HasSubstr("model.kind = \"wide\""), HasSubstr("= \"deep\"")));
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

// ---- ids ----

const std::string kAds =
    "[data]\ntrain = 'a.csv'\nskip_bad_rows = false\n[data.csv]\n"
    "columns = ['y:float32', 'ad:int64', 'tags:int32[]']\nlabel = 'y'\n[features]\n";

TEST_F(JobFeaturesTest, AnIdOutsideOfItsTableIsABadCell) {
  folder_.write("a.csv", "1,1,1\n0,2,2|13\n1,0,9\n0,-1,1\n");
  EXPECT_THAT(error_of(kAds + "ids = {ad = 10, tags = 10}\n"),
              AllOf(HasSubstr("a.csv:2:5: column \"tags\": \"13\" is not an id in [0, 10)"),
                    HasSubstr("(features.ids)"), HasSubstr("data.skip_bad_rows = true"),
                    Not(HasSubstr("::"))));
  std::string lenient = kAds;
  lenient.replace(lenient.find("false"), 5, "true");
  EXPECT_THAT(batch_of(lenient + "ids = {ad = 10, tags = 10}\n")["ad"].values<std::int64_t>(),
              ElementsAre(1, 0));
}

TEST_F(JobFeaturesTest, PaddingIsNoId) {
  folder_.write("a.csv", "1,1,1|-1\n0,-1,2|3\n");
  const std::string features =
      "ids = {ad = {rows = 10, padding = -1}, tags = {rows = 10, padding = -1}}\n";
  auto batch = batch_of(kAds + features);
  EXPECT_THAT(batch["ad"].values<std::int64_t>(), ElementsAre(1));
  EXPECT_THAT(batch["ad/row_splits"].values<std::int64_t>(), ElementsAre(0, 1, 1));
  EXPECT_THAT(batch["tags"].values<std::int32_t>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(error_of(kAds + features), "it was taken");
  EXPECT_THAT(
      error_of(kAds + "ids = {ad = {rows = [10, 10], padding = -1}}\n"),
      HasSubstr("some.toml:8: features.ids.ad.padding must be of a column with one number"));
  EXPECT_THAT(error_of(kAds + "ids = {ad = {padding = -1}}\n"), HasSubstr("it has no rows"));
}

TEST_F(JobFeaturesTest, RecordsHaveBoundsAndPaddingToo) {
  struct Record {
    float y, x;
    std::int32_t ids[2];
  };
  const Record records[] = {{1, 1, {1, -1}}, {0, 2, {3, 12}}, {1, 3, {4, 5}}};
  folder_.write("a.bin", {reinterpret_cast<const char*>(records), sizeof records});
  const std::string data =
      "[data]\ntrain = 'a.bin'\nformat = 'records'\n[data.records]\n"
      "fields = ['y:float32', 'x:float32', 'ids:int32[2]']\nlabel = 'y'\n[features]\n";
  EXPECT_THAT(said_by([&] { batch_of(data + "ids = {ids = 10}\n"); }),
              AllOf(HasSubstr("a.bin: record 0 (from 0), field \"ids\": -1 is not an id"),
                    HasSubstr("data.skip_bad_rows = true")));
  std::string lenient = data;
  lenient.replace(lenient.find("format"), 0, "skip_bad_rows = true\n");
  EXPECT_EQ(fit_features(job(lenient + "ids = {ids = 10}\n")).examples, 1);
  auto batch = batch_of(lenient + "ids = {ids = {rows = 10, padding = -1}}\n");
  EXPECT_THAT(batch["ids"].values<std::int32_t>(), ElementsAre(1, 4, 5));
  EXPECT_THAT(batch["ids/row_splits"].values<std::int64_t>(), ElementsAre(0, 1, 3));
  EXPECT_THAT(batch["x"].values<float>(), ElementsAre(1, 3));
}

}  // namespace
}  // namespace cairn::tools
