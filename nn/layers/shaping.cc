#include "nn/layers/shaping.h"

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "nn/base/training_scope.h"

namespace cairn::nn {

Array Flatten::operator()(const Array& x) const {
  bool known = x.defined() && x.rank() >= 1;
  for (int axis = 1; known && axis < x.rank(); ++axis) known = x.shape()[axis] != Shape::kUnknown;
  if (!known)
    throw InvalidArgumentError(str("layer \"", name_.get(),
                                   "\" wants [batch, ...] with all but the batch known, got ",
                                   x.defined() ? x.type().to_string() : "nothing"));
  return x.rank() == 2 ? x : reshape(x, {x.shape()[0], x.shape().row_elements()});
}

Dropout::Dropout(float rate, std::uint64_t seed, std::string name)
    : rate_(rate), seed_(seed), name_(std::move(name), "dropout") {
  if (!(rate >= 0 && rate < 1))
    throw InvalidArgumentError(
        str("layer \"", name_.get(), "\": the rate must be in [0, 1), got ", rate));
}

Array Dropout::operator()(const Array& x) const {
  return is_training() ? dropout(x, rate_, {.seed = seed_}) : x;
}

}  // namespace cairn::nn
