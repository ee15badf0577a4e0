// Losses: one value per example, so that a caller can weight, mask and average them; mean(loss) is
// the batch's.
//
// Predictions come first, labels second. "Logits" are unbounded scores; a loss with cross_entropy
// in its name and an option `from_logits` takes probabilities by default, as in the reference.
// Prefer logits: their kernels are stable.
//   Shapes  where an example has one number, [b] and [b, 1] are both taken, in any mixture -> [b].
//   Labels  any numeric dtype; class ids int32, int64 or uint8. An id that is no class of the
//           prediction ends the step with InvalidArgument. Other ranges are not looked at here;
//           nn::Loss (nn/losses/loss.h) does.
//   Errors  InvalidArgument, naming prediction and label, where shapes do not fit.
#pragma once
#include <optional>

#include "core/graph/array.h"

namespace cairn::nn {

// The binary cross-entropy of logits, for labels in [0, 1] -> [b].
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
  // s: label · (1 - s) + s / c. InvalidArgument for class ids, which are not smoothed.
  float label_smoothing = 0;
};
// As the two above, of probabilities that are normalised first, or of logits.
Array categorical_cross_entropy(const Array& prediction, const Array& label,
                                CategoricalCrossEntropyOptions options = {});
Array sparse_categorical_cross_entropy(const Array& prediction, const Array& label,
                                       CategoricalCrossEntropyOptions options = {});

// Cross entropies in which an example that is classified well counts less: each term is multiplied
// by (1 - p)^gamma, p the probability of what is right, and so is not trained on for long.
//   Source  Lin, Goyal, Girshick, He, Dollár, "Focal loss for dense object detection", ICCV 2017.
struct FocalOptions {
  bool from_logits = false;
  float label_smoothing = 0;  // as in the cross entropy of the same kind
  float gamma = 2;            // at least 0
  // The weight of the positive class; the negative one has 1 - alpha. Of classes it is the weight
  // of all of them. None: 1 each, but 0.25 for classes, as in the reference.
  std::optional<float> alpha = {};
};
// The mean over the last axis: [b, d] -> [b].
Array binary_focal_cross_entropy(const Array& prediction, const Array& label,
                                 const FocalOptions& options = {});
// [b, c], label [b, c] whose rows sum to 1 -> [b].
Array categorical_focal_cross_entropy(const Array& prediction, const Array& label,
                                      const FocalOptions& options = {});

// Means over the last axis: [b, d] -> [b].
Array mean_squared_error(const Array& prediction, const Array& label);
Array mean_absolute_error(const Array& prediction, const Array& label);
// 100 · |error| / |label|, where a label counts as at least 1e-7.
Array mean_absolute_percentage_error(const Array& prediction, const Array& label);
// (log(1 + prediction) - log(1 + label))², where both count as at least 1e-7.
Array mean_squared_logarithmic_error(const Array& prediction, const Array& label);
// log(cosh(error)): nearly error²/2 near zero and |error| - log 2 far from it.
Array log_cosh(const Array& prediction, const Array& label);
// prediction - label · log(prediction + 1e-7), for counts: the negative log likelihood of a Poisson
// distribution whose mean is the prediction, but for a constant.
Array poisson(const Array& prediction, const Array& label);
// error²/2 up to `delta` > 0, beyond it delta · |error| - delta²/2.
// Source  Huber, Annals of Mathematical Statistics 35 (1964).
Array huber(const Array& prediction, const Array& label, float delta = 1);

// Margins, for labels -1 and 1; a label of 0 counts as -1. The means over the last axis of
// max(0, 1 - label · prediction) and of its square: [b, d] -> [b].
Array hinge(const Array& prediction, const Array& label);
Array squared_hinge(const Array& prediction, const Array& label);
// max(0, 1 + the best score of a wrong class, at least 0, - the score of the right one): scores
// [b, c], label [b, c], one-hot -> [b].
Array categorical_hinge(const Array& prediction, const Array& label);

// Sums over the last axis: [b, d] -> [b].
//
// The divergence of the prediction from the label, both distributions: label · log(label /
// prediction), where each probability counts as at least 1e-7.
Array kl_divergence(const Array& prediction, const Array& label);
// The cosine of the angle between the two vectors, times -1 so that training brings them together:
// -1 for equal directions. A vector of zeros gives 0.
Array cosine_similarity(const Array& prediction, const Array& label);

// Added to a loss: the sum of the absolute weights, or of their squares, times `strength`. A
// scalar.
Array l1_regularization(const Array& weights, float strength);
Array l2_regularization(const Array& weights, float strength);

}  // namespace cairn::nn
