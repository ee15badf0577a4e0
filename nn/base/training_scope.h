// TrainingScope: says whether layers are recorded for training. Dropout, BatchNormalization and
// others behave differently then.
//
//   Function step = strategy.function([&](Iterator input) {
//     const nn::TrainingScope training;
//     ...
//   });
//
// Model opens it by itself. Outside of a scope layers are recorded for inference, as the
// reference's are without `training=True`.
//   Thread  each thread has its own.
#pragma once

namespace cairn::nn {

class TrainingScope {
 public:
  explicit TrainingScope(bool training = true);
  // Scopes nest: what was before holds again.
  ~TrainingScope();
  TrainingScope(const TrainingScope&) = delete;
  TrainingScope& operator=(const TrainingScope&) = delete;

 private:
  const bool before_;
};

// Whether the innermost scope of this thread is one of training.
bool is_training();

}  // namespace cairn::nn
