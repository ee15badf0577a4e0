// Softmax and the cross entropies over it, row by row. Each row is shifted by its largest element
// first: the result is the same, and no exp() overflows. The cross entropies are computed from the
// logits, as log of the sum of exp less the logit, and never as the log of a softmax that may have
// rounded to 0.
#include <algorithm>
#include <cmath>

#include "core/base/clones.h"
#include "core/base/error.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/cpu/math.h"

namespace cairn {
namespace {

struct Rows {
  std::int64_t rows, n;
};

Rows rows_of(const Shape& shape) {
  std::int64_t n = shape[shape.rank() - 1];
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
  return {rows, n};
}

CAIRN_INLINE float row_max(const float* x, std::int64_t n) {
  float largest = -math::infinity();
  for (std::int64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

// Eight sums side by side, for vector code with a fixed order of addition.
CAIRN_INLINE float row_sum_exp(const float* x, std::int64_t n, float shift) {
  float lanes[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int l = 0; l < 8; ++l) lanes[l] += math::exp(x[i + l] - shift);
  float sum = 0;
  for (; i < n; ++i) sum += math::exp(x[i] - shift);
  for (float lane : lanes) sum += lane;
  return sum;
}

CAIRN_CLONES void softmax(Rows s, const float* x, float* y) {
  for (std::int64_t r = 0; r < s.rows; ++r, x += s.n, y += s.n) {
    float shift = row_max(x, s.n);
    float scale = 1.0f / row_sum_exp(x, s.n, shift);
    for (std::int64_t i = 0; i < s.n; ++i) y[i] = math::exp(x[i] - shift) * scale;
  }
}

CAIRN_CLONES void log_softmax(Rows s, const float* x, float* y) {
  for (std::int64_t r = 0; r < s.rows; ++r, x += s.n, y += s.n) {
    float shift = row_max(x, s.n);
    float norm = std::log(row_sum_exp(x, s.n, shift));
    for (std::int64_t i = 0; i < s.n; ++i) y[i] = x[i] - shift - norm;
  }
}

CAIRN_CLONES void cross_entropy(Rows s, const float* labels, const float* x, float* y) {
  for (std::int64_t r = 0; r < s.rows; ++r, x += s.n, labels += s.n) {
    float shift = row_max(x, s.n);
    float norm = std::log(row_sum_exp(x, s.n, shift));
    float sum = 0;
    for (std::int64_t i = 0; i < s.n; ++i) sum += labels[i] * (norm + shift - x[i]);
    y[r] = sum;
  }
}

// Labels come from data, so a label that is no class is the user's error, and the message names the
// example. Without the check the kernel would read past the row.
template <typename Id>
void sparse_cross_entropy(Rows s, const Id* labels, const float* x, float* y) {
  for (std::int64_t r = 0; r < s.rows; ++r, x += s.n) {
    if (labels[r] < 0 || labels[r] >= s.n)
      throw InvalidArgumentError(
          str("label ", labels[r], " of example ", r, " is outside [0, ", s.n, "), the classes"));
    float shift = row_max(x, s.n);
    y[r] = std::log(row_sum_exp(x, s.n, shift)) + shift - x[labels[r]];
  }
}

KernelRun prepare_softmax(const KernelTypes& types) {
  return [s = rows_of(types.inputs[0].shape)](const KernelCall& call) {
    softmax(s, input_of<float>(call, 0), output_of<float>(call));
  };
}
KernelRun prepare_log_softmax(const KernelTypes& types) {
  return [s = rows_of(types.inputs[0].shape)](const KernelCall& call) {
    log_softmax(s, input_of<float>(call, 0), output_of<float>(call));
  };
}
KernelRun prepare_cross_entropy(const KernelTypes& types) {
  return [s = rows_of(types.inputs[1].shape)](const KernelCall& call) {
    cross_entropy(s, input_of<float>(call, 0), input_of<float>(call, 1), output_of<float>(call));
  };
}
template <typename Id>
KernelRun sparse_run(Rows s) {
  return [s](const KernelCall& call) {
    sparse_cross_entropy(s, input_of<Id>(call, 0), input_of<float>(call, 1),
                         output_of<float>(call));
  };
}
KernelRun prepare_sparse_cross_entropy(const KernelTypes& types) {
  Rows s = rows_of(types.inputs[1].shape);
  return types.inputs[0].dtype == DType::kInt32 ? sparse_run<std::int32_t>(s)
                                                : sparse_run<std::int64_t>(s);
}

constexpr CpuKernel kSoftmaxKernels[] = {
    {"softmax", prepare_softmax},
    {"log_softmax", prepare_log_softmax},
    {"softmax_cross_entropy_with_logits", prepare_cross_entropy},
    {"sparse_softmax_cross_entropy_with_logits", prepare_sparse_cross_entropy},
};

}  // namespace

std::span<const CpuKernel> softmax_kernels() { return kSoftmaxKernels; }

}  // namespace cairn
