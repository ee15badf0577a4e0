// The loop that every training runs, over steps that end as the test says.
#include "model/steps/step_loop.h"

#include <gmock/gmock.h>

#include <optional>

#include "core/base/error.h"
#include "strategy/base/one_device_strategy.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using End = StepLoop::End;

// Stands for the runner of a loop that begins its calls itself.
class ScriptedRunner final : public StepRunner {
 public:
  bool stop = false;
  int signal = 0, abandoned = 0;
  std::optional<ErrorParts> cause;  // for which results are cancelled

  Strategy& strategy() override { return strategy_; }
  std::int64_t steps_ahead() const override { return 1; }
  std::int64_t shares() const override { return 1; }
  Data training_data(const Strategy::DatasetFunction&, Visitation) override { return {}; }
  Data pipelines_data(const Strategy::DatasetFunction&) override { return {}; }
  Data test_data(const Dataset&, const std::string&) override { return {}; }
  bool keeps_positions() const override { return false; }
  bool makes_variables(Function&, const Data&) override { return false; }
  StepResult schedule_step(Function&, const Data&) override { return result(); }
  StepResult schedule(Function&, const Data&) override { return result(); }
  void predict(const PredictBody&, const Dataset&, const TakeOutputs&) override {}
  void raise_failure() override {
    if (cause) throw_error(*cause);
  }
  void abandon() override {
    ++abandoned;
    raise_failure();
  }
  std::string save(const CheckpointPolicy&, const std::string&) override { return ""; }
  void save_automatically(const CheckpointPolicy&, const std::string&) override {}
  void set_save_metadata(const std::string&) override {}
  RestoreStatus restore(const std::string&, const RestoreOptions&) override {
    throw UnimplementedError("nothing is restored here");
  }
  bool stop_requested() override { return stop; }
  EngineStats stats() const override { return {}; }
  std::vector<CollectiveCounts> collectives() const override { return {}; }
  std::vector<CollectiveCounts> all_collectives() override { return {}; }
  int interrupted() const override { return signal; }
  bool as_the_chief_says(bool own) override { return own; }
  static StepResult result() { return StepResult(std::vector<Tensor>{Tensor::scalar(0.0f)}); }

 private:
  OneDeviceStrategy strategy_;
};

// A program whose calls take `steps` steps each, and that notes what happens.
struct Noting {
  std::vector<std::int64_t> begun, taken;  // steps of each call
  std::int64_t ahead_most = 0;
  StepLoop::Program program(const StepLoop& loop, std::int64_t steps = 1) {
    return {.begin =
                [this, steps](std::int64_t left) {
                  begun.push_back(std::min(steps, left));
                  return StepLoop::Call{begun.back(), ScriptedRunner::result()};
                },
            .take =
                [this, &loop](std::int64_t of_call, const std::vector<Tensor>&) {
                  ahead_most = std::max(ahead_most, loop.begun() - loop.ended() + of_call);
                  taken.push_back(of_call);
                }};
  }
};

TEST(StepLoop, TakesAsManyStepsAsItIsToldTo) {
  ScriptedRunner runner;
  StepLoop loop(runner, 4);
  Noting noting;
  EXPECT_EQ(loop.run(10, noting.program(loop, 3)), End::kAllTaken);
  EXPECT_THAT(noting.taken, ElementsAre(3, 3, 3, 1));
  EXPECT_EQ(loop.ended(), 10);
  EXPECT_FALSE(loop.under_way());
}

TEST(StepLoop, GoesOnBehindAStep) {
  ScriptedRunner runner;
  StepLoop loop(runner, 1);
  loop.go_on_behind(8);
  Noting noting;
  EXPECT_EQ(loop.run(10, noting.program(loop)), End::kAllTaken);
  EXPECT_EQ(noting.taken.size(), 2u);
  EXPECT_EQ(loop.run(10, noting.program(loop)), End::kAllTaken);
  EXPECT_EQ(noting.taken.size(), 2u);
}

TEST(StepLoop, HasNoMoreStepsUnderWayThanItWasMadeFor) {
  ScriptedRunner runner;
  StepLoop loop(runner, 4);
  Noting noting;
  loop.run(100, noting.program(loop));
  EXPECT_EQ(noting.ahead_most, 4);
}

TEST(StepLoop, FinishesWhatHasBegunIfTheProgramStops) {
  ScriptedRunner runner;
  StepLoop loop(runner, 4);
  Noting noting;
  StepLoop::Program program = noting.program(loop);
  program.is_stopping = [&] { return noting.taken.size() >= 2; };
  EXPECT_EQ(loop.run(100, program), End::kStopped);
  EXPECT_EQ(noting.taken.size(), noting.begun.size());
  EXPECT_LE(noting.taken.size(), 2u + 4u);
  EXPECT_EQ(runner.abandoned, 0);
}

TEST(StepLoop, BeginsNothingWhileTheProgramWaits) {
  ScriptedRunner runner;
  StepLoop loop(runner, 4);
  Noting noting;
  int turns = 0;
  StepLoop::Program program = noting.program(loop);
  program.may_begin = [&] { return turns >= 3; };
  program.turn = [&] {
    ++turns;
    EXPECT_EQ(noting.begun.empty(), turns <= 3);
  };
  EXPECT_EQ(loop.run(2, program), End::kAllTaken);
}

TEST(StepLoop, EndsAtASignalAndWhereItObeysAtAStop) {
  ScriptedRunner runner;
  StepLoop loop(runner, 1);
  Noting noting;
  StepLoop::Program program = noting.program(loop);
  program.turn = [&] { runner.stop = loop.ended() >= 3; };
  EXPECT_EQ(loop.run(5, program), End::kAllTaken);  // it was not said that it obeys
  program.obeys_stop = true;
  loop.go_on_behind(0);
  EXPECT_EQ(loop.run(5, program), End::kInterrupted);
  EXPECT_EQ(loop.ended(), 3);
  program.turn = [&] { runner.signal = 2; };
  loop.go_on_behind(0);
  EXPECT_EQ(loop.run(5, program), End::kInterrupted);
  EXPECT_EQ(loop.ended(), 1);
}

TEST(StepLoop, RaisesTheErrorForWhichAResultWasCancelled) {
  ScriptedRunner runner;
  StepLoop loop(runner, 1);
  StepLoop::Program program{
      .begin = [](std::int64_t) -> StepLoop::Call { throw CancelledError("it was cancelled"); }};
  EXPECT_THROW(loop.run(1, program), CancelledError);
  runner.cause = ErrorParts{Code::kDataLoss, "a file is damaged", {}};
  EXPECT_THROW(loop.run(1, program), DataLossError);
}

TEST(StepLoop, EndsInOrderAtALossThatIsNotFiniteIfTheProgramTakesThat) {
  ScriptedRunner runner;
  StepLoop loop(runner, 1);
  StepLoop::Program program{.begin = [](std::int64_t) -> StepLoop::Call {
    throw NotFiniteError("the loss is nan at step 3, not finite");
  }};
  EXPECT_THROW(loop.run(1, program), InvalidArgumentError);
  EXPECT_EQ(runner.abandoned, 0);
  std::string taken;
  program.not_finite = [&](const Error& error) { taken = error.what(); };
  EXPECT_EQ(loop.run(1, program), End::kNotFinite);
  EXPECT_EQ(taken, "the loss is nan at step 3, not finite");
  EXPECT_EQ(runner.abandoned, 1);
}

TEST(StepLoop, EndsInOrderThoughSeveralStepsAtOnceHadALossThatIsNotFinite) {
  ScriptedRunner runner;
  StepLoop loop(runner, 1);
  const StepLoop::Program program{
      .begin = [](std::int64_t) -> StepLoop::Call { throw NotFiniteError("the loss is nan"); },
      .not_finite = [](const Error&) {}};
  runner.cause = ErrorParts{Code::kInvalidArgument, "the loss is inf", {}, {}, true};
  EXPECT_EQ(loop.run(1, program), End::kNotFinite);
  runner.cause = ErrorParts{Code::kDataLoss, "a file is damaged", {}};
  EXPECT_THROW(loop.run(1, program), DataLossError);
}

TEST(StepLoop, RaisesOtherErrorsOfAStep) {
  ScriptedRunner runner;
  StepLoop loop(runner, 1);
  StepLoop::Program program{.begin = [](std::int64_t) -> StepLoop::Call {
    throw InvalidArgumentError("the shapes differ");
  }};
  program.not_finite = [](const Error&) { FAIL() << "it is no such error"; };
  EXPECT_THROW(loop.run(1, program), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn
