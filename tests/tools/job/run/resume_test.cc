// Going on from a checkpoint, by the command itself: what does not match is an error with names,
// new data is new data.
#include <gmock/gmock.h>

#include "core/base/json.h"
#include "storage/checkpoint_folder.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/job/run/resume.h"
#include "tools/launch/child_process.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kJob = R"([data]
train = "train.csv"
batch = 4
[data.csv]
columns = ["label", "x:float32", "colour"]
label = {column = "label", positive = ["1"], negative = ["0"]}
[features]
numeric = ["x"]
vocabulary = ["colour"]
[model]
kind = "deep"
embedding_dim = 2
hidden = [4]
[optimizer]
kind = "adagrad"
learning_rate = 0.1
)";

class ResumeTest : public ::testing::Test {
 protected:
  ResumeTest() {
    write_data({"red", "red", "green", "blue"});
    folder_.write("job.toml", kJob);
  }
  void write_data(const std::vector<std::string>& colours) const {
    std::string lines;
    for (int i = 0; i < 40; ++i)
      lines += str(i % 2, ",", i, ",", colours[static_cast<std::size_t>(i) % colours.size()], "\n");
    folder_.write("train.csv", lines);
  }
  void write_job(const std::string& name, const std::string& from, const std::string& to) const {
    std::string job = kJob;
    if (!from.empty()) job.replace(job.find(from), from.size(), to);
    folder_.write(name, job);
  }
  ChildProcess start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CAIRN_PROGRAM);
    return ChildProcess({.arguments = arguments, .output_file = path(str("output", ++outputs_))});
  }
  ChildProcess start_training(const std::string& job, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"train",         path(job),
                                       "--ps",          "1",
                                       "--workers",     "1",
                                       "--lanes",       "1",
                                       "--checkpoints", path("checkpoints"),
                                       "--dir",         path(str("run", ++runs_))};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start(arguments);
  }
  // The exit status; what it said is in output().
  int train(const std::string& job, const std::vector<std::string>& more) {
    ChildProcess child = start_training(job, more);
    return end_of(child);
  }
  int run(const std::vector<std::string>& arguments) {
    ChildProcess child = start(arguments);
    return end_of(child);
  }
  int end_of(ChildProcess& child) { return end_in_time(child, 120'000, output()).code; }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string output() const { return folder_.read(str("output", outputs_)); }
  std::string newest() const {
    return storage::CheckpointFolder(system_disk(), path("checkpoints")).latest()->path;
  }

  Json metadata(const std::string& checkpoint) const {
    return parse_json(storage::read_manifest(system_disk(), checkpoint).metadata, "metadata");
  }

  TempFolder folder_;
  int runs_ = 0, outputs_ = 0;
};

TEST_F(ResumeTest, AnotherModelIsAnErrorThatListsWhatDiffersUnlessPartial) {
  ASSERT_EQ(train("job.toml", {"--steps", "5"}), 0) << output();
  EXPECT_EQ(
      train("job.toml", {"--steps", "8", "--resume", path("checkpoints"), "--model", "wide_deep"}),
      1);
  EXPECT_THAT(output(),
              AllOf(HasSubstr("do not match"), HasSubstr("not in the checkpoint: \"wide\""),
                    HasSubstr("--partial"), Not(HasSubstr("cancelled"))));
  EXPECT_EQ(train("job.toml", {"--steps", "8", "--resume", path("checkpoints"), "--model",
                               "wide_deep", "--partial"}),
            0)
      << output();
  EXPECT_THAT(output(), HasSubstr("not taken over"));
}

TEST_F(ResumeTest, AnotherEmbeddingDimIsTheErrorAndNotThatSomethingWasCancelled) {
  ASSERT_EQ(train("job.toml", {"--steps", "5"}), 0) << output();
  write_job("job.toml", "embedding_dim = 2", "embedding_dim = 3");
  EXPECT_EQ(train("job.toml", {"--steps", "8", "--resume", path("checkpoints")}), 1);
  EXPECT_THAT(output(),
              AllOf(HasSubstr("\"deep/colour"), HasSubstr("in the checkpoint float32[4, 2]"),
                    Not(HasSubstr("cancelled"))));
}

TEST_F(ResumeTest, AnotherOptimizerIsAnErrorThatNamesBoth) {
  ASSERT_EQ(train("job.toml", {"--steps", "5"}), 0) << output();
  write_job("job.toml", "adagrad", "adam");
  EXPECT_EQ(train("job.toml", {"--steps", "8", "--resume", path("checkpoints")}), 1);
  EXPECT_THAT(
      output(),
      AllOf(HasSubstr("is updated by adam (m, v), in the checkpoint by adagrad (accumulator)")));
}

TEST_F(ResumeTest, ACheckpointOfAnotherJobIsRefusedByBothNames) {
  ASSERT_EQ(train("job.toml", {"--steps", "5"}), 0) << output();
  write_job("other.toml", "", "");
  EXPECT_EQ(train("other.toml", {"--steps", "8", "--resume", path("checkpoints")}), 1);
  EXPECT_THAT(output(),
              AllOf(HasSubstr("is of job \"job\", this job is \"other\""), HasSubstr("--partial")));
}

TEST_F(ResumeTest, ADatabaseThatIsGoneIsNamed) {
  ASSERT_EQ(train("job.toml", {"--steps", "5"}), 0) << output();
  system_disk().remove_tree(newest() + "/ps-0-shard-0");
  EXPECT_EQ(train("job.toml", {"--steps", "8", "--resume", path("checkpoints")}), 1);
  EXPECT_THAT(output(), AllOf(HasSubstr("ps-0-shard-0"), HasSubstr("cairn ckpt verify"),
                              Not(HasSubstr("cancelled"))));
  EXPECT_THAT(folder_.read("run2/logs/chief-0.log"), HasSubstr("ps-0-shard-0"));
}

TEST_F(ResumeTest, NewDataBeginsAtItsStartAndStepsCountFromThere) {
  ASSERT_EQ(train("job.toml", {"--steps", "5"}), 0) << output();
  const Json before = metadata(newest());
  write_data({"yellow", "green", "green", "green"});  // fitted anew, "green" would have another id
  ASSERT_EQ(train("job.toml", {"--steps", "7", "--resume", path("checkpoints"), "--new-data"}), 0)
      << output();
  EXPECT_THAT(output(), HasSubstr("at step 5, with new data"));
  const storage::Manifest after = storage::read_manifest(system_disk(), newest());
  EXPECT_EQ(after.global_step, 12);
  ASSERT_EQ(after.datasets.size(), 1u);
  EXPECT_EQ(after.datasets[0].ordinal, 7u);
  EXPECT_EQ(metadata(newest())["features"], before["features"]);
}

TEST_F(ResumeTest, ARunningJobSavesAndStopsWhenItIsAsked) {
  ChildProcess training = start_training("job.toml", {"--steps", "100000000"});
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  int saved = 1;
  while (saved != 0 && std::chrono::steady_clock::now() < limit)
    saved = run({"ckpt", "save", path("run1")});  // until it is up
  ASSERT_EQ(saved, 0) << output();
  EXPECT_EQ(output(), newest() + "\n");
  const std::string first = newest();
  EXPECT_EQ(run({"stop", path("run1")}), 0) << output();
  EXPECT_THAT(output(), HasSubstr("has ended"));
  EXPECT_EQ(end_of(training), 0);
  EXPECT_NE(newest(), first);
  EXPECT_THAT(folder_.read("output1"), HasSubstr("stopped after"));
  EXPECT_EQ(run({"stop", path("run1")}), 1);
  EXPECT_THAT(output(), HasSubstr("has ended"));
}

TEST_F(ResumeTest, ItsCheckpointsAreToldAsJson) {
  ASSERT_EQ(train("job.toml", {"--steps", "5"}), 0) << output();
  const auto told = [&](const std::string& command) {
    EXPECT_EQ(run({"ckpt", command, path("checkpoints"), "--json"}), 0) << output();
    return Json::parse(output());
  };
  const Json listed = told("ls"), shown = told("show"), verified = told("verify");
  ASSERT_FALSE(listed.empty());
  EXPECT_EQ(listed.back().value("path", ""), newest());
  EXPECT_EQ(shown.value("path", ""), newest());
  EXPECT_EQ(shown["manifest"].value("global_step", 0), 5);
  EXPECT_EQ(verified.back().value("path", ""), newest());
  EXPECT_TRUE(verified.back().value("clean", false));
  EXPECT_EQ(verified.back()["problems"], Json::array());
}

TEST_F(ResumeTest, PartialWithoutACheckpointIsAUsageError) {
  EXPECT_NE(train("job.toml", {"--partial"}), 0);
  EXPECT_THAT(output(), HasSubstr("--resume"));
}

TEST(SavedFeatures, MeanWhatTheyMeantWhenTheModelWasTrained) {
  TempFolder folder;
  folder.write("train.csv", "1,5,red\n0,7,red\n1,9,blue\n");
  const Job job = parse_job(kJob, folder.path() + "/job.toml");
  const FittedFeatures first = fit_features(job);
  const Json saved = parse_json(json_text(metadata_of(job, first, 3, 0)), "metadata");
  folder.write("train.csv", "1,50,green\n0,70,green\n1,90,blue\n1,90,blue\n");
  const FittedFeatures own = fit_features(job);
  const ResumeOptions options{.new_data = true};
  const FittedFeatures then = SavedJob(saved, "ckpt", options).features(job, own);
  EXPECT_EQ(then.columns, first.columns);
  EXPECT_EQ(then.ids.front().rows, first.ids.front().rows);
  EXPECT_EQ(then.examples, 4);
  EXPECT_THROW(SavedJob(Json::object(), "ckpt", options).features(job, own),
               FailedPreconditionError);
}

}  // namespace
}  // namespace cairn::tools
