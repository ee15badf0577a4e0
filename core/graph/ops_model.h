// Operations that models are made of: activations, convolution, pooling, normalisation. Recorded as
// those of core/graph/ops.h, which includes this file; the same errors.
//
// Images are [batch, height, width, channels], float32.
#pragma once
#include <array>
#include <cstdint>

#include "core/graph/array.h"

namespace cairn {

// ---- activations; float32. Each is a few elementwise operations, computed in one pass ----
Array elu(const Array& x, float alpha = 1.0f);         // x, or alpha (e^x - 1) below 0
Array selu(const Array& x);                            // Klambauer et al., arXiv:1706.02515
Array leaky_relu(const Array& x, float alpha = 0.2f);  // x, or alpha x below 0
Array relu6(const Array& x);                           // min(max(x, 0), 6)
Array swish(const Array& x);                           // x sigmoid(x)
// x times the normal distribution's share below x (arXiv:1606.08415)
Array gelu(const Array& x);
Array gelu_approximate(const Array& x);  // the same paper's approximation by tanh

// ---- windows over images ----
enum class Padding : std::uint8_t {
  kValid,  // windows lie inside: (in - window) / stride + 1 positions, rounded down
  // zeros around the image: in / stride positions, rounded up; the odd zero goes below and to the
  // right
  kSame,
};

struct Conv2dOptions {
  std::array<std::int64_t, 2> strides = {1, 1};  // down, across
  Padding padding = Padding::kValid;
  std::array<std::int64_t, 2> dilations = {1, 1};
};
// x [b, h, w, c] by filter [fh, fw, c, n] -> [b, h', w', n]: the correlation, as the field has it
// (the filter is not turned round).
//   Errors  InvalidArgument: channels that differ, a filter that does not fit into the image,
//           strides or dilations below 1.
Array conv2d(const Array& x, const Array& filter, const Conv2dOptions& options = {});
Array conv2d_grad_input(const Array& dy, const Array& filter, const Array& like,
                        const Conv2dOptions& options);
Array conv2d_grad_filter(const Array& dy, const Array& x, const Array& like,
                         const Conv2dOptions& options);

struct Pool2dOptions {
  std::array<std::int64_t, 2> window = {2, 2};
  std::array<std::int64_t, 2> strides = {2, 2};
  Padding padding = Padding::kValid;
};
// The largest, or the mean, of each window, channel by channel. What lies outside of the image does
// not count. Of equal elements the first one gets the gradient of max_pool2d.
Array max_pool2d(const Array& x, const Pool2dOptions& options = {});
Array avg_pool2d(const Array& x, const Pool2dOptions& options = {});
Array max_pool2d_grad(const Array& dy, const Array& x, const Pool2dOptions& options);
Array avg_pool2d_grad(const Array& dy, const Array& like, const Pool2dOptions& options);

// ---- normalisation ---- (x - mean) / sqrt(variance + epsilon) · gamma + beta, with mean and
// variance over the last axis: x [..., n], gamma and beta [n].
//   Source  Ba, Kiros, Hinton, arXiv:1607.06450.
Array layer_norm(const Array& x, const Array& gamma, const Array& beta, float epsilon = 1e-3f);

// The same with mean and variance of each channel over the batch, as in training: x [..., c], gamma
// and beta [c].
//   Source  Ioffe, Szegedy, arXiv:1502.03167.
struct BatchNorm {
  Array y;
  // [c], of this batch (the variance divides by the count); for running averages: no gradient
  // passes
  Array mean, variance;
};
BatchNorm batch_norm(const Array& x, const Array& gamma, const Array& beta, float epsilon = 1e-3f);

}  // namespace cairn
