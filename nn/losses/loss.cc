#include "nn/losses/loss.h"

#include <algorithm>
#include <cmath>

#include "core/graph/ops.h"
#include "core/tensor/element.h"
#include "nn/base/example_pairs.h"
#include "nn/base/layer.h"
#include "nn/base/value_range.h"
#include "nn/losses/losses.h"

namespace cairn::nn {
namespace {

using Make = Loss::Function (*)(LossOptions);

enum LossOption : unsigned { kNoOption = 0, kFromLogits = 1, kSmoothing = 2, kDelta = 4 };

constexpr ValueRange kNotNegative{0};
constexpr ValueRange kSigned{-1, 1};

struct KnownLoss {
  const char* name;  // in alphabetical order
  std::vector<const char*> aliases;
  unsigned takes;
  Make make;
  ValueRange label = {};
  ValueRange prediction = {};                    // where it takes no logits
  LossInput input = LossInput::kNumbers;         // likewise
  LossInput logits = LossInput::kProbabilities;  // where it does
};
constexpr LossInput kProbabilities = LossInput::kProbabilities;

// A loss without options.
template <Array (*loss)(const Array&, const Array&)>
Loss::Function plain_loss(LossOptions) {
  return loss;
}

FocalOptions focal_options(LossOptions options) {
  FocalOptions focal;
  focal.from_logits = options.from_logits;
  focal.label_smoothing = options.label_smoothing;
  return focal;
}

Loss::Function binary_of(LossOptions options) {
  return [options](const Array& prediction, const Array& label) {
    return binary_cross_entropy(
        prediction, label,
        {.from_logits = options.from_logits, .label_smoothing = options.label_smoothing});
  };
}

Loss::Function categorical_of(LossOptions options) {
  return [options](const Array& prediction, const Array& label) {
    return categorical_cross_entropy(
        prediction, label,
        {.from_logits = options.from_logits, .label_smoothing = options.label_smoothing});
  };
}

Loss::Function sparse_categorical_of(LossOptions options) {
  return [options](const Array& prediction, const Array& label) {
    return sparse_categorical_cross_entropy(prediction, label,
                                            {.from_logits = options.from_logits});
  };
}

Loss::Function binary_focal_of(LossOptions options) {
  return [focal = focal_options(options)](const Array& prediction, const Array& label) {
    return binary_focal_cross_entropy(prediction, label, focal);
  };
}

Loss::Function categorical_focal_of(LossOptions options) {
  return [focal = focal_options(options)](const Array& prediction, const Array& label) {
    return categorical_focal_cross_entropy(prediction, label, focal);
  };
}

Loss::Function huber_of(LossOptions options) {
  return [delta = options.delta](const Array& prediction, const Array& label) {
    return huber(prediction, label, delta);
  };
}

const std::vector<KnownLoss>& known_losses() {
  static const std::vector<KnownLoss> known = {
      {"binary_crossentropy",
       {"bce", "BCE", "BinaryCrossentropy", "binary_cross_entropy"},
       kFromLogits | kSmoothing,
       binary_of,
       kProbabilityRange,
       kProbabilityRange,
       kProbabilities,
       LossInput::kLogits},
      {"binary_focal_crossentropy",
       {"BinaryFocalCrossentropy"},
       kFromLogits | kSmoothing,
       binary_focal_of,
       kProbabilityRange,
       kProbabilityRange,
       kProbabilities,
       LossInput::kLogits},
      {"categorical_crossentropy",
       {"CategoricalCrossentropy", "categorical_cross_entropy"},
       kFromLogits | kSmoothing,
       categorical_of,
       kProbabilityRange,
       kNotNegative,  // they are normalised
       kProbabilities,
       LossInput::kClassLogits},
      {"categorical_focal_crossentropy",
       {"CategoricalFocalCrossentropy"},
       kFromLogits | kSmoothing,
       categorical_focal_of,
       kProbabilityRange,
       kNotNegative,  // they are normalised
       kProbabilities,
       LossInput::kClassLogits},
      {"categorical_hinge",
       {"CategoricalHinge"},
       kNoOption,
       plain_loss<categorical_hinge>,
       kProbabilityRange},
      {"cosine_similarity", {"CosineSimilarity"}, kNoOption, plain_loss<cosine_similarity>},
      {"hinge", {"Hinge"}, kNoOption, plain_loss<hinge>, kSigned},
      {"huber", {"Huber", "huber_loss"}, kDelta, huber_of},
      {"kl_divergence",
       {"kld", "KLD", "KLDivergence", "kullback_leibler_divergence"},
       kNoOption,
       plain_loss<kl_divergence>,
       kProbabilityRange,
       kProbabilityRange,
       kProbabilities},
      {"log_cosh", {"logcosh", "LogCosh"}, kNoOption, plain_loss<log_cosh>},
      {"mean_absolute_error",
       {"mae", "MAE", "MeanAbsoluteError"},
       kNoOption,
       plain_loss<mean_absolute_error>},
      {"mean_absolute_percentage_error",
       {"mape", "MAPE", "MeanAbsolutePercentageError"},
       kNoOption,
       plain_loss<mean_absolute_percentage_error>},
      {"mean_squared_error",
       {"mse", "MSE", "MeanSquaredError"},
       kNoOption,
       plain_loss<mean_squared_error>},
      {"mean_squared_logarithmic_error",
       {"msle", "MSLE", "MeanSquaredLogarithmicError"},
       kNoOption,
       plain_loss<mean_squared_logarithmic_error>},
      {"poisson", {"Poisson"}, kNoOption, plain_loss<poisson>, kNotNegative, kNotNegative},
      {"sparse_categorical_crossentropy",
       {"SparseCategoricalCrossentropy", "sparse_categorical_cross_entropy"},
       kFromLogits,
       sparse_categorical_of,
       {},  // class ids, which it looks at itself
       kNotNegative,
       kProbabilities,
       LossInput::kClassLogits},
      {"squared_hinge", {"SquaredHinge"}, kNoOption, plain_loss<squared_hinge>, kSigned},
  };
  return known;
}

const KnownLoss* known_loss(const std::string& name) {
  for (const KnownLoss& one : known_losses())
    if (name == one.name ||
        std::find(one.aliases.begin(), one.aliases.end(), name) != one.aliases.end())
      return &one;
  return nullptr;
}

const KnownLoss& find_loss(const std::string& name) {
  if (const KnownLoss* found = known_loss(name)) return *found;
  std::vector<std::string> names = loss_names();
  for (const KnownLoss& one : known_losses())
    names.insert(names.end(), one.aliases.begin(), one.aliases.end());
  const std::string near = nearest_name(name, names);
  throw InvalidArgumentError(str("there is no loss \"", name, "\"",
                                 near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

void refuse_option(const KnownLoss& loss, LossOption option, bool given, const char* text) {
  if (given && (loss.takes & option) == 0)
    throw InvalidArgumentError(str("the loss ", loss.name, " has no option ", text));
}

void check_options(const KnownLoss& loss, const LossOptions& options) {
  refuse_option(loss, kFromLogits, options.from_logits, "from_logits");
  refuse_option(loss, kSmoothing, options.label_smoothing != 0, "label_smoothing");
  refuse_option(loss, kDelta, options.delta != 1, "delta");
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    throw InvalidArgumentError(str("the loss ", loss.name, ": a label_smoothing of ",
                                   options.label_smoothing, "; 0 to 1 is wanted"));
  if (!(options.delta > 0) || !std::isfinite(options.delta))
    throw InvalidArgumentError(
        str("the loss ", loss.name, ": a delta of ", options.delta, "; above 0 is wanted"));
}

const char* label_cure(const ValueRange& range) {
  if (range.low < 0) return "this loss has labels -1 and 1, or 0 and 1";
  if (range.high > 1) return "this loss has labels that are counts";
  return "this loss has labels 0 and 1, or probabilities between them";
}

std::string prediction_cure(const KnownLoss& loss) {
  if ((loss.takes & kFromLogits) == 0) return "let the network end in what this loss takes";
  const char* activation = loss.logits == LossInput::kLogits ? "sigmoid" : "softmax";
  return str("it is a logit: give the loss the option from_logits = true, or let the network end ",
             "in ", activation, "()");
}

// Predictions and labels that are missing are the loss's own error.
Loss::Function checked(const KnownLoss& loss, const LossOptions& options) {
  return
      [&loss, options, function = loss.make(options)](const Array& prediction, const Array& label) {
        if (!prediction.defined() || !label.defined()) return function(prediction, label);
        const std::string name = str("loss \"", loss.name, "\": ");
        Array p = prediction, y = label;
        if (loss.prediction.is_bounded() && !options.from_logits)
          p = in_range(p, loss.prediction, name + "a prediction", prediction_cure(loss));
        if (loss.label.is_bounded())
          y = in_range(y, loss.label, name + "a label", label_cure(loss.label));
        return function(p, y);
      };
}

// The class of each example, int64 [b].
Array classes_of(const Array& label) {
  if (!label.defined()) throw InvalidArgumentError("class_weights: the label is missing");
  if (label.rank() == 2 && label.shape()[1] != 1) return argmax(to_float(label), 1);
  return cast(per_example(label, "class_weights: the label"), DType::kInt64);
}

}  // namespace

Loss::Loss(const std::string& name, LossOptions options) {
  const KnownLoss& loss = find_loss(name);
  check_options(loss, options);
  name_ = loss.name;
  function_ = checked(loss, options);
  input_ = options.from_logits ? loss.logits : loss.input;
}

void Loss::verify_function() const {
  if (!function_) throw InvalidArgumentError(str("the loss \"", name_, "\" has no function"));
}

Array Loss::operator()(const Array& prediction, const Array& label) const {
  if (!defined())
    throw FailedPreconditionError("a Loss was called that was never given a name or a function");
  return function_(prediction, label);
}

Array probabilities_of(LossInput input, const Array& prediction) {
  if (input == LossInput::kLogits) return sigmoid(to_float(prediction));
  return input == LossInput::kClassLogits ? softmax(to_float(prediction)) : prediction;
}

const std::vector<std::string>& loss_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const KnownLoss& one : known_losses()) all.emplace_back(one.name);
    return all;
  }();
  return names;
}

bool is_loss_name(const std::string& name) { return known_loss(name) != nullptr; }

Array reduce_loss(const Array& values, const Array& weights, Reduction reduction) {
  Array each = per_example(to_float(values), "reduce_loss: the values");
  if (weights.defined()) {
    Array scale = per_example(to_float(weights), "reduce_loss: the weights");
    if (!fits(each.shape()[0], scale.shape()[0]))
      throw InvalidArgumentError(str("reduce_loss: the values are ", values.type().to_string(),
                                     ", the weights ", weights.type().to_string()));
    each = each * scale;
  }
  if (reduction == Reduction::kNone) return each;
  return reduction == Reduction::kSum ? sum(each) : mean(each);
}

// A class that is not in the map is found after all that are, where the table holds a 1.
Array class_weights(const Array& label, const std::map<std::int64_t, float>& weights) {
  Array classes = classes_of(label);
  if (weights.empty()) return ones_like(to_float(classes));
  std::vector<std::int64_t> keys;
  std::vector<float> table;
  for (const auto& [key, weight] : weights) {
    if (!(weight >= 0) || !std::isfinite(weight))
      throw InvalidArgumentError(str("class_weights: class ", key, " has weight ", weight,
                                     "; a finite one of at least 0 is wanted"));
    keys.push_back(key);
    table.push_back(weight);
  }
  table.push_back(1);
  const auto count = static_cast<std::int64_t>(keys.size());
  const Array sorted = Tensor::of<std::int64_t>(Shape{count}, keys);
  const Array values = Tensor::of<float>(Shape{count + 1}, table);
  return gather(values, find_key(classes, sorted));
}

}  // namespace cairn::nn
