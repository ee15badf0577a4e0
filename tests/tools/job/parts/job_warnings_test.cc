#include "tools/job/parts/job_warnings.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/base/json.h"
#include "tests/tools/temp_folder.h"
#include "tools/job/run/report.h"
#include "tools/job/spec/job_format.h"
#include "tools/job/toml/job_words.h"

namespace cairn::tools {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A job over lines of text, with more of its table [data.csv] in `csv`.
Job text_job(const std::string& path, const std::string& csv = "") {
  return parse_job("[data]\ntrain = '" + path + "'\nskip_bad_rows = true\n[data.csv]\n" + csv +
                       "columns = ['n:float32', 'city', 'y:float32']\nlabel = {column = 'y'}\n" +
                       "[features]\nnumeric = ['n']\nvocabulary = ['city']\n",
                   "some.toml");
}

TEST(JobWarnings, AdamOnALargeTableIsToldAndOnlyThere) {
  Job job;
  job.optimizer.kind = job.wide_optimizer.kind = "adam";
  FittedFeatures features;
  features.ids = {{"sex", 3}, {"city", 100'001}};
  EXPECT_THAT(optimizer_warnings(job, features),
              ElementsAre(HasSubstr("\"city\" has 100001 rows: \"lazy_adam\"")));
  features.ids[1].rows = 100'000;
  EXPECT_THAT(optimizer_warnings(job, features), IsEmpty());
  features.ids[1].rows = 100'001;
  job.optimizer.kind = "lazy_adam";
  EXPECT_THAT(optimizer_warnings(job, features), ElementsAre(HasSubstr("wide_optimizer.kind")));
  job.model.kind = "dlrm";
  EXPECT_THAT(optimizer_warnings(job, features), IsEmpty());
}

TEST(JobWarnings, ReplicasInStepOnAModelThatIsTooSmallForThemAreTold) {
  Job job;
  FittedFeatures features;
  features.ids = {{"sex", 3}, {"city", 100}};
  EXPECT_THAT(in_step_warnings(job, features), IsEmpty()) << "each at its own pace";
  job.strategy.kind = "mirrored";
  EXPECT_THAT(in_step_warnings(job, features), ElementsAre(HasSubstr("\"one_device\" is faster")));
  job.model.hidden = {1024, 1024};
  EXPECT_THAT(in_step_warnings(job, features), IsEmpty()) << "a model that is worth it";
  job.model.hidden = {8};
  job.strategy = {.kind = "parameter_server", .consistency = "synchronous"};
  EXPECT_THAT(in_step_warnings(job, features), ElementsAre(HasSubstr("parameter_server")));
  job.strategy.kind = "one_device";
  EXPECT_THAT(in_step_warnings(job, features), IsEmpty());
}

TEST(JobWarnings, RowsThatWereLeftOutAreToldAtTheEndAndInTheReport) {
  const TempFolder folder;
  folder.write("a.csv", "1,a,0\nx,b,1\n2,c\n3,d,1\n");
  const std::string path = folder.path() + "/a.csv";
  const Job job = text_job(path);
  const FittedFeatures features = fit_features(job);
  EXPECT_EQ(features.examples, 2);
  EXPECT_EQ(skipped_rows_text(features.lines, "data.train"),
            "2 bad rows of data.train were left out (data.skip_bad_rows):\n  " + path +
                ":2:1: column \"n\": \"x\" is not of type float32\n  " + path +
                ":3: a short row: 2 cells where 3 are expected");
  EXPECT_EQ(skipped_rows_text({}, "data.train"), "");
  const Json report = parse_json(report_json(job, {}, {}, features.lines), "the report");
  EXPECT_EQ(report["skipped"]["train"]["rows"], 2);
  EXPECT_THAT(report["skipped"]["train"]["first"][0].get<std::string>(), HasSubstr("a.csv:2:1"));
  EXPECT_EQ(report["skipped"]["test"]["rows"], 0);
}

TEST(JobWarnings, AFileWithoutRowsIsAnErrorThatNamesIt) {
  const TempFolder folder;
  folder.write("a.csv", "1,a,0\n");
  folder.write("b.csv", "");
  Job job = text_job(folder.path() + "/a.csv");
  job.data.train.push_back(folder.path() + "/b.csv");
  try {
    fit_features(job);
    ADD_FAILURE() << "an empty file passed";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(in_job_words(error.what()),
                HasSubstr("no rows are in " + folder.path() +
                          "/b.csv (0 bytes); fetch such a file again, leave it out, or skip such "
                          "files by data.empty_files = \"skip\""));
  }
}

TEST(JobWarnings, FilesWithoutRowsArePassedOverAndToldIfTheJobSaysSo) {
  const TempFolder folder;
  folder.write("_SUCCESS", "");
  folder.write("part-0.tsv", "1\ta\t0\n");
  folder.write("part-1.tsv", "");
  const std::string text =
      "[data]\ntrain = '" + folder.path() +
      "/*'\nempty_files = 'skip'\n[data.csv]\ncolumns = ['n:float32', "
      "'city', 'y:float32']\nlabel = {column = 'y'}\n[features]\nnumeric = 'n'\n";
  const Job job = parse_job(text, "some.toml");
  const FittedFeatures features = fit_features(job);
  EXPECT_EQ(features.examples, 1);
  EXPECT_EQ(passed_over_text(features.lines, "data.train"),
            "2 files of data.train have no rows and were passed over (data.empty_files): " +
                folder.path() + "/_SUCCESS, " + folder.path() + "/part-1.tsv");
  const Json report = parse_json(report_json(job, {}, {}, features.lines), "the report");
  EXPECT_EQ(report["skipped"]["train"]["empty_files"], 2);
  EXPECT_EQ(report["skipped"]["test"]["empty_files"], 0);
  try {
    parse_job("[data]\ntrain = 'a'\nempty_files = 'ski'\n", "some.toml");
    ADD_FAILURE() << "an unknown policy passed";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("some.toml:3: data.empty_files"));
  }
}

TEST(JobFile, SaysWhatQuotesAre) {
  EXPECT_EQ(text_job("a.csv").data.form().cells()->quote, '"');
  const CsvSchema csv =
      *text_job("a.csv", "quote = ''\nstrict = true\ncell_lines_max = 5\n").data.form().cells();
  EXPECT_EQ(csv.quote, '\0');
  EXPECT_TRUE(csv.strict);
  EXPECT_EQ(csv.cell_lines_max, 5);
  try {
    text_job("a.csv", "quote = '<<'\n");
    ADD_FAILURE() << "a quote of two characters passed";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("data.csv.quote must be one character, or empty"));
  }
}

}  // namespace
}  // namespace cairn::tools
