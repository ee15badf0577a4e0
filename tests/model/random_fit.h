// A program with a model and random callbacks, made of a seed: what a fit() that is killed and
// started again has to end like.
#pragma once
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "model/saved/loaded_model.h"
#include "model/tensorboard.h"
#include "model/writers/json_number.h"
#include "tests/model/small_models.h"

namespace cairn::testing {

// Where a fit() ends in its middle; `die` does it.
struct Death {
  enum class At : std::uint8_t { kBatchEnd, kEpochBegin, kEpochEnd, kTrainEnd };
  At at = At::kBatchEnd;
  std::int64_t epoch = 0, step = 0;
  std::function<void()> die;
};

class Dies final : public Callback {
 public:
  explicit Dies(Death death) : death_(std::move(death)) {}
  void on_epoch_begin(TrainingRun&, std::int64_t epoch) override {
    epoch_ = epoch;
    end_if(Death::At::kEpochBegin, 0);
  }
  void on_train_batch_end(TrainingRun&, std::int64_t step, const Logs&) override {
    end_if(Death::At::kBatchEnd, step);
  }
  void on_epoch_end(TrainingRun&, std::int64_t, Logs&) override { end_if(Death::At::kEpochEnd, 0); }
  void on_train_end(TrainingRun& run, const Logs&) override {
    if (run.has_ended()) end_if(Death::At::kTrainEnd, 0);
  }

 private:
  void end_if(Death::At at, std::int64_t step) const {
    const bool here = at == Death::At::kTrainEnd || epoch_ == death_.epoch;
    const bool now = at != Death::At::kBatchEnd || step == death_.step;
    if (death_.die && at == death_.at && here && now) death_.die();
  }
  Death death_;
  std::int64_t epoch_ = 0;
};

// A score without a trend, which is what callbacks have to decide by; now and then it is no number.
class RandomScore final : public Callback {
 public:
  explicit RandomScore(std::uint64_t seed) : seed_(seed) {}
  void on_epoch_end(TrainingRun&, std::int64_t epoch, Logs& logs) override {
    Random random(seed_ + static_cast<std::uint64_t>(epoch) * 7919);
    const double score = static_cast<double>(random.below(1000)) / 1000;
    logs.set("val_score", random.below(8) == 0 ? std::nan("") : score);
  }

 private:
  std::uint64_t seed_;
};

// A callback of a program's own that counts its calls, and adds the count to the logs.
class Counts final : public Callback {
 public:
  void on_epoch_begin(TrainingRun&, std::int64_t) override { ++epochs_; }
  void on_train_batch_end(TrainingRun&, std::int64_t, const Logs&) override { ++batches_; }
  void on_epoch_end(TrainingRun&, std::int64_t, Logs& logs) override {
    logs.set("counted", static_cast<double>(1000 * epochs_ + batches_));
  }
  std::optional<CallbackState> state() const override {
    return CallbackState{"counts", {Tensor::of<std::int64_t>({2}, std::vector{epochs_, batches_})}};
  }
  void restore_state(const CallbackState& saved) override {
    epochs_ = saved.tensors.at(0).values<std::int64_t>()[0];
    batches_ = saved.tensors.at(0).values<std::int64_t>()[1];
  }

 private:
  std::int64_t epochs_ = 0, batches_ = 0;
};

// One run of the program of a seed, whose files lie in `folder`.
class RandomFit {
 public:
  RandomFit(std::uint64_t seed, std::string folder, Death death)
      : random_(seed), seed_(seed), folder_(std::move(folder)), death_(std::move(death)) {}

  // The outcome of the run as a text, for comparison.
  std::string run() {
    const auto strategy = make_strategy(pick(kInProcess));
    const Scope scope = strategy->scope();
    nn::Dense dense({.units = 1, .seed = 1});
    Model model([&](const Array& x) { return dense(x); });
    model.compile({.optimizer = nn::Adam({.learning_rate = 0.02f + 0.1f * share()}),
                   .loss = "mse",
                   .metrics = {"mae"}});
    const LinearData data(44, seed_);
    FitOptions options{.epochs = 3 + below(7),
                       .batch_size = 8,
                       .validation_split = 0.25,
                       .callbacks = callbacks(),
                       .verbose = Verbose::kSilent};
    const History history = model.fit(data.x, data.y, options);
    std::ostringstream text;
    for (const auto& [name, values] : history.history) {
      text << name << ':';
      for (const double value : values) text << ' ' << json_text(number_json(value));
      text << '\n';
    }
    for (const Tensor& weight : model.get_weights()) text << weight.to_string(100) << '\n';
    if (stops_) text << "stopped " << stops_->stopped_epoch() << ", best " << stops_->best_epoch();
    text << "\nsum " << json_text(number_json(sum_)) << '\n' << saved(data.x);
    text << "the backup is " << (std::filesystem::exists(folder_ + "/backup") ? "there" : "gone");
    return text.str();
  }

 private:
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(bound)));
  }
  bool coin() { return below(2) == 0; }
  float share() { return static_cast<float>(below(1000)) / 1000; }
  const std::string& pick(const std::vector<std::string>& from) {
    return from[static_cast<std::size_t>(below(std::ssize(from)))];
  }
  // Picks a monitor; no metric is called "val_score".
  template <typename Options>
  Options watching(Options options) {
    options.monitor = pick({"val_loss", "val_mae", "val_score"});
    if (options.monitor == "val_score") options.mode = MonitorMode::kMax;
    return options;
  }

  // The score first, since others watch it; the rest in any order.
  std::vector<std::shared_ptr<Callback>> callbacks() {
    std::vector<std::shared_ptr<Callback>> all;
    stops_ = std::make_shared<EarlyStopping>(watching(EarlyStoppingOptions{
        .patience = below(4), .restore_best_weights = coin(), .start_from_epoch = below(2)}));
    if (below(4) > 0) all.push_back(stops_);
    saves_ = std::make_shared<ModelCheckpoint>(
        folder_ + "/checkpoints",
        watching(ModelCheckpointOptions{.save_best_only = below(4) > 0,
                                        .keep_last = static_cast<std::size_t>(1 + below(2)),
                                        .model = folder_ + "/model"}));
    if (coin()) all.push_back(saves_);
    if (coin())
      all.push_back(std::make_shared<ReduceLROnPlateau>(watching(ReduceLROnPlateauOptions{
          .factor = 0.5, .patience = 1 + below(2), .cooldown = below(3)})));
    else if (coin())
      all.push_back(std::make_shared<LearningRateScheduler>(
          [](std::int64_t, double rate) { return rate * 0.75; }));
    if (coin()) all.push_back(std::make_shared<CSVLogger>(folder_ + "/log.csv"));
    if (coin()) all.push_back(std::make_shared<Counts>());
    if (coin()) all.push_back(std::make_shared<TensorBoard>(folder_ + "/board"));
    if (coin()) all.push_back(sums());
    all.push_back(std::make_shared<BackupAndRestore>(
        folder_ + "/backup", BackupAndRestoreOptions{.every_steps = below(4)}));
    all.push_back(std::make_shared<Dies>(death_));
    for (std::size_t i = all.size() - 1; i > 0; --i)
      std::swap(all[i], all[static_cast<std::size_t>(below(static_cast<std::int64_t>(i) + 1))]);
    all.insert(all.begin(), std::make_shared<RandomScore>(seed_));
    return all;
  }
  std::shared_ptr<Callback> sums() {
    return std::make_shared<LambdaCallback>(LambdaCallbackOptions{
        .on_epoch_end =
            [this](std::int64_t epoch, const Logs& logs) {
              sum_ += logs["val_loss"] * static_cast<double>(epoch + 1);
            },
        .state = [this] { return CallbackState{json_text(number_json(sum_))}; },
        .restore_state =
            [this](const CallbackState& saved) {
              sum_ = number_of(parse_json(saved.text, "the sum"));
            }});
  }
  // The files in the folder, as a text.
  std::string saved(const Tensor& x) const {
    std::ostringstream text;
    if (std::ifstream log(folder_ + "/log.csv"); log) text << log.rdbuf();
    if (!std::filesystem::exists(folder_ + "/model")) return text.str();
    text << "model " << LoadedModel::load(folder_ + "/model").predict({x}).at(0).to_string(100)
         << "\nnewest " << (saves_->newest().empty() ? "none" : "some") << '\n';
    return text.str();
  }

  Random random_;
  std::uint64_t seed_;
  std::string folder_;
  Death death_;
  std::shared_ptr<EarlyStopping> stops_;
  std::shared_ptr<ModelCheckpoint> saves_;
  double sum_ = 0;
};

}  // namespace cairn::testing
