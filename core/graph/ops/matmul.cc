// Matrix products.
#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

// The product's type, from the last two axes of both inputs; the first `leading` axes are a batch.
infer::OpTypes product(const OpInputs& in, int leading) {
  for (int i : {0, 1}) {
    infer::want_dtype(in, i, infer::kFloats);
    infer::want_rank(in, i, leading + 2);
  }
  bool transpose_a = in.attributes.get<bool>("transpose_a"),
       transpose_b = in.attributes.get<bool>("transpose_b");
  const Shape &a = in.types[0].shape, &b = in.types[1].shape;
  std::int64_t inner_a = a[leading + (transpose_a ? 0 : 1)],
               inner_b = b[leading + (transpose_b ? 1 : 0)];
  if (!infer::dims_agree(inner_a, inner_b))
    infer::fail("the inner dimensions ", inner_a, " and ", inner_b, " differ");
  std::vector<std::int64_t> dims;
  for (int i = 0; i < leading; ++i) {
    if (!infer::dims_agree(a[i], b[i])) infer::fail("the batches ", a[i], " and ", b[i], " differ");
    dims.push_back(infer::merge_dims(a[i], b[i]));
  }
  dims.push_back(a[leading + (transpose_a ? 1 : 0)]);
  dims.push_back(b[leading + (transpose_b ? 0 : 1)]);
  return {{DType::kFloat32, Shape(std::move(dims))}};
}

infer::OpTypes infer_matmul(const OpInputs& in) { return product(in, 0); }
// One leading axis, which both inputs share; it does not broadcast.
infer::OpTypes infer_batch_matmul(const OpInputs& in) { return product(in, 1); }

using Product = Array (*)(const Array&, const Array&, bool, bool);

// Y = A B has dA = dY B^T and dB = A^T dY. Where an operand was given transposed, its gradient is
// the transpose of that, which is the product of the transposes in the other order: no matrix is
// ever transposed on its own.
std::vector<Array> product_gradient(Product product, const Array& y, const Array& dy) {
  const Array &a = y.node()->inputs[0], &b = y.node()->inputs[1];
  bool transpose_a = y.node()->attributes.get<bool>("transpose_a"),
       transpose_b = y.node()->attributes.get<bool>("transpose_b");
  Array da = transpose_a ? product(b, dy, transpose_b, true) : product(dy, b, false, !transpose_b);
  Array db = transpose_b ? product(dy, a, true, transpose_a) : product(a, dy, !transpose_a, false);
  return {da, db};
}
std::vector<Array> grad_matmul(const Array& y, const Array& dy) {
  return product_gradient(matmul, y, dy);
}
std::vector<Array> grad_batch_matmul(const Array& y, const Array& dy) {
  return product_gradient(batch_matmul, y, dy);
}

const OpDef kMatmulOps[] = {
    {"matmul", 2, 2, "transpose_a transpose_b", infer_matmul, grad_matmul, OpFlags::kMatrixProduct},
    {"batch_matmul", 2, 2, "transpose_a transpose_b", infer_batch_matmul, grad_batch_matmul},
};

}  // namespace

std::span<const OpDef> matmul_ops() { return kMatmulOps; }

Array matmul(const Array& a, const Array& b, bool transpose_a, bool transpose_b) {
  return record("matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}
Array batch_matmul(const Array& a, const Array& b, bool transpose_a, bool transpose_b) {
  return record("batch_matmul", {a, b},
                {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

}  // namespace cairn
