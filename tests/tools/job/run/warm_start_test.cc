// A new run that begins with rows of a checkpoint: rows follow their values, and whatever would
// stand for other values is refused before anything is trained.
#include "tools/job/run/warm_start.h"

#include <gmock/gmock.h>

#include "tests/tools/job_run.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A rate of 0.5 learns, and one of almost nothing shows what a run began with.
std::string animals(const std::string& kind, const std::string& rate,
                    const std::string& more = "") {
  return R"([data]
train = "a.csv"
batch = 4
epochs = 50
[data.csv]
columns = ["label:float32", "animal", "food"]
label = {column = "label"}
[features]
vocabulary = ["animal", "food"]
[model]
kind = ")" +
         kind + "\"\nhidden = [4]\n" + "[optimizer]\nkind = \"adagrad\"\nlearning_rate = " + rate +
         "\n" + more;
}
std::string wide_animals(const std::string& rate, const std::string& more = "") {
  std::string job = animals("wide", rate, more);
  return job.replace(job.find("hidden"), 13, "");
}
constexpr const char* kFirstDay = "1,ant,hay\n0,bee,hay\n0,cat,fish\n1,dog,fish\n";
// Without "ant", so that all others have other ids, and with "fox" and "owl".
constexpr const char* kSecondDay = "1,fox,hay\n0,bee,fish\n0,cat,fish\n1,dog,owl\n";
constexpr const char* kFromFirst = "[warm_start]\nfrom = \"first\"\n";

class WarmStartedRun : public JobRun, public ::testing::Test {
 protected:
  int train(const std::string& dir, const std::string& strategy,
            std::vector<std::string> more = {}) {
    more.insert(more.begin(),
                {"train", path("job.toml"), "--dir", path(dir), "--strategy", strategy});
    return cairn(more);
  }
  // A job of that text is trained on the first day; the next trains on the second one.
  void begin(const std::string& job) {
    folder.write("job.toml", job);
    folder.write("a.csv", kFirstDay);
    ASSERT_EQ(train("first", "one_device"), 0) << output();
    folder.write("a.csv", kSecondDay);
  }
  // Predictions for animals that eat what is not known.
  std::vector<double> predicted_by(const std::string& run, const std::vector<std::string>& names) {
    std::string examples;
    for (const std::string& name : names) examples += name + ",nothing\n";
    folder.write("new.csv", examples);
    EXPECT_EQ(cairn({"predict", path(run), "--data", path("new.csv"), "--out", path("scores.csv"),
                     "--overwrite"}),
              0)
        << output();
    std::istringstream lines(folder.read("scores.csv"));
    std::string header;
    lines >> header;
    std::vector<double> all;
    for (double one; lines >> one;) all.push_back(one);
    return all;
  }
  void expect_alike(const std::string& run, const std::vector<std::string>& names) {
    const std::vector<double> before = predicted_by("first", names),
                              after = predicted_by(run, names);
    ASSERT_EQ(before.size(), names.size());
    ASSERT_EQ(after.size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i)
      EXPECT_NEAR(after[i], before[i], 1e-4) << run << ", " << names[i];
  }
};

TEST_F(WarmStartedRun, WideRowsFollowTheirValuesUnderEveryStrategy) {
  begin(wide_animals("0.5"));
  folder.write("job.toml", wide_animals("1e-9", kFromFirst));
  for (const char* strategy :
       {"one_device", "mirrored", "central_storage", "multi_worker_mirrored", "parameter_server"}) {
    ASSERT_EQ(train(strategy, strategy), 0) << output();
    EXPECT_THAT(output(), AllOf(HasSubstr("warm start from "), HasSubstr("\"wide\": from \"wide\""),
                                HasSubstr("done after 50 steps")));
    expect_alike(strategy, {"bee", "cat", "dog", "never seen"});
    // Gone: as unknown now. New: the weight is 0.
    const std::vector<double> now = predicted_by(strategy, {"ant", "never seen", "fox"});
    EXPECT_NEAR(now[0], now[1], 1e-6);
  }
}

TEST_F(WarmStartedRun, VectorsFollowTheirValuesAndTheTowerIsTakenWithThem) {
  begin(animals("deep", "0.5"));
  folder.write("job.toml", animals("deep", "1e-9", kFromFirst));
  for (const char* strategy : {"one_device", "parameter_server"}) {
    ASSERT_EQ(train(strategy, strategy), 0) << output();
    EXPECT_THAT(output(), HasSubstr("\"deep/animal\": from \"deep/animal\", 4 rows to their new "
                                    "numbers, 1 left out, 1 rows begin anew"));
    expect_alike(strategy, {"bee", "cat", "dog", "never seen"});
  }
}

TEST_F(WarmStartedRun, ARunThatIsResumedGoesOnFromItsOwnCheckpoint) {
  begin(wide_animals("0.5"));
  folder.write("job.toml", wide_animals("0.5", kFromFirst));
  ASSERT_EQ(train("second", "one_device"), 0) << output();
  ASSERT_EQ(train("third", "one_device", {"--resume", path("second"), "--epochs", "60"}), 0)
      << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("at step 50"), Not(HasSubstr("warm start"))));
}

TEST_F(WarmStartedRun, PatternsAndRenamesChooseAndTheOptimizerMayBeAnotherOne) {
  begin(animals("deep", "0.5"));
  std::string job = animals("deep", "1e-9", std::string(kFromFirst) + R"(
include = ["deep/animal", "deep/food"]
slots = false
[warm_start.rename]
"deep/*" = "table/*"
)");
  job.replace(job.find("\"deep\""), 6, "\"deepfm\"");
  job.replace(job.find("\"adagrad\""), 9, "\"lazy_adam\"");
  folder.write("job.toml", job);
  ASSERT_EQ(train("second", "one_device"), 0) << output();
  EXPECT_THAT(
      output(),
      AllOf(HasSubstr("\"table/animal\": from \"deep/animal\", 4 rows to their new numbers"),
            HasSubstr("slots begin anew"), HasSubstr("begins anew, left out")));
}

TEST_F(WarmStartedRun, WhatIsAmbiguousIsRefusedBeforeAnythingIsTrained) {
  begin(animals("deep", "0.5"));
  folder.write("job.toml", animals("deep", "0.5", std::string(kFromFirst) + R"(
include = ["depp/*"]
rename = {"deep/animal" = "deep/food"}
)"));
  EXPECT_EQ(train("second", "parameter_server"), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr("include: \"depp/*\" matches no variable"),
                              HasSubstr("rename: \"deep/animal\" matches no variable")));
  EXPECT_THAT(output(), Not(HasSubstr("done after")));
}

TEST_F(WarmStartedRun, AnotherShapeIsRefusedWithTheKeyThatLeavesItOut) {
  begin(animals("deep", "0.5"));
  std::string job = animals("deep", "0.5", kFromFirst);
  job.replace(job.find("[4]"), 3, "[5]");
  folder.write("job.toml", job);
  EXPECT_EQ(train("second", "one_device"), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr("deep/tower"), HasSubstr("warm_start.exclude")));
  folder.write("job.toml", job + "exclude = [\"deep/tower/*\"]\n");
  EXPECT_EQ(train("third", "one_device"), 0) << output();
}

TEST_F(WarmStartedRun, OnServersAnotherShapeIsRefusedBehindThePlan) {
  begin(animals("deep", "0.5"));
  std::string job = animals("deep", "0.5", kFromFirst);
  job.replace(job.find("[4]"), 3, "[5]");
  folder.write("job.toml", job);
  EXPECT_EQ(train("second", "parameter_server"), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr("\"deep/tower/dense_0/bias\": does not fit"),
                              HasSubstr("warm_start.exclude"), Not(HasSubstr("done after"))));
}

TEST_F(WarmStartedRun, ATableOfACrossWhoseValuesHaveOtherIdsIsRefused) {
  const std::string cross =
      "[[features.crosses]]\ncolumns = [\"animal\", \"food\"]\nbuckets = 7\ndeep = true\n";
  begin(animals("deep", "0.5", cross));
  folder.write("job.toml", animals("deep", "0.5", cross + kFromFirst));
  EXPECT_EQ(train("second", "one_device"), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr("would stand for other values"),
                              HasSubstr("\"deep/animal_x_food\": it combines values of \"animal\""),
                              HasSubstr("warm_start.exclude")));
}

TEST_F(WarmStartedRun, TheFlagNamesTheCheckpointAndGoesNotWithResume) {
  begin(wide_animals("0.5"));
  folder.write("job.toml", wide_animals("1e-9"));
  ASSERT_EQ(train("second", "one_device", {"--warm-start", path("first")}), 0) << output();
  expect_alike("second", {"bee", "cat", "dog"});
  EXPECT_NE(
      train("third", "one_device", {"--warm-start", path("first"), "--resume", path("first")}), 0);
  EXPECT_THAT(output(), AllOf(HasSubstr("--resume"), HasSubstr("--warm-start")));
  EXPECT_EQ(train("fourth", "one_device", {"--warm-start", path("nowhere")}), 1);
  EXPECT_THAT(output(), HasSubstr("warm_start.from: "));
}

TEST_F(WarmStartedRun, AnotherLabelIsWarnedOf) {
  begin(animals("deep", "0.5"));
  std::string job = animals("deep", "0.5", kFromFirst);
  job.replace(job.find("label = {column = \"label\"}"), 26,
              "label = {column = \"label\", positive = [\"0\"]}");
  job.replace(job.find("label:float32"), 13, "label");
  folder.write("job.toml", job);
  EXPECT_EQ(train("second", "one_device"), 0) << output();
  EXPECT_THAT(output(), HasSubstr("warning: warm_start: the label is "));
}

}  // namespace
}  // namespace cairn::tools
