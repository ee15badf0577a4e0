// Losses follow the reference to the last digit where it is well defined, since models are compared
// by their loss. What differs is what the reference leaves open: shapes are checked when the loss
// is recorded, and a label [b] never broadcasts against a prediction [b, 1] to [b, b].
#include "nn/losses/losses.h"

#include <cmath>

#include "core/graph/ops.h"
#include "nn/base/clipping.h"
#include "nn/base/example_pairs.h"
#include "nn/base/value_range.h"

namespace cairn::nn {
namespace {

constexpr float kProbabilityMargin = 1e-7f;  // keeps log() finite; the reference's epsilon

Array clipped(const Array& probability) {
  return clip_by_value(probability, kProbabilityMargin, 1.0f - kProbabilityMargin);
}

// The logarithm of the probabilities, normalised first as the reference does: a prediction need not
// sum to 1.
Array log_probabilities(const Array& prediction) {
  return log(clipped(div(prediction, reduce_sum(prediction, {1}, true))));
}

Array smoothed_binary(const Array& label, float smoothing) {
  return smoothing == 0 ? label : label * (1.0f - smoothing) + 0.5f * smoothing;
}

Array smoothed_classes(const Array& label, float smoothing) {
  if (smoothing == 0) return label;
  return label * (1.0f - smoothing) + smoothing / cast(dim_size(label, 1), DType::kFloat32);
}

void check_focal(const char* loss, const FocalOptions& options) {
  if (!(options.gamma >= 0) || !std::isfinite(options.gamma))
    throw InvalidArgumentError(str(loss, ": a gamma of ", options.gamma, "; at least 0 is wanted"));
}

// The terms of both classes, -label · log p - (1 - label) · log(1 - p), for a probability p. The
// reference keeps the margin twice: at the clipping, and under the logarithm.
Array cross_entropy_terms(const Array& probability, const Array& label) {
  Array kept = clipped(probability);
  return neg(label * log(kept + kProbabilityMargin) +
             (1.0f - label) * log(1.0f - kept + kProbabilityMargin));
}

Array difference(const char* loss, const Array& prediction, const Array& label) {
  auto [p, y] = numbers_each(loss, prediction, label);
  return p - y;
}

// label · prediction, for labels -1 (or 0) and 1.
Array signed_score(const char* loss, const Array& prediction, const Array& label) {
  auto [p, y] = numbers_each(loss, prediction, label);
  return where(equal(y, 0.0f), -1.0f, y) * p;
}

Array last_axis_sum(const Array& x) { return x.rank() == 2 ? reduce_sum(x, {1}) : x; }

Array at_least_margin(const Array& x) { return maximum(x, kProbabilityMargin); }

// Vectors of length 1, or shorter where the length is below 1e-6, as in the reference.
Array unit_vectors(const Array& x) {
  Array squares = x.rank() == 2 ? reduce_sum(square(x), {1}, true) : square(x);
  return x * rsqrt(maximum(squares, 1e-12f));
}

}  // namespace

Array sigmoid_cross_entropy(const Array& logits, const Array& label) {
  auto [z, y] = one_number_each("sigmoid_cross_entropy", logits, label);
  return sigmoid_cross_entropy_with_logits(y, z);
}

Array binary_cross_entropy(const Array& prediction, const Array& label,
                           BinaryCrossEntropyOptions options) {
  auto [p, y] = numbers_each("binary_cross_entropy", prediction, label);
  y = smoothed_binary(y, options.label_smoothing);
  if (options.from_logits) return last_axis_mean(sigmoid_cross_entropy_with_logits(y, p));
  return last_axis_mean(cross_entropy_terms(p, y));
}

Array softmax_cross_entropy(const Array& logits, const Array& label) {
  auto [z, y] = one_row_each("softmax_cross_entropy", logits, label);
  return softmax_cross_entropy_with_logits(y, z);
}

Array sparse_softmax_cross_entropy(const Array& logits, const Array& label) {
  Array ids = class_ids("sparse_softmax_cross_entropy", logits, label);
  return sparse_softmax_cross_entropy_with_logits(ids, logits);
}

Array categorical_cross_entropy(const Array& prediction, const Array& label,
                                CategoricalCrossEntropyOptions options) {
  auto [p, y] = one_row_each("categorical_cross_entropy", prediction, label);
  y = smoothed_classes(y, options.label_smoothing);
  if (options.from_logits) return softmax_cross_entropy_with_logits(y, p);
  return neg(reduce_sum(y * log_probabilities(p), {1}));
}

Array sparse_categorical_cross_entropy(const Array& prediction, const Array& label,
                                       CategoricalCrossEntropyOptions options) {
  if (options.label_smoothing != 0)
    throw InvalidArgumentError(
        "sparse_categorical_cross_entropy: class ids are not smoothed; make them one_hot() labels "
        "of categorical_cross_entropy");
  if (options.from_logits) return sparse_softmax_cross_entropy(prediction, label);
  Array ids = class_ids("sparse_categorical_cross_entropy", prediction, label);
  const std::int64_t classes = prediction.shape()[1];
  if (classes == Shape::kUnknown)
    refuse_pair("sparse_categorical_cross_entropy", prediction, label);
  const Array known = in_range(ids, {0, static_cast<float>(classes - 1)},
                               "sparse_categorical_cross_entropy: a label",
                               str("the prediction has ", classes, " classes"));
  ids = after(ids, known);
  return neg(reduce_sum(one_hot(ids, prediction.shape()[1]) * log_probabilities(prediction), {1}));
}

Array binary_focal_cross_entropy(const Array& prediction, const Array& label,
                                 const FocalOptions& options) {
  check_focal("binary_focal_cross_entropy", options);
  auto [given, y] = numbers_each("binary_focal_cross_entropy", prediction, label);
  y = smoothed_binary(y, options.label_smoothing);
  Array p = options.from_logits ? sigmoid(given) : given;
  Array right = y * p + (1.0f - y) * (1.0f - p);
  Array terms =
      options.from_logits ? sigmoid_cross_entropy_with_logits(y, given) : cross_entropy_terms(p, y);
  terms = terms * pow(1.0f - right, options.gamma);
  if (options.alpha) terms = terms * (y * *options.alpha + (1.0f - y) * (1.0f - *options.alpha));
  return last_axis_mean(terms);
}

Array categorical_focal_cross_entropy(const Array& prediction, const Array& label,
                                      const FocalOptions& options) {
  check_focal("categorical_focal_cross_entropy", options);
  auto [given, y] = one_row_each("categorical_focal_cross_entropy", prediction, label);
  y = smoothed_classes(y, options.label_smoothing);
  Array log_p = options.from_logits ? log_softmax(given) : log_probabilities(given);
  Array terms = neg(y * log_p) * pow(1.0f - exp(log_p), options.gamma);
  return reduce_sum(terms, {1}) * options.alpha.value_or(0.25f);
}

Array mean_squared_error(const Array& prediction, const Array& label) {
  return last_axis_mean(square(difference("mean_squared_error", prediction, label)));
}

Array mean_absolute_error(const Array& prediction, const Array& label) {
  return last_axis_mean(abs(difference("mean_absolute_error", prediction, label)));
}

Array mean_absolute_percentage_error(const Array& prediction, const Array& label) {
  auto [p, y] = numbers_each("mean_absolute_percentage_error", prediction, label);
  return last_axis_mean(abs((y - p) / at_least_margin(abs(y)))) * 100.0f;
}

Array mean_squared_logarithmic_error(const Array& prediction, const Array& label) {
  auto [p, y] = numbers_each("mean_squared_logarithmic_error", prediction, label);
  return last_axis_mean(square(log1p(at_least_margin(p)) - log1p(at_least_margin(y))));
}

// By the identity cosh(x) = e^x (1 + e^(-2x)) / 2, which does not overflow.
Array log_cosh(const Array& prediction, const Array& label) {
  Array error = difference("log_cosh", prediction, label);
  return last_axis_mean(error + softplus(error * -2.0f) - std::log(2.0f));
}

Array poisson(const Array& prediction, const Array& label) {
  auto [p, y] = numbers_each("poisson", prediction, label);
  return last_axis_mean(p - y * log(p + kProbabilityMargin));
}

Array hinge(const Array& prediction, const Array& label) {
  return last_axis_mean(relu(1.0f - signed_score("hinge", prediction, label)));
}

Array squared_hinge(const Array& prediction, const Array& label) {
  return last_axis_mean(square(relu(1.0f - signed_score("squared_hinge", prediction, label))));
}

Array categorical_hinge(const Array& prediction, const Array& label) {
  auto [p, y] = one_row_each("categorical_hinge", prediction, label);
  Array right = reduce_sum(y * p, {1}), wrong = reduce_max((1.0f - y) * p, {1});
  return relu(wrong - right + 1.0f);
}

Array kl_divergence(const Array& prediction, const Array& label) {
  auto [p, y] = numbers_each("kl_divergence", prediction, label);
  Array kept = clip_by_value(y, kProbabilityMargin, 1.0f);
  return last_axis_sum(kept * log(kept / clip_by_value(p, kProbabilityMargin, 1.0f)));
}

Array cosine_similarity(const Array& prediction, const Array& label) {
  auto [p, y] = numbers_each("cosine_similarity", prediction, label);
  return neg(last_axis_sum(unit_vectors(p) * unit_vectors(y)));
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
