// Operations that change a value's shape or tell something about it.
#include "core/base/error.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/runtime/half.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"

namespace cairn::cuda {
namespace {

template <typename T>
KernelRun strided(Queue& queue, const Strides& strides, std::int64_t count) {
  return [&queue, strides, count](const KernelCall& call) {
    const T* const from = input_of<T>(call, 0);
    T* const to = output_of<T>(call);
    for_each(queue, count,
             [=] CAIRN_KERNEL_BODY(std::int64_t i) { to[i] = from[strides.source(i)]; });
  };
}

KernelRun run_copy(Queue& queue, const StridedCopy& copy, const TensorType& to) {
  const Strides strides = Strides::of(copy);
  const std::int64_t count = to.shape.elements();
  switch (dtype_bytes(to.dtype)) {
    case 1: return strided<std::uint8_t>(queue, strides, count);
    case 2: return strided<std::uint16_t>(queue, strides, count);
    case 4: return strided<std::uint32_t>(queue, strides, count);
    default: return strided<std::uint64_t>(queue, strides, count);
  }
}

KernelRun prepare_broadcast_like(Queue& queue, const KernelTypes& types) {
  return run_copy(queue, StridedCopy::broadcast(types.inputs[0].shape, types.outputs[0].shape),
                  types.outputs[0]);
}

KernelRun prepare_transpose(Queue& queue, const KernelTypes& types) {
  const auto& permutation = types.attributes.get<std::vector<std::int64_t>>("permutation");
  return run_copy(queue, StridedCopy::transpose(types.inputs[0].shape, permutation),
                  types.outputs[0]);
}

KernelRun prepare_zeros_like(Queue& queue, const KernelTypes& types) {
  const std::size_t bytes = static_cast<std::size_t>(types.outputs[0].shape.elements()) *
                            dtype_bytes(types.outputs[0].dtype);
  return [&queue, bytes](const KernelCall& call) {
    queue.driver().fill_zero(queue.stream(), call.outputs[0], bytes);
  };
}

template <typename T>
KernelRun fill(Queue& queue, std::int64_t n, T value) {
  return [&queue, n, value](const KernelCall& call) {
    T* const to = output_of<T>(call);
    for_each(queue, n, [=] CAIRN_KERNEL_BODY(std::int64_t i) { to[i] = value; });
  };
}

KernelRun prepare_ones_like(Queue& queue, const KernelTypes& types) {
  const std::int64_t n = types.outputs[0].shape.elements();
  switch (types.outputs[0].dtype) {
    case DType::kFloat32: return fill<float>(queue, n, 1);
    case DType::kFloat64: return fill<double>(queue, n, 1);
    case DType::kInt32: return fill<std::int32_t>(queue, n, 1);
    case DType::kInt64: return fill<std::int64_t>(queue, n, 1);
    case DType::kBfloat16: return fill<std::uint16_t>(queue, n, to_bfloat16(1));
    case DType::kFloat16: return fill<std::uint16_t>(queue, n, to_float16(1));
    default: return fill<std::uint8_t>(queue, n, 1);
  }
}

KernelRun prepare_dim_size(Queue& queue, const KernelTypes& types) {
  const auto axis = static_cast<int>(types.attributes.get<std::int64_t>("axis"));
  return fill<std::int64_t>(queue, 1, types.inputs[0].shape[axis]);
}
KernelRun prepare_element_count(Queue& queue, const KernelTypes& types) {
  return fill<std::int64_t>(queue, 1, types.inputs[0].shape.elements());
}

constexpr Kernel kShapeKernels[] = {
    {"broadcast_like", prepare_broadcast_like},
    {"transpose", prepare_transpose},
    {"zeros_like", prepare_zeros_like},
    {"ones_like", prepare_ones_like},
    {"dim_size", prepare_dim_size},
    {"element_count", prepare_element_count},
};

}  // namespace

std::span<const Kernel> shape_kernels() { return kShapeKernels; }

}  // namespace cairn::cuda
