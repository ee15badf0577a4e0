#include "tests/core/kernels/cuda/trees/some_trees.h"

#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/graph/op_def.h"

namespace cairn::testing {
namespace {

using Operand = FusedTree::Operand;
constexpr DType kFloat = DType::kFloat32, kHalf = DType::kBfloat16, kInt = DType::kInt32,
                kBool = DType::kBool;

// Makes a tree from its leaves to its result, whose shape comes first.
class Maker {
 public:
  explicit Maker(Shape shape) { tree_.result.shape = std::move(shape); }

  // A leaf of the result's shape, or of another shape that is stretched to it.
  Operand leaf(DType dtype) { return leaf(dtype, tree_.result.shape); }
  Operand leaf(DType dtype, Shape shape) {
    tree_.leaves.push_back({dtype, std::move(shape)});
    return {FusedTree::Kind::kLeaf, static_cast<int>(tree_.leaves.size()) - 1};
  }
  Operand product(std::int64_t k) {
    const Shape& shape = tree_.result.shape;
    Gemm gemm;
    gemm.m = shape[0];
    gemm.n = shape[1];
    gemm.k = k;
    tree_.product = gemm;
    tree_.deterministic = true;  // so that what comes behind it can be compared
    return {FusedTree::Kind::kProduct, 0};
  }
  Operand node(std::string_view op, std::vector<Operand> operands, DType made = kFloat) {
    FusedTree::Node node;
    node.op = find_op(op);
    CAIRN_CHECK(node.op != nullptr, "no operation ", op);
    for (const Operand& operand : operands) node.inputs.push_back(taken(operand));
    node.operands = std::move(operands);
    node.output = made;
    tree_.nodes.push_back(std::move(node));
    return {FusedTree::Kind::kNode, static_cast<int>(tree_.nodes.size()) - 1};
  }
  // float32 that the last node makes may be rounded to bfloat16.
  FusedTree end(DType result) {
    tree_.result.dtype = result;
    return tree_;
  }

 private:
  // Operations have no bfloat16: they take it for float32.
  DType taken(const Operand& operand) const {
    const auto at = static_cast<std::size_t>(operand.index);
    if (operand.kind == FusedTree::Kind::kProduct) return kFloat;
    const DType dtype =
        operand.kind == FusedTree::Kind::kNode ? tree_.nodes[at].output : tree_.leaves[at].dtype;
    return dtype == kHalf ? kFloat : dtype;
  }

  FusedTree tree_;
};

// 66,820 elements, in rows of whole packs; 65,771, in rows that are not.
const Shape kWhole{257, 260}, kOdd{263, 251};
constexpr std::int64_t kLong = 65'543;

FusedTree gradient_of_a_loss(DType result) {
  Maker m(kOdd);
  const Operand difference = m.node("sub", {m.product(3), m.leaf(kFloat)});
  m.node("mul", {difference, m.leaf(kFloat, {})});
  return m.end(result);
}

FusedTree scaled_product() {
  Maker m(kOdd);
  m.node("mul", {m.product(3), m.leaf(kFloat, {kOdd[0], 1})});
  return m.end(kFloat);
}

FusedTree scaled_twice() {
  Maker m({kLong});
  m.node("mul", {m.node("mul", {m.leaf(kFloat), m.leaf(kFloat, {})}), m.leaf(kFloat, {1})});
  return m.end(kFloat);
}

FusedTree layer(const Shape& shape, DType values, DType result) {
  Maker m(shape);
  m.node("relu", {m.node("add", {m.leaf(values), m.leaf(values, {shape[1]})})});
  return m.end(result);
}

FusedTree normalised(const Shape& shape) {
  Maker m(shape);
  const Shape rows{shape[0], 1};
  const Operand centred = m.node("sub", {m.leaf(kFloat), m.leaf(kFloat, rows)});
  const Operand spread =
      m.node("rsqrt", {m.node("add", {m.leaf(kFloat, rows), m.leaf(kFloat, {})})});
  const Operand scaled =
      m.node("mul", {m.node("mul", {centred, spread}), m.leaf(kHalf, {shape[1]})});
  m.node("add", {scaled, m.leaf(kFloat, {shape[1]})});
  return m.end(kFloat);
}

FusedTree gradient_of_relu(DType values) {
  Maker m({kLong});
  const Operand positive = m.node("greater", {m.leaf(values), m.leaf(kFloat, {})}, kBool);
  m.node("where", {positive, m.leaf(values), m.leaf(kFloat, {})});
  return m.end(values);
}

FusedTree dropout() {
  Maker m({kLong});
  const Operand kept = m.node("greater_equal", {m.leaf(kFloat), m.leaf(kFloat, {})}, kBool);
  const Operand scaled = m.node("mul", {m.leaf(kHalf), m.leaf(kFloat, {})});
  m.node("mul", {scaled, m.node("cast", {kept})});
  return m.end(kHalf);
}

FusedTree which_count() {
  Maker m(kWhole);
  const Operand near = m.node("less", {m.leaf(kFloat), m.leaf(kFloat, {kWhole[1]})}, kBool);
  const Operand real = m.node("is_finite", {m.leaf(kFloat)}, kBool);
  const Operand given = m.node("logical_not", {m.leaf(kBool)}, kBool);
  m.node("logical_and", {m.node("logical_or", {near, given}, kBool), real}, kBool);
  return m.end(kBool);
}

FusedTree flags_alone() {
  Maker m({kLong});
  m.node("not_equal", {m.leaf(kBool), m.leaf(kBool)}, kBool);
  return m.end(kBool);
}

FusedTree stretched_by_strides(DType result) {
  Maker m({17, 3, 31, 43});
  const Operand sum = m.node("add", {m.leaf(kFloat), m.leaf(kHalf, {17, 1, 31, 1})});
  const Operand scaled = m.node("mul", {sum, m.leaf(kFloat, {3, 1, 43})});
  m.node("where", {m.leaf(kBool, {1, 31, 1}), scaled, m.leaf(kFloat, {})});
  return m.end(result);
}

FusedTree integers() {
  Maker m(kOdd);
  const Operand sum = m.node("add", {m.leaf(kInt), m.leaf(kInt, {kOdd[0], 1})}, kInt);
  const Operand product = m.node("mul", {sum, m.node("abs", {m.leaf(kInt)}, kInt)}, kInt);
  m.node("cast", {m.node("maximum", {product, m.leaf(kInt, {})}, kInt)});
  return m.end(kFloat);
}

FusedTree wide_integers() {
  Maker m({kLong});
  const Operand sum = m.node("sub", {m.leaf(DType::kInt64), m.leaf(DType::kInt64)}, DType::kInt64);
  m.node("mul", {m.node("cast", {sum}), m.leaf(kFloat)});
  return m.end(kFloat);
}

FusedTree cast_of(DType from, DType to) {
  Maker m({kLong});
  m.node("cast", {m.leaf(from)}, to);
  return m.end(to);
}

// The sum of what these make of a value. None makes a NaN of a positive one.
FusedTree all_of_one(std::vector<std::string_view> ops) {
  Maker m({kLong});
  const Operand x = m.leaf(kFloat);
  Operand sum = x;
  for (const std::string_view op : ops) sum = m.node("add", {sum, m.node(op, {x})});
  return m.end(kFloat);
}
FusedTree all_of_two(std::vector<std::string_view> ops) {
  Maker m({kLong});
  const Operand x = m.leaf(kFloat), y = m.leaf(kFloat);
  Operand sum = x;
  for (const std::string_view op : ops) sum = m.node("sub", {sum, m.node(op, {x, y})});
  return m.end(kFloat);
}

}  // namespace

std::vector<SomeTree> trees_with_kernels() {
  return {
      {"a loss's gradient behind a product", gradient_of_a_loss(kHalf)},
      {"the same without a rounding", gradient_of_a_loss(kFloat)},
      {"a product that is scaled where it lies", scaled_product()},
      {"a value scaled twice", scaled_twice()},
      {"a layer of whole packs", layer(kWhole, kFloat, kFloat)},
      {"a layer of other rows", layer(kOdd, kFloat, kHalf)},
      {"a layer in bfloat16", layer(kWhole, kHalf, kHalf)},
      {"a layer in bfloat16 of other rows", layer(kOdd, kHalf, kFloat)},
      {"normalised rows of whole packs", normalised(kWhole)},
      {"normalised rows of others", normalised(kOdd)},
      {"a relu's gradient", gradient_of_relu(kFloat)},
      {"a dropout", dropout()},
      {"which elements count", which_count()},
      {"values stretched by strides", stretched_by_strides(kFloat)},
      {"values stretched by strides, rounded", stretched_by_strides(kHalf)},
      {"flags alone", flags_alone()},
      {"integers", integers()},
      {"integers of 8 bytes", wide_integers()},
      {"a cast to int32", cast_of(kFloat, kInt)},
      {"a cast to bool", cast_of(kFloat, kBool)},
      {"a cast to bfloat16", cast_of(kFloat, kHalf)},
      {"a cast from float16", cast_of(DType::kFloat16, kFloat)},
      {"a cast to float64", cast_of(kInt, DType::kFloat64)},
      {"functions of one value",
       all_of_one({"neg",  "abs",      "exp",  "expm1", "sin",    "cos",        "erf",     "erfc",
                   "log",  "log1p",    "sqrt", "rsqrt", "square", "reciprocal", "sigmoid", "tanh",
                   "relu", "softplus", "sign", "floor", "ceil",   "round"})},
      {"functions of two values",
       all_of_two({"add", "sub", "mul", "div", "floor_mod", "maximum", "minimum", "pow",
                   "sigmoid_cross_entropy_with_logits"})},
  };
}

std::vector<SomeTree> trees_without_kernels() {
  Maker few({kLong / 2});
  few.node("mul", {few.leaf(kFloat), few.leaf(kFloat)});
  Maker leafy({kLong});
  Operand sum = leafy.leaf(kFloat);
  for (int i = 0; i < 16; ++i) sum = leafy.node("add", {sum, leafy.leaf(kFloat, {})});
  Maker divided({kLong});
  divided.node("div", {divided.leaf(kInt), divided.leaf(kInt)}, kInt);
  return {{"few elements", few.end(kFloat)},
          {"more leaves than a kernel takes", leafy.end(kFloat)},
          {"integers that may be divided by zero", divided.end(kInt)}};
}

}  // namespace cairn::testing
