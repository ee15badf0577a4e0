// A replica's part of the loss of a global batch, so that the sum over replicas, which an optimizer
// makes of their gradients, is the whole.
//
//   Array loss = compute_average_loss(nn::mean_squared_error(prediction, label),
//                                     {.global_batch_size = 64});
//   loss = loss + scale_regularization_loss(nn::l2_regularization(kernel, 1e-4f));
//
//   Source  tf.nn.compute_average_loss, tf.nn.scale_regularization_loss.
#pragma once
#include <cstdint>
#include <optional>

#include "core/graph/array.h"

namespace cairn {

struct AverageLossOptions {
  std::optional<Array> sample_weight = {};  // [batch], or what broadcasts against the loss
  // Unset: this replica's examples times the number of replicas. That is wrong for a last batch of
  // which the replicas get different numbers of examples; give the number then. 0 makes the loss 0.
  std::optional<std::int64_t> global_batch_size = {};
};

// float32 [batch, ...] -> []: the sum over this replica's examples, divided by the size of the
// global batch; 0 if there are none at all.
//   Errors  InvalidArgument: a scalar, or a global_batch_size below 0. FailedPrecondition: no
//           global_batch_size, in cross-replica context, where there is no batch.
Array compute_average_loss(const Array& per_example_loss, const AverageLossOptions& options = {});

// The sum of its elements, divided by the number of replicas: each of them adds the same
// regularization to its loss. -> []
//   Errors  FailedPrecondition: cross-replica context.
Array scale_regularization_loss(const Array& regularization_loss);

}  // namespace cairn
