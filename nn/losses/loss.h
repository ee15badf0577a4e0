// Loss: what a model is trained to make small, as a value: a name that users of Keras know, or any
// function of prediction and label.
//
//     nn::Loss loss = "binary_crossentropy";
//     nn::Loss from_logits("binary_crossentropy", {.from_logits = true});
//     nn::Loss own = [](const Array& prediction, const Array& label) {
//       return square(prediction - label);
//     };
//     Array total = nn::reduce_loss(loss(prediction, label), weights);
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/graph/array.h"

namespace cairn::nn {

// For the losses that have such an option; InvalidArgument where another one is given it.
struct LossOptions {
  bool from_logits = false;   // all cross entropies, focal ones too
  float label_smoothing = 0;  // the same, but for the sparse one; in [0, 1]
  float delta = 1;            // huber
};

// The kind of predictions that a loss takes: how to make probabilities of them for metrics.
enum class LossInput : std::uint8_t {
  kNumbers,        // as they are
  kProbabilities,  // as they are, in [0, 1]
  kLogits,         // sigmoid() of each is a probability
  kClassLogits,    // softmax() along the last axis gives the probabilities of the classes
};

class Loss {
 public:
  // One value per example, as the losses of nn/losses/losses.h: [b] or [b, 1]. Beware of a
  // prediction [b, 1] and a label [b]: operators broadcast them to [b, b]. per_example()
  // (nn/base/layer.h) makes [b] of both.
  using Function = std::function<Array(const Array& prediction, const Array& label)>;

  Loss() = default;  // none
  // By its name in Keras, one of loss_names(), or an alias: "mse" and "MSE" for
  // "mean_squared_error", and the names of the classes, "MeanSquaredError".
  //   Errors  InvalidArgument: no such loss, naming the nearest; an option that it does not have.
  Loss(const char* name) : Loss(name, LossOptions()) {}  // NOLINT(google-explicit-constructor)
  Loss(const std::string& name)
      : Loss(name, LossOptions()) {}  // NOLINT(google-explicit-constructor)
  Loss(const std::string& name, LossOptions options);
  // The caller's own; called while a step is recorded.
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Loss> &&
           std::is_invocable_r_v<Array, F&, const Array&, const Array&>)
      Loss(F function)  // NOLINT(google-explicit-constructor)
      : Loss("loss", std::move(function)) {}
  // A template, so that options in braces are never tried as a function, at which clang 14 fails.
  //   Errors  InvalidArgument: the function is empty.
  template <typename F>
  requires std::is_invocable_r_v<Array, F&, const Array&, const Array&> Loss(
      std::string name, F function, LossInput input = LossInput::kNumbers)
      : name_(std::move(name)), function_(std::move(function)), input_(input) {
    verify_function();
  }

  bool defined() const { return function_ != nullptr; }
  const std::string& name() const { return name_; }  // "mean_squared_error" for "mse"
  LossInput input() const { return input_; }
  // Records it. A loss by name checks in each step that predictions and labels are in its range:
  // labels of binary and one-hot classes in [0, 1], class ids below the number of classes, labels
  // of hinge losses in [-1, 1], counts not below 0, probabilities in [0, 1]. InvalidArgument ends
  // the step before anything is updated.
  //   Errors  FailedPrecondition: there is none. Else the loss's own.
  Array operator()(const Array& prediction, const Array& label) const;

 private:
  void verify_function() const;

  std::string name_;
  Function function_;
  LossInput input_ = LossInput::kNumbers;
};

// The probabilities that a loss of logits means by its predictions; of other losses the predictions
// themselves.
Array probabilities_of(LossInput input, const Array& prediction);

// The names, without aliases, in alphabetical order.
const std::vector<std::string>& loss_names();
// Whether it is one of the names or of the aliases.
bool is_loss_name(const std::string& name);

enum class Reduction : std::uint8_t {
  kSumOverBatchSize,  // the sum divided by the number of examples: the mean, if none has a weight
  kSum,
  kNone,  // one value per example
};
// Values [b] or [b, 1], weights of the same shapes or none. A weight multiplies its example's
// value; the number of examples is b whatever the weights are, as in the reference.
//   Errors  InvalidArgument: shapes that do not fit.
Array reduce_loss(const Array& values, const Array& weights = {},
                  Reduction reduction = Reduction::kSumOverBatchSize);

// The weight of each example by its class -> float32 [b]. Classes that the map does not name weigh
// 1. The label has class ids, [b] or [b, 1] of any numeric dtype, or is one-hot, [b, c].
//   Errors  InvalidArgument: a label of other shapes; a weight that is not finite or is below 0.
Array class_weights(const Array& label, const std::map<std::int64_t, float>& weights);

}  // namespace cairn::nn
