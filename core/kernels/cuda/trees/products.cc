#include "core/kernels/cuda/trees/products.h"

#include "core/base/error.h"

namespace cairn::cuda {
namespace {

// In elements. Tensor cores want matrices of bfloat16 whose rows begin at multiples of 16 bytes.
// With others cuBLASLt took three to four times as long per multiplication on an H200 (the products
// with 415 columns in bench/gpu/results/times_dlrm.log).
constexpr std::int64_t kAlignment = 8;
// Products of fewer multiplications are left as they are: they take about as long as the copies.
// An estimate, not yet measured.
constexpr std::int64_t kPaddedMin = std::int64_t{1} << 26;

// The product that is computed instead: every size that is the length of a row of some matrix is
// rounded up. What is added to the factors is zero.
Gemm padded(const ProductShape& shape) {
  Gemm g = shape.gemm;
  if (!rounds_to_bfloat16(shape.arithmetic) || shape.batch != 1 || g.m * g.n < 1 ||
      g.k < kPaddedMin / (g.m * g.n))
    return g;
  const auto rounded = [](std::int64_t size) {
    return (size + kAlignment - 1) / kAlignment * kAlignment;
  };
  if (g.transpose_a) g.m = rounded(g.m);
  if (!g.transpose_a || g.transpose_b) g.k = rounded(g.k);
  g.n = rounded(g.n);
  return g;
}

// One factor of a product, read as it lies or through a copy. A copy that another product has made
// is used again; scratch for an own one is allocated when it is first needed.
class Factor {
 public:
  Factor(Queue& queue, const MatrixCopy& copy)
      : queue_(queue), copy_(copy), copies_(copy.from != copy.to || copy.changes_size()) {}
  const std::byte* read(const std::byte* at) {
    return copies_ && at != nullptr ? queue_.copied(at, copy_, scratch_) : at;
  }

 private:
  Queue& queue_;
  MatrixCopy copy_;
  bool copies_;
  std::shared_ptr<Memory> scratch_;
};

}  // namespace

Multiply plan_multiply(Queue& queue, const ProductShape& shape, std::array<DType, 2> factors,
                       DType bias) {
  struct Planned {
    ProductRun product;
    Factor a, b, bias;
    MatrixCopy result;
    std::shared_ptr<Memory> larger;  // than the result, which is cut out of it
  };
  const Gemm &given = shape.gemm, made = padded(shape);
  const DType type = rounds_to_bfloat16(shape.arithmetic) ? DType::kBfloat16 : DType::kFloat32;
  const DType result = shape.narrow_result ? DType::kBfloat16 : DType::kFloat32;
  for (const DType factor : factors)
    CAIRN_CHECK(factor == type || type == DType::kBfloat16, "a product in float32 reads ",
                dtype_name(factor));
  // Matrices of a batch lie one behind another, so that they are one of more rows.
  const auto copy = [&](DType from, DType to, bool transposed, std::int64_t rows,
                        std::int64_t columns, std::int64_t to_rows, std::int64_t to_columns) {
    if (transposed) std::swap(rows, columns), std::swap(to_rows, to_columns);
    return MatrixCopy{from, to, shape.batch * rows, columns, shape.batch * to_rows, to_columns};
  };
  ProductShape computed = shape;
  computed.gemm = made;
  auto planned = std::make_shared<Planned>(Planned{
      queue.driver().plan_product(computed, queue.stream()),
      Factor(queue, copy(factors[0], type, given.transpose_a, given.m, given.k, made.m, made.k)),
      Factor(queue, copy(factors[1], type, given.transpose_b, given.k, given.n, made.k, made.n)),
      Factor(queue, {bias, result, 1, given.n, 1, made.n}),
      copy(result, result, false, made.m, made.n, given.m, given.n), nullptr});
  if (planned->result.changes_size()) planned->larger = queue.memory(planned->result.from_bytes());
  return [&queue, planned](const ProductMemory& at) {
    ProductMemory computed = at;
    computed.a = planned->a.read(at.a);
    computed.b = planned->b.read(at.b);
    computed.bias = planned->bias.read(at.bias);
    if (planned->larger) computed.c = planned->larger->data();
    planned->product(queue.stream(), computed);
    if (planned->larger) copy_matrix(queue, planned->result, computed.c, at.c);
  };
}

}  // namespace cairn::cuda
