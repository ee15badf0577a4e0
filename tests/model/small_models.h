// The models and strategies that tests of Model share.
#pragma once
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "model/callbacks.h"
#include "model/model.h"
#include "nn/nn.h"
#include "strategy/base/one_device_strategy.h"
#include "strategy/make_strategy.h"
#include "testing/simulated_cluster.h"

namespace cairn::testing {

// y = x · (1, -2, 3) + 0.5, of `count` examples.
struct LinearData {
  explicit LinearData(std::int64_t count, std::uint64_t seed = 1)
      : x(DType::kFloat32, {count, 3}), y(DType::kFloat32, {count, 1}) {
    Random random(seed);
    const auto xs = x.mutable_values<float>(), ys = y.mutable_values<float>();
    for (std::size_t i = 0; i < ys.size(); ++i) {
      for (std::size_t k = 0; k < 3; ++k)
        xs[3 * i + k] = static_cast<float>(random.below(2000)) / 1000 - 1;
      ys[i] = xs[3 * i] - 2 * xs[3 * i + 1] + 3 * xs[3 * i + 2] + 0.5f;
    }
  }
  Tensor x, y;
};

// One dense layer, on the strategy whose scope is open.
struct LinearModel {
  explicit LinearModel(float learning_rate = 0.1f, std::vector<MetricChoice> metrics = {"mae"})
      : dense({.units = 1, .seed = 1}), model([this](const Array& x) { return dense(x); }) {
    model.compile({.optimizer = nn::Sgd({.learning_rate = learning_rate}),
                   .loss = "mse",
                   .metrics = std::move(metrics)});
  }
  nn::Dense dense;
  Model model;
};

inline Tensor column(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<std::int64_t>(values.size()), 1}, values);
}

// The message of the error that the call throws.
template <typename F>
std::string refusal(F act) {
  try {
    act();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// Ends the program's fit() in the middle of an epoch, as a kill would: nothing is saved after it.
struct Killed {};
struct KillsAt final : Callback {
  KillsAt(std::int64_t epoch, std::int64_t step) : epoch(epoch), step(step) {}
  void on_epoch_begin(TrainingRun&, std::int64_t number) override { now = number; }
  void on_train_batch_end(TrainingRun&, std::int64_t number, const Logs&) override {
    if (now == epoch && number == step) throw Killed();
  }
  std::int64_t epoch, step, now = 0;
};

// Logs that a test decides, in the place of the model's own.
struct Said final : Callback {
  Said(std::string name, std::vector<double> values)
      : name(std::move(name)), values(std::move(values)) {}
  void on_epoch_end(TrainingRun&, std::int64_t epoch, Logs& logs) override {
    logs.set(name, values.at(static_cast<std::size_t>(epoch)));
  }
  std::string name;
  std::vector<double> values;
};

// The strategies of one process.
inline const std::vector<std::string> kInProcess = {"one_device", "mirrored", "central_storage"};

}  // namespace cairn::testing
