// A fit() on a coordinator with a journal, whose program dies and is started again.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "core/base/json.h"
#include "tests/model/loopback_cluster.h"
#include "tests/model/small_models.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Killed;
using testing::KillsAt;
using testing::LinearData;
using testing::LinearModel;

using Callbacks = std::vector<std::shared_ptr<Callback>>;
constexpr std::int64_t kEpochs = 4, kSteps = 6, kBatch = 4;

// This is what a callback is called for, over all processes of a run.
struct Tally final : Callback {
  void on_epoch_begin(TrainingRun&, std::int64_t epoch) override { begun.push_back(now = epoch); }
  void on_epoch_end(TrainingRun&, std::int64_t epoch, Logs&) override { ended.push_back(epoch); }
  void on_train_batch_end(TrainingRun&, std::int64_t step, const Logs&) override {
    EXPECT_TRUE(steps.insert(now * kSteps + step).second) << "step " << step << " twice";
  }
  std::optional<CallbackState> state() const override {
    return CallbackState{
        json_text({{"now", now}, {"begun", begun}, {"ended", ended}, {"steps", steps}})};
  }
  void restore_state(const CallbackState& saved) override {
    const Json json = parse_json(saved.text, "the tally");
    now = json["now"].get<std::int64_t>();
    begun = json["begun"].get<std::vector<std::int64_t>>();
    ended = json["ended"].get<std::vector<std::int64_t>>();
    steps = json["steps"].get<std::set<std::int64_t>>();
  }
  std::int64_t now = 0;
  std::vector<std::int64_t> begun, ended;
  std::set<std::int64_t> steps;
};

FitOptions options_of(Callbacks callbacks, std::int64_t epochs = kEpochs) {
  return {.epochs = epochs,
          .batch_size = kBatch,
          .shuffle = false,
          .callbacks = std::move(callbacks),
          .verbose = Verbose::kSilent};
}

// Closures come one after another, so that equal updates give equal bits; few are sent ahead, so
// that a program dies within an epoch.
SimulatedClusterOptions in_order(bool journal) {
  SimulatedClusterOptions options{.ps = 1, .workers = 1, .journal = journal};
  options.strategy.engine.pipeline_depth = 1;
  options.strategy.engine.send_window = 1;
  return options;
}

class FitByJournal : public ::testing::Test {
 protected:
  // One process of the program: none of its history if it was killed.
  std::optional<History> run(const Callbacks& callbacks, std::int64_t epochs = kEpochs) {
    const Scope scope = cluster.strategy().scope();
    LinearModel linear;
    std::optional<History> history;
    try {
      history = linear.model.fit(data.x, data.y, options_of(callbacks, epochs));
      weights = linear.model.get_weights();
    } catch (const Killed&) {
    }
    step = ClusterCoordinator(cluster.strategy()).stats().global_step;
    return history;
  }
  void start_again() {
    cluster.kill_chief();
    cluster.start_chief();
  }
  void expect_undisturbed_weights() const { expect_equal(weights, undisturbed.weights); }
  static void expect_equal(const std::vector<Tensor>& got, const std::vector<Tensor>& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(std::memcmp(got[i].raw(), wanted[i].raw(), wanted[i].bytes()), 0);
  }
  // The same program, let alone. A thread has one simulation at a time, so that this one is first.
  struct Undisturbed {
    explicit Undisturbed(const LinearData& data) {
      SimulatedCluster cluster(in_order(false));
      const Scope scope = cluster.strategy().scope();
      LinearModel linear;
      history = linear.model.fit(data.x, data.y, options_of({}));
      weights = linear.model.get_weights();
    }
    History history;
    std::vector<Tensor> weights;
  };

  const LinearData data{kSteps * kBatch};
  const Undisturbed undisturbed{data};
  SimulatedCluster cluster{in_order(true)};
  std::vector<Tensor> weights;
  std::int64_t step = 0;
};

class DeathInAnEpoch : public FitByJournal, public ::testing::WithParamInterface<std::int64_t> {};

TEST_P(DeathInAnEpoch, CostsNoStepAndTakesNoneTwice) {
  const std::int64_t death = GetParam();
  EXPECT_FALSE(run({std::make_shared<Tally>(), std::make_shared<KillsAt>(1, death)}));
  start_again();
  EXPECT_FALSE(run({std::make_shared<Tally>(), std::make_shared<KillsAt>(3, death)}));
  start_again();
  const auto tally = std::make_shared<Tally>();
  const std::optional<History> history = run({tally});
  ASSERT_TRUE(history);
  EXPECT_EQ(step, kEpochs * kSteps);
  expect_undisturbed_weights();
  EXPECT_THAT(history->epoch, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(tally->begun, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(tally->ended, ElementsAre(0, 1, 2, 3));
  for (const std::int64_t whole : {0, 2})
    for (std::int64_t i = 0; i < kSteps; ++i)
      EXPECT_TRUE(tally->steps.contains(whole * kSteps + i)) << "epoch " << whole << " step " << i;
}

INSTANTIATE_TEST_SUITE_P(Steps, DeathInAnEpoch, ::testing::Values(0, 2, kSteps - 1));

// The epoch in which the program died has the logs of the steps whose results a process has seen.
TEST_F(FitByJournal, LogsOfOtherEpochsAreThoseOfAnUndisturbedRun) {
  History wanted = undisturbed.history;
  run({std::make_shared<KillsAt>(1, 2)});
  start_again();
  const History history = run({}).value();
  for (const std::size_t epoch : {0, 2, 3}) {
    EXPECT_EQ(history["loss"][epoch], wanted["loss"][epoch]) << "epoch " << epoch;
    EXPECT_EQ(history["mae"][epoch], wanted["mae"][epoch]) << "epoch " << epoch;
  }
}

TEST_F(FitByJournal, AFitThatHadEndedIsNotRunAgain) {
  const History first = run({}).value();
  start_again();
  const auto tally = std::make_shared<Tally>();
  const History again = run({tally}).value();
  EXPECT_EQ(again.epoch, first.epoch);
  EXPECT_EQ(again["loss"], first["loss"]);
  EXPECT_THAT(tally->begun, ElementsAre());
  EXPECT_EQ(step, kEpochs * kSteps);
  expect_undisturbed_weights();
}

TEST_F(FitByJournal, AFitThatHadEndedGoesOnForMoreEpochs) {
  run({}, 2);
  start_again();
  const auto tally = std::make_shared<Tally>();
  const History history = run({tally}).value();
  EXPECT_THAT(history.epoch, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(tally->begun, ElementsAre(2, 3));
  EXPECT_EQ(step, kEpochs * kSteps);
  expect_undisturbed_weights();
}

// Each call has its own place, and its own data.
TEST(FitByJournalTwice, TheSecondFitGoesOnAndTheFirstIsNotRepeated) {
  const LinearData data(kSteps * kBatch), other(kSteps * kBatch, 2);
  std::vector<Tensor> weights;
  const auto program = [&](SimulatedCluster& cluster, const Callbacks& second) {
    const Scope scope = cluster.strategy().scope();
    LinearModel linear;
    linear.model.fit(data.x, data.y, options_of({}, 2));
    linear.model.evaluate(data.x, data.y, {.batch_size = kBatch});
    linear.model.predict(data.x, kBatch);
    std::vector<std::int64_t> epochs;
    try {
      epochs = linear.model.fit(other.x, other.y, options_of(second, 3)).epoch;
      linear.model.predict(data.x, kBatch);
      weights = linear.model.get_weights();
    } catch (const Killed&) {
    }
    return epochs;
  };
  {
    SimulatedCluster alone(in_order(false));
    program(alone, {});
  }
  const std::vector<Tensor> wanted = weights;
  SimulatedCluster cluster(in_order(true));
  program(cluster, {std::make_shared<KillsAt>(1, 3)});
  cluster.kill_chief();
  cluster.start_chief();
  EXPECT_THAT(program(cluster, {}), ElementsAre(0, 1, 2));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(std::memcmp(weights[i].raw(), wanted[i].raw(), wanted[i].bytes()), 0);
}

// A learning rate that is set is an update too, and counts in the cluster's step.
TEST_F(FitByJournal, ALearningRateThatIsSetIsNoStep) {
  const auto falling = [] {
    return std::make_shared<LearningRateScheduler>(
        [](std::int64_t epoch, float) { return 0.1f / static_cast<float>(epoch + 1); });
  };
  run({falling(), std::make_shared<KillsAt>(2, 3)});
  start_again();
  const auto tally = std::make_shared<Tally>();
  const History history = run({falling(), tally}).value();
  EXPECT_THAT(history.epoch, ElementsAre(0, 1, 2, 3));
  EXPECT_FLOAT_EQ(static_cast<float>(history["learning_rate"][3]), 0.025f);
  EXPECT_THAT(tally->ended, ElementsAre(2, 3));
}

TEST_F(FitByJournal, ItsBackupIsNotGoneBackTo) {
  const tools::TempFolder folder;
  const auto backup = [&] { return std::make_shared<BackupAndRestore>(folder.path() + "/b"); };
  run({backup(), std::make_shared<KillsAt>(2, 4)});
  start_again();
  const std::int64_t stood = ClusterCoordinator(cluster.strategy()).resumed()->global_step;
  EXPECT_GT(stood, 2 * kSteps);
  run({backup()});
  EXPECT_EQ(step, kEpochs * kSteps);
  expect_undisturbed_weights();
}

TEST_F(FitByJournal, AProgramThatTrainsOtherwiseIsTold) {
  run({std::make_shared<KillsAt>(1, 5)});
  start_again();
  const Scope scope = cluster.strategy().scope();
  LinearModel linear;
  FitOptions other = options_of({});
  other.steps_per_epoch = 2;
  try {
    linear.model.fit(data.x, data.y, other);
    FAIL() << "it trained";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("/journal"), HasSubstr("epoch 1"), HasSubstr("trains otherwise")));
  }
}

// With tensors, which lie in a file beside the journal.
TEST(FitByJournalOnDisk, CallbacksKeepTheirTensors) {
  const tools::TempFolder folder;
  const std::string journal = folder.path() + "/journal";
  testing::LoopbackCluster cluster(1, FixedShardsPartitioner(1), journal);
  const LinearData data(kSteps * kBatch);
  const auto stops = [] {
    return std::make_shared<EarlyStopping>(EarlyStoppingOptions{
        .monitor = "said", .patience = 1, .mode = MonitorMode::kMin, .restore_best_weights = true});
  };
  const auto said = [] {
    return std::make_shared<testing::Said>("said", std::vector<double>{2, 1, 3, 4});
  };
  std::vector<Tensor> best;
  const auto run = [&](Callbacks callbacks) {
    const Scope scope = cluster.strategy().scope();
    LinearModel linear;
    try {
      const History history = linear.model.fit(data.x, data.y, options_of(std::move(callbacks)));
      best = linear.model.get_weights();
      return history.epoch.size();
    } catch (const Killed&) {
      return std::size_t{0};
    }
  };
  EXPECT_EQ(run({said(), stops(), std::make_shared<KillsAt>(2, 3)}), 0u);
  cluster.start_again();
  EXPECT_EQ(run({said(), stops()}), 3u);  // not better in epoch 2: the weights are those of epoch 1
  const std::vector<Tensor> ended = best;
  cluster.start_again();
  EXPECT_EQ(run({said(), stops()}), 3u);
  for (std::size_t i = 0; i < best.size(); ++i)
    EXPECT_EQ(std::memcmp(best[i].raw(), ended[i].raw(), ended[i].bytes()), 0);
  EXPECT_FALSE(std::filesystem::exists(journal + "/fit-1"));
}

}  // namespace
}  // namespace cairn
