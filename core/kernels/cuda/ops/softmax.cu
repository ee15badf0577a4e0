// Softmax and the cross entropies over it: a group of threads per row. As on the CPU each row is
// shifted by its largest element first, and the cross entropies are computed from the logits.
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/runtime/launch.h"

namespace cairn::cuda {
namespace {

struct Rows {
  std::int64_t rows, n;
};

Rows rows_of(const Shape& shape) {
  const std::int64_t n = shape[shape.rank() - 1];
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
  return {rows, n};
}

struct Larger {
  CAIRN_DEVICE float operator()(float a, float b) const { return b > a ? b : a; }
};
struct Plus {
  CAIRN_DEVICE float operator()(float a, float b) const { return a + b; }
};

CAIRN_DEVICE float row_max(const Group& group, const float* x, std::int64_t n) {
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = group.rank(); i < n; i += group.size())
    largest = x[i] > largest ? x[i] : largest;
  return group.combine(largest, Larger());
}

CAIRN_DEVICE float row_sum_exp(const Group& group, const float* x, std::int64_t n, float shift) {
  float sum = 0;
  for (std::int64_t i = group.rank(); i < n; i += group.size()) sum += std::exp(x[i] - shift);
  return group.combine(sum, Plus());
}

KernelRun prepare_softmax(Queue& queue, const KernelTypes& types) {
  return [&queue, s = rows_of(types.inputs[0].shape)](const KernelCall& call) {
    const float* const all = input_of<float>(call, 0);
    float* const made = output_of<float>(call);
    const std::int64_t n = s.n;
    for_each_group(queue, s.rows, n, [=] CAIRN_KERNEL_BODY(const Group& group, std::int64_t r) {
      const float* const x = all + r * n;
      const float shift = row_max(group, x, n);
      const float scale = 1.0f / row_sum_exp(group, x, n, shift);
      for (std::int64_t i = group.rank(); i < n; i += group.size())
        made[r * n + i] = std::exp(x[i] - shift) * scale;
    });
  };
}

KernelRun prepare_log_softmax(Queue& queue, const KernelTypes& types) {
  return [&queue, s = rows_of(types.inputs[0].shape)](const KernelCall& call) {
    const float* const all = input_of<float>(call, 0);
    float* const made = output_of<float>(call);
    const std::int64_t n = s.n;
    for_each_group(queue, s.rows, n, [=] CAIRN_KERNEL_BODY(const Group& group, std::int64_t r) {
      const float* const x = all + r * n;
      const float shift = row_max(group, x, n);
      const float norm = std::log(row_sum_exp(group, x, n, shift));
      for (std::int64_t i = group.rank(); i < n; i += group.size())
        made[r * n + i] = x[i] - shift - norm;
    });
  };
}

KernelRun prepare_cross_entropy(Queue& queue, const KernelTypes& types) {
  return [&queue, s = rows_of(types.inputs[1].shape)](const KernelCall& call) {
    const float *const labels = input_of<float>(call, 0), *const all = input_of<float>(call, 1);
    float* const made = output_of<float>(call);
    const std::int64_t n = s.n;
    for_each_group(queue, s.rows, n, [=] CAIRN_KERNEL_BODY(const Group& group, std::int64_t r) {
      const float* const x = all + r * n;
      const float shift = row_max(group, x, n);
      const float norm = std::log(row_sum_exp(group, x, n, shift));
      float sum = 0;
      for (std::int64_t i = group.rank(); i < n; i += group.size())
        sum += labels[r * n + i] * (norm + shift - x[i]);
      sum = group.combine(sum, Plus());
      if (group.rank() == 0) made[r] = sum;
    });
  };
}

// A label that is no class is the data's error; the message names the example.
template <typename Id>
KernelRun sparse_run(Queue& queue, const KernelTypes& types) {
  const Rows s = rows_of(types.inputs[1].shape);
  auto fault = queue.add_fault(
      [n = s.n, inputs = std::vector<TensorType>(types.inputs.begin(), types.inputs.end())](
          std::int64_t example, std::int64_t label) {
        return fault_text(
            "sparse_softmax_cross_entropy_with_logits", inputs,
            str("label ", label, " of example ", example, " is outside [0, ", n, "), the classes"));
      });
  return [&queue, s, fault](const KernelCall& call) {
    const Id* const labels = input_of<Id>(call, 0);
    const float* const all = input_of<float>(call, 1);
    float* const made = output_of<float>(call);
    const std::int64_t n = s.n;
    for_each_group(queue, s.rows, n,
                   [=, site = *fault] CAIRN_KERNEL_BODY(const Group& group, std::int64_t r) {
                     const float* const x = all + r * n;
                     const std::int64_t label = labels[r];
                     const float shift = row_max(group, x, n);
                     const float norm = std::log(row_sum_exp(group, x, n, shift));
                     if (group.rank() != 0) return;
                     const bool known = label >= 0 && label < n;
                     made[r] = known ? norm + shift - x[label] : 0;
                     if (!known) site.report(r, label);
                   });
  };
}
KernelRun prepare_sparse_cross_entropy(Queue& queue, const KernelTypes& types) {
  return types.inputs[0].dtype == DType::kInt32 ? sparse_run<std::int32_t>(queue, types)
                                                : sparse_run<std::int64_t>(queue, types);
}

constexpr Kernel kSoftmaxKernels[] = {
    {"softmax", prepare_softmax},
    {"log_softmax", prepare_log_softmax},
    {"softmax_cross_entropy_with_logits", prepare_cross_entropy},
    {"sparse_softmax_cross_entropy_with_logits", prepare_sparse_cross_entropy},
};

}  // namespace

std::span<const Kernel> softmax_kernels() { return kSoftmaxKernels; }

}  // namespace cairn::cuda
