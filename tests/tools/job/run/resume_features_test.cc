// Going on from a checkpoint over other features or other data is an error before anything is
// restored, under every strategy; --new-data goes on with the features of the checkpoint.
#include <gmock/gmock.h>

#include "storage/manifest.h"
#include "tests/tools/job_run.h"
#include "tools/job/run/resume.h"
#include "tools/job/train/checkpoint_path.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kAnimals = R"([data]
train = "a.csv"
batch = 4
epochs = 100
[data.csv]
columns = ["label:float32", "animal"]
label = {column = "label"}
[features]
vocabulary = ["animal"]
[model]
kind = "wide"
[optimizer]
kind = "adagrad"
learning_rate = 0.5
)";
constexpr const char* kDay1 = "1,ant\n0,bee\n0,cat\n1,dog\n";
constexpr const char* kDay2 = "1,fox\n0,bee\n0,cat\n1,dog\n";

class ResumedRun : public JobRun, public ::testing::Test {
 protected:
  ResumedRun() {
    folder.write("job.toml", kAnimals);
    folder.write("a.csv", kDay1);
  }
  int train(const std::string& dir, std::vector<std::string> more) {
    more.insert(more.begin(), {"train", path("job.toml"), "--dir", path(dir)});
    return cairn(more);
  }
  void begin() {
    ASSERT_EQ(train("first", {"--strategy", "one_device"}), 0) << output();
    folder.write("a.csv", kDay2);
  }
  std::vector<std::string> predicted_by(const std::string& run) {
    folder.write("new.csv", "ant\nbee\ncat\ndog\nfox\n");
    EXPECT_EQ(cairn({"predict", path(run), "--data", path("new.csv"), "--out", path("scores.csv"),
                     "--overwrite"}),
              0)
        << output();
    std::istringstream lines(folder.read("scores.csv"));
    std::vector<std::string> all;
    for (std::string line; lines >> line;) all.push_back(line);
    return all;
  }
};

const std::vector<std::vector<std::string>> kSettings = {
    {"one_device"},
    {"mirrored"},
    {"central_storage"},
    {"multi_worker_mirrored"},
    {"hybrid"},
    {"parameter_server"},
    {"parameter_server", "--consistency", "synchronous"}};

// No setting leaves a step to train: that is how the difference once went unnoticed.
TEST_F(ResumedRun, AnotherVocabularyIsAnErrorUnderEveryStrategy) {
  begin();
  int number = 0;
  for (std::vector<std::string> setting : kSettings)
    for (const char* epochs : {"100", "110"}) {
      setting.insert(setting.begin(), "--strategy");
      setting.insert(setting.end(), {"--epochs", epochs, "--resume", path("first")});
      SCOPED_TRACE(setting[1]);
      EXPECT_EQ(train(str("other", ++number), setting), 1) << output();
      EXPECT_THAT(output(),
                  AllOf(HasSubstr("feature \"animal\": value 1 of the vocabulary is "
                                  "\"ant\" in the checkpoint and \"bee\" in the data now"),
                        HasSubstr("--new-data")));
      setting.erase(setting.begin());
      setting.resize(setting.size() - 4);
    }
}

TEST_F(ResumedRun, NewDataGoesOnWithTheOldVocabularyAndThenIsResumedAsItIs) {
  begin();
  const std::vector<std::string> before = predicted_by("first");
  ASSERT_EQ(train("second", {"--strategy", "one_device", "--resume", path("first"), "--new-data",
                             "--epochs", "2"}),
            0)
      << output();
  const std::vector<std::string> after = predicted_by("second");
  ASSERT_EQ(after.size(), 6u);
  for (std::size_t i = 1; i <= 4; ++i)
    EXPECT_NEAR(std::stod(after[i]), std::stod(before[i]), 0.05) << i;
  // the second run's data is what it was, though its features are not what that data gives
  ASSERT_EQ(train("third",
                  {"--strategy", "parameter_server", "--resume", path("second"), "--epochs", "4"}),
            0)
      << output();
  EXPECT_THAT(output(), HasSubstr("done after 104 steps"));
  folder.write("a.csv", kDay1);
  EXPECT_EQ(train("fourth", {"--strategy", "one_device", "--resume", path("third")}), 1);
  EXPECT_THAT(output(), HasSubstr("\"bee\" in the checkpoint and \"ant\" in the data now"));
}

TEST_F(ResumedRun, WhatEndsBeforeTheCheckpointSaysSo) {
  begin();
  folder.write("a.csv", kDay1);
  ASSERT_EQ(
      train("second", {"--strategy", "one_device", "--resume", path("first"), "--epochs", "50"}), 0)
      << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("the job ends at step 50, and the checkpoint is of step "
                                        "100: nothing is left to train"),
                              HasSubstr("resumed from"), HasSubstr("done after 100 steps")));
}

// A position in the file is one in the data as it was: under parameter servers the files' names
// belong to it.
TEST_F(ResumedRun, AnotherFileOfTheSameContentIsAnErrorAtTheStartWhereThePlaceIsSaved) {
  ASSERT_EQ(train("first", {"--strategy", "parameter_server"}), 0) << output();
  folder.write("b.csv", kDay1);
  std::string job = kAnimals;
  job.replace(job.find("a.csv"), 5, "b.csv");
  folder.write("job.toml", job);
  EXPECT_EQ(train("second",
                  {"--strategy", "parameter_server", "--resume", path("first"), "--epochs", "110"}),
            1);
  EXPECT_THAT(output(), AllOf(HasSubstr("dataset \"train\" is not the one that the checkpoint has "
                                        "a position in"),
                              HasSubstr("--new-data")));
}

// ---- what differs ----

constexpr const char* kNumbers = R"([data]
train = "a.csv"
batch = 2
[data.csv]
columns = ["label", "age:float32", "hours:float32", "zip", "note"]
label = {column = "label", positive = ["yes"]}
[features]
numeric = ["age", "hours"]
vocabulary = ["zip"]
bucketised = {age = [18, 65]}
hashed = {note = 100}
[model]
kind = "deep"
)";
constexpr const char* kRows =
    "yes,20,1,a,x\nno,30,2,b,x\nyes,40,3,a,y\nno,50,5,c,z\nyes,20,1,a,x\nno,30,2,b,x\n";

class Differences : public ::testing::Test {
 protected:
  Differences() {
    folder_.write("a.csv", kRows);
    const Job first = job("", "");
    saved_ = parse_json(json_text(metadata_of(first, fit_features(first), 3, 0)), "metadata");
  }
  Job job(const std::string& from, const std::string& to) const {
    std::string text = kNumbers;
    if (!from.empty()) text.replace(text.find(from), from.size(), to);
    return parse_job(text, folder_.path() + "/job.toml");
  }
  // The error of a resume; empty if it is accepted.
  std::string of(const Job& now, ResumeOptions options = {}) const {
    try {
      SavedJob(saved_, "ckpt", options).verify_features(now, fit_features(now));
      return "";
    } catch (const FailedPreconditionError& error) {
      return error.what();
    }
  }
  std::string of_rows(const std::string& rows, ResumeOptions options = {}) const {
    folder_.write("a.csv", rows);
    return of(job("", ""), options);
  }

  TempFolder folder_;
  Json saved_;
};

TEST_F(Differences, OfTheSameJobAndDataThereAreNone) { EXPECT_EQ(of(job("", "")), ""); }

TEST_F(Differences, OfTheDataAreNamedByColumnAndLeftToNewData) {
  const std::string rows = kRows;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = rows;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  const std::vector<std::pair<std::string, std::string>> all = {
      {with("yes,20", "yes,26"), "column \"age\": the mean is 31.666666 in the checkpoint and "},
      {with("50,5,c", "50,5,d"),
       "feature \"zip\": value 3 of the vocabulary is \"c\" in the "
       "checkpoint and \"d\" in the data now"},
      {with("40,3,a", "40,3,d"),
       "the vocabulary ends after 3 values in the checkpoint, and value 4 is \"d\""},
      {rows + rows, "the number of training examples is 6 in the checkpoint and 12 now"},
      {with(",z\n", ",zebra\n"), "a.csv has "}};
  for (const auto& [changed, wanted] : all) {
    EXPECT_THAT(of_rows(changed), AllOf(HasSubstr(wanted), HasSubstr("--new-data")));
    EXPECT_EQ(of_rows(changed, {.new_data = true}), "") << wanted;
  }
}

TEST_F(Differences, OfTheBatchesWouldShiftThePlaceInTheData) {
  EXPECT_THAT(of(job("batch = 2", "batch = 3")),
              HasSubstr("data.batch is 2 in the checkpoint and 3 now"));
  EXPECT_THAT(of(job("batch = 2", "batch = 2\nshuffle = 4")), HasSubstr("data.shuffle is 0"));
  EXPECT_EQ(of(job("batch = 2", "batch = 3"), {.new_data = true}), "");
}

TEST_F(Differences, OfTheJobsFeaturesAreNoMatterOfTheData) {
  const std::vector<std::tuple<std::string, std::string, std::string>> all = {
      {"\"age\", \"hours\"", "\"hours\", \"age\"",
       "feature 1 is \"numeric\", the numbers age, hours in the checkpoint and \"numeric\", the "
       "numbers hours, age now"},
      {"[18, 65]", "[21, 65]", "age in buckets at 18, 65 in the checkpoint and"},
      {"note = 100", "note = 200", "note hashed into 100 in the checkpoint and"},
      {"hashed = {note = 100}\n", "",
       "feature 3 is \"note\", note hashed into 100 in the checkpoint"},
      {"[\"yes\"]", "[\"no\"]",
       "the label is binary of \"label\", 1 for \"yes\" in the checkpoint"}};
  for (const auto& [from, to, wanted] : all)
    for (const bool new_data : {false, true})
      EXPECT_THAT(of(job(from, to), {.new_data = new_data}),
                  AllOf(HasSubstr(wanted), HasSubstr("write it in the job file as it was")));
}

// As many rows with another meaning would be taken over without a word.
TEST_F(Differences, OfAnotherModelMayBeMeantButNotUnderTheSameNameAndShape) {
  const ResumeOptions partial{.partial = true};
  EXPECT_EQ(of(job("note = 100", "note = 200"), partial), "");
  EXPECT_EQ(of(job("[\"yes\"]", "[\"no\"]"), partial), "");
  EXPECT_THAT(of(job("[18, 65]", "[21, 65]"), partial), HasSubstr("age in buckets at 21, 65"));
  EXPECT_THAT(of(job("\"age\", \"hours\"", "\"hours\", \"age\""), partial),
              HasSubstr("hours, age"));
}

TEST_F(Differences, APartialRestoreFitsWhatTheCheckpointDoesNotKnow) {
  const Job more =
      job("[\"zip\"]\nbucketised = {age = [18, 65]}\nhashed = {note = 100}", "[\"note\", \"zip\"]");
  folder_.write("a.csv", "yes,2,1,q,u\nno,3,2,q,v\n");
  const FittedFeatures fitted = SavedJob(saved_, "ckpt", {.partial = true, .new_data = true})
                                    .features(more, fit_features(more));
  EXPECT_EQ(fitted.columns[1].values, (std::vector<std::string>{"u", "v"}));
  EXPECT_EQ(fitted.columns[2].values, (std::vector<std::string>{"a", "b", "c"}));
}

// Checkpoints from before this was saved.
TEST_F(Differences, AnOlderCheckpointIsComparedByWhatItHas) {
  saved_.erase("data");
  saved_["features"].erase("columns");
  saved_["features"].erase("label");
  EXPECT_EQ(of(job("batch = 2", "batch = 3")), "");
  EXPECT_THAT(of_rows("yes,20,1,b,x\nno,30,2,b,x\n"), HasSubstr("column \"age\": the mean is"));
}

}  // namespace
}  // namespace cairn::tools
