// If a disk is full when a run ends, all that fits is saved, and the report names what is there.
#include <gmock/gmock.h>

#include "core/base/json.h"
#include "model/steps/local_steps.h"
#include "storage/checkpoint_folder.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/tools/temp_folder.h"
#include "tools/job/run/progress_line.h"
#include "tools/job/run/report.h"
#include "tools/job/run/trainer.h"

namespace cairn::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<storage::CheckpointEntry> checkpoints_in(const std::string& folder) {
  return storage::CheckpointFolder(system_disk(), folder).list();
}

// Steps on one device, over a disk on which the folder `full` has room for so many checkpoints.
class FullDisk final : public StepRunner {
 public:
  FullDisk(LocalStrategy& strategy, std::string full, std::size_t room)
      : steps_(strategy), full_(std::move(full)), room_(room) {}
  std::string save(const CheckpointPolicy& policy, const std::string& metadata) override {
    if (policy.folder != full_ || checkpoints_in(full_).size() < room_)
      return steps_.save(policy, metadata);
    throw ResourceExhaustedError(str("writing ", full_, ": no space left on the disk"));
  }
  void save_automatically(const CheckpointPolicy& policy, const std::string& metadata) override {
    while (checkpoints_in(full_).size() < room_) steps_.save(policy, metadata);
  }

  Strategy& strategy() override { return steps_.strategy(); }
  std::int64_t steps_ahead() const override { return steps_.steps_ahead(); }
  std::int64_t shares() const override { return steps_.shares(); }
  Data training_data(const Strategy::DatasetFunction& dataset_fn, Visitation visitation) override {
    return steps_.training_data(dataset_fn, visitation);
  }
  Data pipelines_data(const Strategy::DatasetFunction& dataset_fn) override {
    return steps_.pipelines_data(dataset_fn);
  }
  Data test_data(const Dataset& batches, const std::string& name) override {
    return steps_.test_data(batches, name);
  }
  bool keeps_positions() const override { return steps_.keeps_positions(); }
  bool makes_variables(Function& step, const Data& data) override {
    return steps_.makes_variables(step, data);
  }
  StepResult schedule_step(Function& function, const Data& data) override {
    return steps_.schedule_step(function, data);
  }
  StepResult schedule(Function& function, const Data& data) override {
    return steps_.schedule(function, data);
  }
  void predict(const PredictBody& body, const Dataset& batches, const TakeOutputs& take) override {
    steps_.predict(body, batches, take);
  }
  void raise_failure() override { steps_.raise_failure(); }
  void abandon() override { steps_.abandon(); }
  void set_save_metadata(const std::string& metadata) override {
    steps_.set_save_metadata(metadata);
  }
  RestoreStatus restore(const std::string& checkpoint, const RestoreOptions& options) override {
    return steps_.restore(checkpoint, options);
  }
  bool stop_requested() override { return steps_.stop_requested(); }
  EngineStats stats() const override { return steps_.stats(); }
  std::vector<CollectiveCounts> collectives() const override { return steps_.collectives(); }
  std::vector<CollectiveCounts> all_collectives() override { return steps_.all_collectives(); }
  int interrupted() const override { return steps_.interrupted(); }
  bool as_the_chief_says(bool own) override { return steps_.as_the_chief_says(own); }

 private:
  LocalSteps steps_;
  std::string full_;
  std::size_t room_;
};

class FullDiskAtTheEnd : public ::testing::Test {
 protected:
  FullDiskAtTheEnd() {
    folder_.write("a.csv", "1,2\n0,3\n1,4\n0,5\n");
    job_ = parse_job(
        "[data]\ntrain = 'a.csv'\nbatch = 4\nepochs = 3\n[data.csv]\n"
        "columns = ['label:float32', 'x:float32']\nlabel = {column = 'label'}\n[features]\n"
        "numeric = ['x']\n[model]\nkind = 'deep'\n[strategy]\nkind = 'one_device'\n",
        folder_.path() + "/job.toml");
  }
  TrainingOutcome run(std::size_t room, const std::string& spare) {
    ProgressLine line;
    TrainerOptions options;
    options.checkpoint_folder = full();
    options.spare_folder = spare;
    options.output = &line;
    options.reporter = std::make_shared<RunReporter>([](const std::string&) {});
    OneDeviceStrategy strategy;
    FullDisk disk(strategy, full(), room);
    return Trainer(job_, fit_features(job_), disk, std::move(options)).run();
  }
  std::string full() const { return folder_.path() + "/full"; }

  TempFolder folder_;
  Job job_;
};

TEST_F(FullDiskAtTheEnd, TheRunsOwnFolderTakesTheLastCheckpoint) {
  const std::string own = folder_.path() + "/own";
  const TrainingOutcome outcome = run(2, own);
  EXPECT_EQ(outcome.failure, "");
  ASSERT_THAT(checkpoints_in(own), SizeIs(1));
  EXPECT_EQ(outcome.checkpoint, checkpoints_in(own).front().path);
  EXPECT_THAT(checkpoints_in(full()), SizeIs(2));
}

TEST_F(FullDiskAtTheEnd, OlderCheckpointsMakeRoomForTheLastOne) {
  const TrainingOutcome outcome = run(2, full());
  EXPECT_EQ(outcome.failure, "");
  ASSERT_THAT(checkpoints_in(full()), SizeIs(2));
  EXPECT_EQ(outcome.checkpoint, checkpoints_in(full()).back().path);
  EXPECT_EQ(checkpoints_in(full()).front().id, 2u);
}

TEST_F(FullDiskAtTheEnd, TheReportNamesTheNewestThatIsThereIfNoneCouldBeSaved) {
  const TrainingOutcome outcome = run(1, "");
  EXPECT_THAT(outcome.failure, HasSubstr("no space left on the disk"));
  ASSERT_THAT(checkpoints_in(full()), SizeIs(1));
  const Json report = parse_json(report_json(job_, outcome, {}, {}), "the report");
  EXPECT_EQ(report["checkpoint"], checkpoints_in(full()).front().path);
  EXPECT_EQ(report["completed"], false);
}

}  // namespace
}  // namespace cairn::tools
