// The pairwise products of an example's vectors: a matrix product per example, of which the part
// below the diagonal is kept; its gradient is a product with the symmetric matrix of dy.
//   Source  the interaction of DLRM: Naumov et al., arXiv:1906.00091.
#include <array>
#include <memory>
#include <vector>

#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/runtime/half.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"
#include "core/kernels/cuda/trees/products.h"

namespace cairn::cuda {
namespace {

// x is [batch, f, d]; the pairs of an example are those of vector i with each before it, row by
// row.
struct Vectors {
  explicit Vectors(const Shape& shape)
      : batch(shape[0]), f(shape[1]), d(shape[2]), pairs(f * (f - 1) / 2) {}
  std::int64_t batch, f, d, pairs;
};

// Places of an example's pairs within the square of all products, or the reverse. They are looked
// up, since to compute them would take a division more per element.
std::shared_ptr<Memory> uploaded(Queue& queue, const std::vector<std::uint32_t>& places) {
  const std::size_t bytes = places.size() * sizeof(std::uint32_t);
  auto made = queue.memory(bytes);
  queue.driver().copy(queue.stream(), Device::Direction::kIn, made->data(),
                      reinterpret_cast<const std::byte*>(places.data()), bytes);
  return made;
}

// By pair, its place below the diagonal.
std::vector<std::uint32_t> squares_of_pairs(std::int64_t f) {
  std::vector<std::uint32_t> made;
  for (std::int64_t i = 0; i < f; ++i)
    for (std::int64_t j = 0; j < i; ++j) made.push_back(static_cast<std::uint32_t>(i * f + j));
  return made;
}

// By place in the square, the pair of both; on the diagonal, none.
constexpr std::uint32_t kNoPair = ~std::uint32_t{0};
std::vector<std::uint32_t> pairs_of_squares(std::int64_t f) {
  std::vector<std::uint32_t> made(static_cast<std::size_t>(f * f), kNoPair);
  std::uint32_t pair = 0;
  for (std::int64_t i = 0; i < f; ++i)
    for (std::int64_t j = 0; j < i; ++j)
      made[static_cast<std::size_t>(i * f + j)] = made[static_cast<std::size_t>(j * f + i)] =
          pair++;
  return made;
}

// A product per example, of factors that lie so.
Multiply plan_per_example(Queue& queue, const KernelTypes& types, std::int64_t batch,
                          const Gemm& gemm, std::array<DType, 2> factors) {
  ProductShape shape;
  shape.gemm = gemm;
  shape.batch = batch;
  shape.arithmetic = types.products;
  shape.deterministic = types.deterministic;
  shape.narrow_result = types.outputs[0].dtype == DType::kBfloat16;
  return plan_multiply(queue, shape, factors);
}

// to[b, p] = all[b, places[p]], in rows of `stride` elements.
template <typename T>
void pick_pairs(Queue& queue, const Vectors& v, const std::uint32_t* places, const std::byte* all,
                std::byte* to, std::int64_t stride) {
  const T* const from = reinterpret_cast<const T*>(all);
  T* const out = reinterpret_cast<T*>(to);
  const Divisor pairs{v.pairs};
  const std::int64_t square = v.f * v.f;
  for_each(queue, v.batch * v.pairs, [=] CAIRN_KERNEL_BODY(std::int64_t at) {
    const std::int64_t b = pairs.divide(at), pair = at - b * pairs.by;
    out[b * stride + pair] = from[b * square + places[pair]];
  });
}

KernelRun prepare_dots(Queue& queue, const KernelTypes& types) {
  const Vectors v(types.inputs[0].shape);
  const DType vectors = types.inputs[0].dtype;
  const bool narrow = types.outputs[0].dtype == DType::kBfloat16;
  auto product =
      plan_per_example(queue, types, v.batch, {v.f, v.f, v.d, false, true}, {vectors, vectors});
  auto scratch = queue.memory(static_cast<std::size_t>(v.batch * v.f * v.f) *
                              dtype_bytes(types.outputs[0].dtype));
  auto places = uploaded(queue, squares_of_pairs(v.f));
  const std::int64_t stride = types.output_stride > 0 ? types.output_stride : v.pairs;
  return [&queue, v, product, scratch, places, narrow, stride](const KernelCall& call) {
    const std::byte* const x = call.inputs[0];
    product({x, x, nullptr, scratch->data()});
    const auto* const of_pairs = places->as<std::uint32_t>();
    if (narrow)
      pick_pairs<std::uint16_t>(queue, v, of_pairs, scratch->data(), call.outputs[0], stride);
    else
      pick_pairs<float>(queue, v, of_pairs, scratch->data(), call.outputs[0], stride);
  };
}

// The matrix of each example's pairs, which lie in rows of `stride` elements, in the form in which
// the product reads it.
template <typename From, typename To>
void spread_pairs(Queue& queue, const Vectors& v, const std::uint32_t* pairs, const std::byte* dy,
                  std::int64_t stride, std::byte* to) {
  const auto* const from = reinterpret_cast<const typename From::Stored*>(dy);
  auto* const symmetric = reinterpret_cast<typename To::Stored*>(to);
  const Divisor square{v.f * v.f};
  for_each(queue, v.batch * square.by, [=] CAIRN_KERNEL_BODY(std::int64_t at) {
    const std::int64_t b = square.divide(at);
    const std::uint32_t pair = pairs[at - b * square.by];
    symmetric[at] = To::write(pair == kNoPair ? 0.0f : From::read(from[b * stride + pair]));
  });
}

KernelRun prepare_dots_grad(Queue& queue, const KernelTypes& types) {
  const Vectors v(types.inputs[1].shape);
  const DType dy = types.inputs[0].dtype,
              factor = rounds_to_bfloat16(types.products) ? DType::kBfloat16 : DType::kFloat32;
  auto product = plan_per_example(queue, types, v.batch, {v.f, v.d, v.f, false, false},
                                  {factor, types.inputs[1].dtype});
  auto scratch = queue.memory(static_cast<std::size_t>(v.batch * v.f * v.f) * dtype_bytes(factor));
  auto places = uploaded(queue, pairs_of_squares(v.f));
  const auto spread = factor == DType::kFloat32 ? spread_pairs<AsFloat32, AsFloat32>
                      : dy == DType::kFloat32   ? spread_pairs<AsFloat32, AsBfloat16>
                                                : spread_pairs<AsBfloat16, AsBfloat16>;
  const std::int64_t stride = types.input_stride > 0 ? types.input_stride : v.pairs;
  return [&queue, v, product, scratch, places, spread, stride](const KernelCall& call) {
    spread(queue, v, places->as<std::uint32_t>(), call.inputs[0], stride, scratch->data());
    product({scratch->data(), call.inputs[1], nullptr, call.outputs[0]});
  };
}

constexpr Kernel kRecommendationKernels[] = {{"dot_interaction", prepare_dots},
                                             {"dot_interaction_grad", prepare_dots_grad}};

}  // namespace

std::span<const Kernel> recommendation_kernels() { return kRecommendationKernels; }

}  // namespace cairn::cuda
