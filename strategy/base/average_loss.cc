#include "strategy/base/average_loss.h"

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "strategy/base/replica_context.h"

namespace cairn {
namespace {

void require_replica_context(const char* what) {
  if (in_cross_replica_context())
    throw FailedPreconditionError(str("You are calling `", what,
                                      "` in cross replica context, while it was expected to be "
                                      "called in replica context."));
}

Array replicas() { return Array(static_cast<float>(get_replica_context().num_replicas_in_sync())); }

}  // namespace

// No batch is divided by at least 1, so that a loss of no examples is 0 and no NaN.
Array compute_average_loss(const Array& per_example_loss, const AverageLossOptions& options) {
  if (!per_example_loss.defined() || per_example_loss.rank() == 0)
    throw InvalidArgumentError(
        "compute_average_loss: a loss for each example is wanted, of rank 1 at least");
  Array loss = per_example_loss;
  if (options.sample_weight) loss = loss * *options.sample_weight;
  if (options.global_batch_size) {
    if (*options.global_batch_size < 0)
      throw InvalidArgumentError(str("compute_average_loss: a global_batch_size of ",
                                     *options.global_batch_size, " is below 0"));
    // The reference divides so that a global batch of 0 gives 0.
    if (*options.global_batch_size == 0) return sum(loss) * Array(0.0f);
    return sum(loss) / Array(static_cast<float>(*options.global_batch_size));
  }
  require_replica_context("compute_average_loss");
  const Array examples = cast(dim_size(per_example_loss, 0), DType::kFloat32) * replicas();
  return sum(loss) / maximum(examples, Array(1.0f));
}

Array scale_regularization_loss(const Array& regularization_loss) {
  require_replica_context("scale_regularization_loss");
  return sum(regularization_loss) / replicas();
}

}  // namespace cairn
