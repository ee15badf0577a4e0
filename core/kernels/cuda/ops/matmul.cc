// Matrix products: the driver's library computes them.
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/trees/products.h"

namespace cairn::cuda {
namespace {

KernelRun prepare(Queue& queue, ProductShape shape, const KernelTypes& types) {
  shape.arithmetic = types.products;
  shape.deterministic = types.deterministic;
  shape.narrow_result = types.outputs[0].dtype == DType::kBfloat16;
  return [product = plan_multiply(queue, shape, {types.inputs[0].dtype, types.inputs[1].dtype})](
             const KernelCall& call) {
    product({call.inputs[0], call.inputs[1], nullptr, call.outputs[0]});
  };
}

KernelRun prepare_matmul(Queue& queue, const KernelTypes& types) {
  const Shape &a = types.inputs[0].shape, &c = types.outputs[0].shape;
  ProductShape shape;
  shape.gemm = {c[0], c[1], 0, types.attributes.get<bool>("transpose_a"),
                types.attributes.get<bool>("transpose_b")};
  shape.gemm.k = a[shape.gemm.transpose_a ? 0 : 1];
  return prepare(queue, shape, types);
}

KernelRun prepare_batch_matmul(Queue& queue, const KernelTypes& types) {
  const Shape &a = types.inputs[0].shape, &c = types.outputs[0].shape;
  ProductShape shape;
  shape.gemm = {c[1], c[2], 0, types.attributes.get<bool>("transpose_a"),
                types.attributes.get<bool>("transpose_b")};
  shape.gemm.k = a[shape.gemm.transpose_a ? 1 : 2];
  shape.batch = c[0];
  return prepare(queue, shape, types);
}

constexpr Kernel kMatmulKernels[] = {{"matmul", prepare_matmul},
                                     {"batch_matmul", prepare_batch_matmul}};

}  // namespace

std::span<const Kernel> matmul_kernels() { return kMatmulKernels; }

}  // namespace cairn::cuda
