// Operations of recommendation models, and those that turn text and keys into ids.
#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using infer::OpTypes;

// The products of all pairs of an example's f vectors: f (f - 1) / 2 of them, as in DLRM (Naumov et
// al., 2019). The bound on f keeps that number within range.
OpTypes infer_dot_interaction(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kFloats);
  infer::want_rank(in, 0, 3);
  std::int64_t f = in.types[0].shape[1];
  if (infer::unknown(f)) infer::fail("the number of vectors an example is unknown");
  if (f > (std::int64_t{1} << 16)) infer::fail(f, " vectors an example");
  return {{DType::kFloat32, Shape{in.types[0].shape[0], f * (f - 1) / 2}}};
}

OpTypes infer_dot_interaction_grad(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kFloats);
  Attributes none;
  OpTypes product = infer_dot_interaction({in.types.subspan(1), none, {}});
  if (!infer::shapes_agree(in.types[0].shape, product[0].shape))
    infer::fail("the gradient does not have the shape of the products");
  return {in.types[1]};
}

OpTypes infer_string_hash(const OpInputs& in) {
  infer::want_dtype(in, 0, {DType::kString});
  if (in.attributes.get<std::int64_t>("buckets") < 1) infer::fail("at least one bucket is wanted");
  return {{DType::kInt64, in.types[0].shape}};
}

OpTypes infer_find_key(const OpInputs& in) {
  infer::want_dtype(in, 0, {DType::kInt64, DType::kString});
  infer::want_dtype(in, 1, {in.types[0].dtype});
  infer::want_rank(in, 1, 1);
  return {{DType::kInt64, in.types[0].shape}};
}

// y_k = x_i . x_j for each pair i > j, so dx_i is the sum of dy_k x_j over the pairs that i is in.
std::vector<Array> grad_dot_interaction(const Array& y, const Array& dy) {
  return {dot_interaction_grad(dy, y.node()->inputs[0])};
}
std::vector<Array> grad_dot_interaction_grad(const Array&, const Array&) {
  throw UnimplementedError("the second derivative of dot_interaction");
}

const OpDef kRecommendationOps[] = {
    {"dot_interaction", 1, 1, "", infer_dot_interaction, grad_dot_interaction,
     OpFlags::kOfProducts},
    {"dot_interaction_grad", 2, 2, "", infer_dot_interaction_grad, grad_dot_interaction_grad,
     OpFlags::kOfProducts},
    {"find_key", 2, 2, "", infer_find_key},
    {"string_hash_bucket", 1, 1, "buckets", infer_string_hash},
};

}  // namespace

std::span<const OpDef> recommendation_ops() { return kRecommendationOps; }

Array dot_interaction(const Array& vectors) { return record("dot_interaction", {vectors}); }
Array dot_interaction_grad(const Array& dy, const Array& vectors) {
  return record("dot_interaction_grad", {dy, vectors});
}
Array find_key(const Array& keys, const Array& sorted) {
  return record("find_key", {keys, sorted});
}
Array string_hash_bucket(const Array& text, std::int64_t buckets) {
  return record("string_hash_bucket", {text}, {{"buckets", buckets}});
}

}  // namespace cairn
