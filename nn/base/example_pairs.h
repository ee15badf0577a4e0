// Shared by losses and metrics: a prediction and a label that belong together, checked when they
// are recorded. A label [b] must never broadcast against a prediction [b, 1] to [b, b].
//   Errors  InvalidArgument, beginning with `what`: an array is missing, or the shapes do not fit.
#pragma once
#include <string>
#include <utility>

#include "core/graph/array.h"

namespace cairn::nn {

// Whether two dimensions may be equal. Unknown ones are compared when the step runs.
bool fits(std::int64_t a, std::int64_t b);

[[noreturn]] void refuse_pair(const std::string& what, const Array& prediction, const Array& label);
void check_pair_defined(const std::string& what, const Array& prediction, const Array& label);

// Prediction and label as float32. Both [b].
std::pair<Array, Array> one_number_each(const std::string& what, const Array& prediction,
                                        const Array& label);
// Both [b, c].
std::pair<Array, Array> one_row_each(const std::string& what, const Array& prediction,
                                     const Array& label);
// Both [b, d] with d != 1, or both [b].
std::pair<Array, Array> numbers_each(const std::string& what, const Array& prediction,
                                     const Array& label);

// The label, class ids int32, int64 or uint8, as int32 or int64 [b]; for a prediction [b, c].
Array class_ids(const std::string& what, const Array& prediction, const Array& label);

// [b, d] -> [b]; [b] stays as it is.
Array last_axis_mean(const Array& x);

}  // namespace cairn::nn
