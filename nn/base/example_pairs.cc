#include "nn/base/example_pairs.h"

#include "core/graph/ops.h"
#include "nn/base/layer.h"

namespace cairn::nn {

bool fits(std::int64_t a, std::int64_t b) {
  return a == b || a == Shape::kUnknown || b == Shape::kUnknown;
}

void refuse_pair(const std::string& what, const Array& prediction, const Array& label) {
  throw InvalidArgumentError(str(what, ": the prediction is ", prediction.type().to_string(),
                                 ", the label ", label.type().to_string()));
}

void check_pair_defined(const std::string& what, const Array& prediction, const Array& label) {
  if (!prediction.defined()) throw InvalidArgumentError(str(what, ": the prediction is missing"));
  if (!label.defined())
    throw InvalidArgumentError(
        str(what, ": the label is missing; does the dataset's spec name one?"));
}

std::pair<Array, Array> one_number_each(const std::string& what, const Array& prediction,
                                        const Array& label) {
  check_pair_defined(what, prediction, label);
  Array p = per_example(to_float(prediction), what + ": the prediction");
  Array y = per_example(to_float(label), what + ": the label");
  if (!fits(p.shape()[0], y.shape()[0])) refuse_pair(what, prediction, label);
  return {p, y};
}

std::pair<Array, Array> one_row_each(const std::string& what, const Array& prediction,
                                     const Array& label) {
  check_pair_defined(what, prediction, label);
  const bool good = prediction.rank() == 2 && label.rank() == 2 &&
                    fits(prediction.shape()[0], label.shape()[0]) &&
                    fits(prediction.shape()[1], label.shape()[1]);
  if (!good) refuse_pair(what, prediction, label);
  return {to_float(prediction), to_float(label)};
}

std::pair<Array, Array> numbers_each(const std::string& what, const Array& prediction,
                                     const Array& label) {
  check_pair_defined(what, prediction, label);
  const bool rows = prediction.rank() == 2 && label.rank() == 2 && prediction.shape()[1] != 1;
  return rows ? one_row_each(what, prediction, label) : one_number_each(what, prediction, label);
}

Array class_ids(const std::string& what, const Array& prediction, const Array& label) {
  check_pair_defined(what, prediction, label);
  const bool whole = label.dtype() == DType::kInt32 || label.dtype() == DType::kInt64;
  const bool bytes = label.dtype() == DType::kUint8;  // as image sets have them
  if (prediction.rank() != 2 || !(whole || bytes)) refuse_pair(what, prediction, label);
  Array ids = per_example(bytes ? cast(label, DType::kInt32) : label, what + ": the label");
  if (!fits(prediction.shape()[0], ids.shape()[0])) refuse_pair(what, prediction, label);
  return ids;
}

Array last_axis_mean(const Array& x) { return x.rank() == 2 ? reduce_mean(x, {1}) : x; }

}  // namespace cairn::nn
