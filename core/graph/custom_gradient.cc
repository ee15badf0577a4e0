#include "core/graph/custom_gradient.h"

#include "core/base/error.h"
#include "core/graph/infer.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

// A program's mistake, and so an error of its own instead of a failed check.
void check_fit(const std::vector<Array>& gradients, const std::vector<Array>& inputs) {
  if (gradients.size() != inputs.size())
    throw InvalidArgumentError(str("custom_gradient: backward returned ", gradients.size(),
                                   " gradients for ", inputs.size(), " inputs"));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!gradients[i].defined()) continue;
    if (gradients[i].dtype() != inputs[i].dtype() ||
        !infer::shapes_agree(gradients[i].shape(), inputs[i].shape()))
      throw InvalidArgumentError(str("custom_gradient: the gradient for input ", i, ", ",
                                     inputs[i].type().to_string(), ", is ",
                                     gradients[i].type().to_string()));
  }
}

}  // namespace

Array custom_gradient(const std::vector<Array>& inputs, const CustomForward& forward,
                      CustomBackward backward) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].defined())
      throw InvalidArgumentError(str("custom_gradient: input ", i, " is an Array without a value"));
  const Array made = forward(inputs);
  if (!made.defined())
    throw InvalidArgumentError("custom_gradient: forward returned an Array without a value");
  auto checked = [backward = std::move(backward)](const Array& dy, const std::vector<Array>& in,
                                                  const Array& y) {
    std::vector<Array> gradients = backward(dy, in, y);
    check_fit(gradients, in);
    return gradients;
  };
  return record_with_derivative(made, {inputs, std::move(checked)});
}

}  // namespace cairn
