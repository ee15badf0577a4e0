// Losses: one value per example, so that a caller can weight, mask and average them; mean(loss) is
// the batch's.
//
// Predictions come first, labels second. "Logits" are unbounded scores; a loss with cross_entropy
// in its name and an option `from_logits` takes probabilities unless told otherwise, as in the
// reference. Prefer logits: their kernels are stable.
//   Shapes  where an example has one number, [b] and [b, 1] are both taken, in any mixture -> [b].
//   Labels  any numeric dtype; class ids int32 or int64.
//   Errors  InvalidArgument, naming prediction and label, where shapes do not fit.
#pragma once
#include "core/graph/array.h"

namespace cairn::nn {

// Of logits, for labels in [0, 1] -> [b].
Array sigmoid_cross_entropy(const Array& logits, const Array& label);

struct BinaryCrossEntropyOptions {
  bool from_logits = false;
  float label_smoothing = 0;  // s: label · (1 - s) + s / 2
};
// The mean over the last axis, of probabilities and of logits alike: [b, d] -> [b]. A probability
// counts as at least 1e-7 and at most 1 - 1e-7, and 1e-7 is added to it under the logarithm, as in
// the reference: a certain error costs 15.42.
Array binary_cross_entropy(const Array& prediction, const Array& label,
                           BinaryCrossEntropyOptions options = {});

// Logits [b, c], label [b, c] whose rows sum to 1 -> [b].
Array softmax_cross_entropy(const Array& logits, const Array& label);
// Logits [b, c], class ids [b] or [b, 1] -> [b].
Array sparse_softmax_cross_entropy(const Array& logits, const Array& label);

struct CategoricalCrossEntropyOptions {
  bool from_logits = false;
};
// As the two above, of probabilities that are normalised first, or of logits.
Array categorical_cross_entropy(const Array& prediction, const Array& label,
                                CategoricalCrossEntropyOptions options = {});
Array sparse_categorical_cross_entropy(const Array& prediction, const Array& label,
                                       CategoricalCrossEntropyOptions options = {});

// Means over the last axis: [b, d] -> [b].
Array mean_squared_error(const Array& prediction, const Array& label);
Array mean_absolute_error(const Array& prediction, const Array& label);
// error²/2 up to `delta` > 0, beyond it delta · |error| - delta²/2.
// Source  Huber, Annals of Mathematical Statistics 35 (1964).
Array huber(const Array& prediction, const Array& label, float delta = 1);

// Added to a loss: the sum of the absolute weights, or of their squares, times `strength`. A
// scalar.
Array l1_regularization(const Array& weights, float strength);
Array l2_regularization(const Array& weights, float strength);

}  // namespace cairn::nn
