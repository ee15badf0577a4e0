// Matrix products: the driver's library computes them.
#include "core/kernels/cuda/kernel_table.h"
#include "core/kernels/cuda/products.h"

namespace cairn::cuda {
namespace {

KernelRun prepare(Queue& queue, const ProductShape& shape) {
  return [product = plan_multiply(queue, shape)](const KernelCall& call) {
    product(input_of<float>(call, 0), input_of<float>(call, 1), nullptr, output_of<float>(call));
  };
}

KernelRun prepare_matmul(Queue& queue, const KernelTypes& types) {
  const Shape &a = types.inputs[0].shape, &c = types.outputs[0].shape;
  ProductShape shape;
  shape.gemm = {c[0], c[1], 0, types.attributes.get<bool>("transpose_a"),
                types.attributes.get<bool>("transpose_b")};
  shape.gemm.k = a[shape.gemm.transpose_a ? 0 : 1];
  shape.arithmetic = types.products;
  return prepare(queue, shape);
}

KernelRun prepare_batch_matmul(Queue& queue, const KernelTypes& types) {
  const Shape &a = types.inputs[0].shape, &c = types.outputs[0].shape;
  ProductShape shape;
  shape.gemm = {c[1], c[2], 0, types.attributes.get<bool>("transpose_a"),
                types.attributes.get<bool>("transpose_b")};
  shape.gemm.k = a[shape.gemm.transpose_a ? 1 : 2];
  shape.batch = c[0];
  shape.arithmetic = types.products;
  return prepare(queue, shape);
}

constexpr Kernel kMatmulKernels[] = {{"matmul", prepare_matmul},
                                     {"batch_matmul", prepare_batch_matmul}};

}  // namespace

std::span<const Kernel> matmul_kernels() { return kMatmulKernels; }

}  // namespace cairn::cuda
