#include "core/kernels/cuda/products.h"

namespace cairn::cuda {

Multiply plan_multiply(Queue& queue, const ProductShape& shape) {
  ProductRun product = queue.driver().plan_product(shape, queue.stream());
  if (shape.arithmetic == Arithmetic::kFloat32)
    return [&queue, product](const float* a, const float* b, const float* bias, float* c) {
      product(queue.stream(), a, b, bias, c);
    };
  // The scratch is made by the first run that finds no copy of another product's.
  struct Scratch {
    std::shared_ptr<Memory> a, b;
  };
  const Gemm& g = shape.gemm;
  return [&queue, product, scratch = std::make_shared<Scratch>(), of_a = shape.batch * g.m * g.k,
          of_b = shape.batch * g.k * g.n](const float* a, const float* b, const float* bias,
                                          float* c) {
    const std::uint16_t* const narrow_a = queue.narrowed(a, of_a, scratch->a);
    const std::uint16_t* const narrow_b = queue.narrowed(b, of_b, scratch->b);
    product(queue.stream(), narrow_a, narrow_b, bias, c);
  };
}

}  // namespace cairn::cuda
