// Operations that change a value's shape or tell something about it. (reshape, reshape_like,
// stop_gradient and check_numerics compute nothing: the executor passes their input on.) Broadcasts
// and transpositions are one copy through strides (strided.h).
#include <algorithm>
#include <cstring>

#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/cpu/strided.h"

namespace cairn {
namespace {

KernelRun run_copy(StridedCopy copy, const TensorType& to) {
  return [copy = std::move(copy), count = to.shape.elements(),
          width = dtype_bytes(to.dtype)](const KernelCall& call) {
    copy.run(call.inputs[0], call.outputs[0], 0, count, width);
  };
}

KernelRun prepare_broadcast_like(const KernelTypes& types) {
  return run_copy(StridedCopy::broadcast(types.inputs[0].shape, types.outputs[0].shape),
                  types.outputs[0]);
}

KernelRun prepare_transpose(const KernelTypes& types) {
  const auto& permutation = types.attributes.get<std::vector<std::int64_t>>("permutation");
  return run_copy(StridedCopy::transpose(types.inputs[0].shape, permutation), types.outputs[0]);
}

KernelRun prepare_zeros_like(const KernelTypes& types) {
  std::size_t bytes = static_cast<std::size_t>(types.outputs[0].shape.elements()) *
                      dtype_bytes(types.outputs[0].dtype);
  return [bytes](const KernelCall& call) { std::memset(call.outputs[0], 0, bytes); };
}

template <typename T>
KernelRun fill(std::int64_t n, T value) {
  return [n, value](const KernelCall& call) { std::fill_n(output_of<T>(call), n, value); };
}

KernelRun prepare_ones_like(const KernelTypes& types) {
  std::int64_t n = types.outputs[0].shape.elements();
  switch (types.outputs[0].dtype) {
    case DType::kFloat32: return fill<float>(n, 1);
    case DType::kFloat64: return fill<double>(n, 1);
    case DType::kInt32: return fill<std::int32_t>(n, 1);
    case DType::kInt64: return fill<std::int64_t>(n, 1);
    case DType::kBfloat16: return fill<std::uint16_t>(n, to_bfloat16(1));
    case DType::kFloat16: return fill<std::uint16_t>(n, to_float16(1));
    default: return fill<std::uint8_t>(n, 1);
  }
}

// Sizes are known when the kernel is prepared, since a workspace is made for concrete shapes; a run
// writes a constant.
KernelRun prepare_dim_size(const KernelTypes& types) {
  return fill<std::int64_t>(
      1, types.inputs[0].shape[static_cast<int>(types.attributes.get<std::int64_t>("axis"))]);
}
KernelRun prepare_element_count(const KernelTypes& types) {
  return fill<std::int64_t>(1, types.inputs[0].shape.elements());
}

constexpr CpuKernel kShapeKernels[] = {
    {"broadcast_like", prepare_broadcast_like},
    {"transpose", prepare_transpose},
    {"zeros_like", prepare_zeros_like},
    {"ones_like", prepare_ones_like},
    {"dim_size", prepare_dim_size},
    {"element_count", prepare_element_count},
};

}  // namespace

std::span<const CpuKernel> shape_kernels() { return kShapeKernels; }

}  // namespace cairn
