// Losses follow the reference to the last digit where it is well defined, since models are compared
// by their loss. What differs is what the reference leaves open: shapes are checked when the loss
// is recorded, and a label [b] never broadcasts against a prediction [b, 1] to [b, b].
#include "nn/losses.h"

#include <cmath>
#include <string>
#include <utility>

#include "core/graph/ops.h"
#include "nn/clipping.h"
#include "nn/layer.h"

namespace cairn::nn {
namespace {

constexpr float kProbabilityMargin = 1e-7f;  // keeps log() finite; the reference's epsilon

// Unknown sizes are compared when the step runs.
bool fits(std::int64_t a, std::int64_t b) {
  return a == b || a == Shape::kUnknown || b == Shape::kUnknown;
}

[[noreturn]] void refuse(const char* loss, const Array& prediction, const Array& label) {
  throw InvalidArgumentError(str(loss, ": the prediction is ", prediction.type().to_string(),
                                 ", the label ", label.type().to_string()));
}

void check_defined(const char* loss, const Array& prediction, const Array& label) {
  if (!prediction.defined()) throw InvalidArgumentError(str(loss, ": the prediction is missing"));
  if (!label.defined())
    throw InvalidArgumentError(
        str(loss, ": the label is missing; does the dataset's spec name one?"));
}

// Both as [b].
std::pair<Array, Array> one_number_each(const char* loss, const Array& prediction,
                                        const Array& label) {
  check_defined(loss, prediction, label);
  Array p = per_example(to_float(prediction), str(loss, ": the prediction"));
  Array y = per_example(to_float(label), str(loss, ": the label"));
  if (!fits(p.shape()[0], y.shape()[0])) refuse(loss, prediction, label);
  return {p, y};
}

// Both [b, c].
Array one_row_each(const char* loss, const Array& prediction, const Array& label) {
  check_defined(loss, prediction, label);
  bool good = prediction.rank() == 2 && label.rank() == 2 &&
              fits(prediction.shape()[0], label.shape()[0]) &&
              fits(prediction.shape()[1], label.shape()[1]);
  if (!good) refuse(loss, prediction, label);
  return to_float(label);
}

// Class ids as [b], for a prediction [b, c].
Array class_ids(const char* loss, const Array& prediction, const Array& label) {
  check_defined(loss, prediction, label);
  if (prediction.rank() != 2 || (label.dtype() != DType::kInt32 && label.dtype() != DType::kInt64))
    refuse(loss, prediction, label);
  Array ids = per_example(label, str(loss, ": the label"));
  if (!fits(prediction.shape()[0], ids.shape()[0])) refuse(loss, prediction, label);
  return ids;
}

Array clipped(const Array& probability) {
  return clip_by_value(probability, kProbabilityMargin, 1.0f - kProbabilityMargin);
}

// The logarithm of the probabilities, normalised first as the reference does: a prediction need not
// sum to 1.
Array log_probabilities(const Array& prediction) {
  return log(clipped(div(prediction, reduce_sum(prediction, {1}, true))));
}

// Both [b, d], or both [b].
std::pair<Array, Array> numbers_each(const char* loss, const Array& prediction,
                                     const Array& label) {
  check_defined(loss, prediction, label);
  bool rows = prediction.rank() == 2 && label.rank() == 2 && prediction.shape()[1] != 1;
  if (!rows) return one_number_each(loss, prediction, label);
  Array y = one_row_each(loss, prediction, label);
  return {to_float(prediction), y};
}

Array difference(const char* loss, const Array& prediction, const Array& label) {
  auto [p, y] = numbers_each(loss, prediction, label);
  return p - y;
}

Array last_axis_mean(const Array& x) { return x.rank() == 2 ? reduce_mean(x, {1}) : x; }

}  // namespace

Array sigmoid_cross_entropy(const Array& logits, const Array& label) {
  auto [z, y] = one_number_each("sigmoid_cross_entropy", logits, label);
  return sigmoid_cross_entropy_with_logits(y, z);
}

Array binary_cross_entropy(const Array& prediction, const Array& label,
                           BinaryCrossEntropyOptions options) {
  auto [p, y] = numbers_each("binary_cross_entropy", prediction, label);
  if (options.label_smoothing != 0)
    y = y * Array(1.0f - options.label_smoothing) + Array(0.5f * options.label_smoothing);
  if (options.from_logits) return last_axis_mean(sigmoid_cross_entropy_with_logits(y, p));
  // The reference keeps the margin twice: at the clipping, and under the logarithm.
  Array kept = clipped(p), one = Array(1.0f), margin = Array(kProbabilityMargin);
  return last_axis_mean(neg(y * log(kept + margin) + (one - y) * log(one - kept + margin)));
}

Array softmax_cross_entropy(const Array& logits, const Array& label) {
  Array y = one_row_each("softmax_cross_entropy", logits, label);
  return softmax_cross_entropy_with_logits(y, logits);
}

Array sparse_softmax_cross_entropy(const Array& logits, const Array& label) {
  Array ids = class_ids("sparse_softmax_cross_entropy", logits, label);
  return sparse_softmax_cross_entropy_with_logits(ids, logits);
}

Array categorical_cross_entropy(const Array& prediction, const Array& label,
                                CategoricalCrossEntropyOptions options) {
  if (options.from_logits) return softmax_cross_entropy(prediction, label);
  Array y = one_row_each("categorical_cross_entropy", prediction, label);
  return neg(reduce_sum(y * log_probabilities(prediction), {1}));
}

Array sparse_categorical_cross_entropy(const Array& prediction, const Array& label,
                                       CategoricalCrossEntropyOptions options) {
  if (options.from_logits) return sparse_softmax_cross_entropy(prediction, label);
  Array ids = class_ids("sparse_categorical_cross_entropy", prediction, label);
  if (prediction.shape()[1] == Shape::kUnknown)
    refuse("sparse_categorical_cross_entropy", prediction, label);
  return neg(reduce_sum(one_hot(ids, prediction.shape()[1]) * log_probabilities(prediction), {1}));
}

Array mean_squared_error(const Array& prediction, const Array& label) {
  return last_axis_mean(square(difference("mean_squared_error", prediction, label)));
}

Array mean_absolute_error(const Array& prediction, const Array& label) {
  return last_axis_mean(abs(difference("mean_absolute_error", prediction, label)));
}

Array huber(const Array& prediction, const Array& label, float delta) {
  if (!(delta > 0) || !std::isfinite(delta))
    throw InvalidArgumentError(str("huber: a delta of ", delta, "; above 0 is wanted"));
  Array error = difference("huber", prediction, label), size = abs(error);
  return last_axis_mean(
      where(less_equal(size, delta), square(error) * 0.5f, size * delta - 0.5f * delta * delta));
}

Array l1_regularization(const Array& weights, float strength) {
  return reduce_sum(abs(weights)) * strength;
}
Array l2_regularization(const Array& weights, float strength) {
  return reduce_sum(square(weights)) * strength;
}

}  // namespace cairn::nn
