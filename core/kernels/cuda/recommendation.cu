// The pairwise products of an example's vectors: a matrix product per example, of which the part
// below the diagonal is kept; its gradient is a product with the symmetric matrix of dy.
//   Source  the interaction of DLRM: Naumov et al., arXiv:1906.00091.
#include "core/kernels/cuda/index.h"
#include "core/kernels/cuda/kernel_table.h"
#include "core/kernels/cuda/launch.h"
#include "core/kernels/cuda/products.h"

namespace cairn::cuda {
namespace {

// x is [batch, f, d]; the pairs of an example are those of vector i with each before it, row by
// row.
struct Vectors {
  explicit Vectors(const Shape& shape)
      : batch(shape[0]), f(shape[1]), d(shape[2]), pairs(f * (f - 1) / 2) {}
  std::int64_t batch, f, d, pairs;
};

constexpr std::array<DType, 2> kFactors{DType::kFloat32, DType::kFloat32};

CAIRN_DEVICE std::int64_t pair_of(std::int64_t i, std::int64_t j) { return i * (i - 1) / 2 + j; }

KernelRun prepare_dots(Queue& queue, const KernelTypes& types) {
  const Vectors v(types.inputs[0].shape);
  ProductShape shape;
  shape.gemm = {v.f, v.f, v.d, false, true};
  shape.batch = v.batch;
  shape.arithmetic = types.products;
  shape.deterministic = types.deterministic;
  auto product = plan_multiply(queue, shape, kFactors);
  auto scratch = queue.memory(static_cast<std::size_t>(v.batch * v.f * v.f) * sizeof(float));
  return [&queue, v, product, scratch](const KernelCall& call) {
    const std::byte* const x = call.inputs[0];
    float* const all = scratch->as<float>();
    float* const out = output_of<float>(call);
    product(x, x, nullptr, scratch->data());
    const std::int64_t f = v.f, pairs = v.pairs;
    const Divisor square{f * f}, side{f};
    for_each(queue, v.batch * f * f, [=] CAIRN_KERNEL_BODY(std::int64_t at) {
      const std::int64_t b = square.divide(at), in = at - b * square.by;
      const std::int64_t i = side.divide(in), j = in - i * f;
      if (j < i) out[b * pairs + pair_of(i, j)] = all[at];
    });
  };
}

KernelRun prepare_dots_grad(Queue& queue, const KernelTypes& types) {
  const Vectors v(types.inputs[1].shape);
  ProductShape shape;
  shape.gemm = {v.f, v.d, v.f, false, false};
  shape.batch = v.batch;
  shape.arithmetic = types.products;
  shape.deterministic = types.deterministic;
  auto product = plan_multiply(queue, shape, kFactors);
  auto scratch = queue.memory(static_cast<std::size_t>(v.batch * v.f * v.f) * sizeof(float));
  return [&queue, v, product, scratch](const KernelCall& call) {
    const float* const dy = input_of<float>(call, 0);
    float* const symmetric = scratch->as<float>();
    const std::int64_t f = v.f, pairs = v.pairs;
    const Divisor square{f * f}, side{f};
    for_each(queue, v.batch * f * f, [=] CAIRN_KERNEL_BODY(std::int64_t at) {
      const std::int64_t b = square.divide(at), in = at - b * square.by;
      const std::int64_t i = side.divide(in), j = in - i * f;
      symmetric[at] = i == j ? 0.0f : dy[b * pairs + (j < i ? pair_of(i, j) : pair_of(j, i))];
    });
    queue.written(scratch->data(), static_cast<std::size_t>(v.batch * f * f) * sizeof(float));
    product(scratch->data(), call.inputs[1], nullptr, call.outputs[0]);
  };
}

constexpr Kernel kRecommendationKernels[] = {{"dot_interaction", prepare_dots},
                                             {"dot_interaction_grad", prepare_dots_grad}};

}  // namespace

std::span<const Kernel> recommendation_kernels() { return kRecommendationKernels; }

}  // namespace cairn::cuda
