// A program's own operation with a gradient of its own, made of operations that there are:
//
//   // x as it is; its gradient is turned round and scaled
//   Array reversed(const Array& x, float scale) {
//     return custom_gradient(
//         {x}, [](const std::vector<Array>& in) { return in[0]; },
//         [scale](const Array& dy, const std::vector<Array>&, const Array&) {
//           return std::vector<Array>{dy * -scale};
//         });
//   }
//
// Both functions are called while a function is recorded: forward at once, backward by grad() and
// its kin. What they record is part of the graph like anything else, so that it runs under every
// strategy, on every device and in other processes, which need not know of the functions.
#pragma once
#include <functional>
#include <vector>

#include "core/graph/array.h"

namespace cairn {

using CustomForward = std::function<Array(const std::vector<Array>& inputs)>;
// One gradient per input, of its dtype and shape; an undefined Array where none passes. `dy` has
// y's shape. A second derivative is that of what this records.
using CustomBackward = std::function<std::vector<Array>(
    const Array& dy, const std::vector<Array>& inputs, const Array& y)>;

// Returns the value that `forward` makes of the inputs. Gradients of that value go to the inputs,
// as `backward` says, and nowhere else: a variable that `forward` reads itself gets none.
// `backward` is kept as long as the value, and should hold no Arrays but its arguments.
//   Errors  InvalidArgument: an input, or what forward returns, has no value; from grad(): backward
//           returns too few or too many gradients, or one that does not fit its input.
Array custom_gradient(const std::vector<Array>& inputs, const CustomForward& forward,
                      CustomBackward backward);

}  // namespace cairn
