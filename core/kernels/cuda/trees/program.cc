#include "core/kernels/cuda/trees/program.h"

#include <string_view>
#include <unordered_map>

#include "core/base/error.h"
#include "core/graph/op_def.h"

namespace cairn::cuda {
namespace {

struct Entry {
  std::string_view op;
  // by the dtype of the values: float32, int32, int64, bool and uint8
  Code f = Code::none, i = Code::none, l = Code::none, b = Code::none;
};

constexpr Entry kEntries[] = {
    {"neg", Code::neg_f, Code::neg_i, Code::neg_l},
    {"abs", Code::abs_f, Code::abs_i, Code::abs_l},
    {"exp", Code::exp_f},
    {"expm1", Code::expm1_f},
    {"sin", Code::sin_f},
    {"cos", Code::cos_f},
    {"erf", Code::erf_f},
    {"erfc", Code::erfc_f},
    {"log", Code::log_f},
    {"log1p", Code::log1p_f},
    {"sqrt", Code::sqrt_f},
    {"rsqrt", Code::rsqrt_f},
    {"square", Code::square_f, Code::square_i, Code::square_l},
    {"reciprocal", Code::reciprocal_f},
    {"sigmoid", Code::sigmoid_f},
    {"tanh", Code::tanh_f},
    {"relu", Code::relu_f},
    {"softplus", Code::softplus_f},
    {"sign", Code::sign_f},
    {"floor", Code::floor_f},
    {"is_finite", Code::is_finite_f},
    {"logical_not", Code::none, Code::none, Code::none, Code::logical_not_b},
    {"add", Code::add_f, Code::add_i, Code::add_l},
    {"sub", Code::sub_f, Code::sub_i, Code::sub_l},
    {"mul", Code::mul_f, Code::mul_i, Code::mul_l},
    {"div", Code::div_f, Code::div_i, Code::div_l},
    {"floor_mod", Code::floor_mod_f, Code::floor_mod_i, Code::floor_mod_l},
    {"maximum", Code::maximum_f, Code::maximum_i, Code::maximum_l},
    {"minimum", Code::minimum_f, Code::minimum_i, Code::minimum_l},
    {"pow", Code::pow_f},
    {"equal", Code::equal_f, Code::equal_i, Code::equal_l, Code::equal_b},
    {"not_equal", Code::not_equal_f, Code::not_equal_i, Code::not_equal_l, Code::not_equal_b},
    {"less", Code::less_f, Code::less_i, Code::less_l, Code::less_b},
    {"less_equal", Code::less_equal_f, Code::less_equal_i, Code::less_equal_l, Code::less_equal_b},
    {"greater", Code::greater_f, Code::greater_i, Code::greater_l, Code::greater_b},
    {"greater_equal", Code::greater_equal_f, Code::greater_equal_i, Code::greater_equal_l,
     Code::greater_equal_b},
    {"logical_and", Code::none, Code::none, Code::none, Code::logical_and_b},
    {"logical_or", Code::none, Code::none, Code::none, Code::logical_or_b},
    {"where", Code::where, Code::where, Code::where, Code::where},
    {"cast", Code::cast, Code::cast, Code::cast, Code::cast},
    {"sigmoid_cross_entropy_with_logits", Code::xent_f},
};

Code typed(const Entry& entry, DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return entry.f;
    case DType::kInt32: return entry.i;
    case DType::kInt64: return entry.l;
    case DType::kBool:
    case DType::kUint8: return entry.b;
    default: return entry.f == Code::cast ? Code::cast : Code::none;
  }
}

// The last input decides: the first of `where` is its condition, and a comparison makes a bool.
Code code_of(const FusedTree::Node& node) {
  static const auto table = [] {
    std::unordered_map<std::string_view, const Entry*> all;
    for (const Entry& entry : kEntries) all.emplace(entry.op, &entry);
    return all;
  }();
  const auto found = table.find(node.op->name);
  const DType dtype = node.inputs.back();
  const Code code = found == table.end() ? Code::none : typed(*found->second, dtype);
  if (code == Code::none)
    throw InvalidArgumentError(str("no kernel of ", node.op->name, " for ", dtype_name(dtype)));
  return code;
}

// Hands out registers; an operand that is one is free again behind its only reader.
class Registers {
 public:
  std::uint8_t take() {
    if (free_.empty()) free_.push_back(static_cast<std::uint8_t>(count_++));
    const std::uint8_t taken = free_.back();
    free_.pop_back();
    return taken;
  }
  void release(std::uint8_t index) { free_.push_back(index); }
  int count() const { return count_; }

 private:
  std::vector<std::uint8_t> free_;
  int count_ = 0;
};

}  // namespace

Leaf Leaf::of(const TensorType& from, const Shape& to) {
  Leaf made;
  made.width = static_cast<std::uint8_t>(dtype_bytes(from.dtype));
  const std::int64_t elements = to.elements();
  if (from.shape.elements() == elements) return made;
  const StridedCopy copy = StridedCopy::broadcast(from.shape, to);
  const auto& strides = copy.strides;
  if (strides.size() == 1 && strides[0] == 0) {
    made.mode = Mode::kScalar;
  } else if (strides.size() == 2 && strides[0] == 0 && strides[1] == 1) {
    made.mode = Mode::kInner;
    made.period.by = copy.dims[1];
  } else if (strides.size() == 2 && strides[0] == 1 && strides[1] == 0) {
    made.mode = Mode::kOuter;
    made.period.by = copy.dims[1];
  } else {
    made.mode = Mode::kGeneral;
    made.strides = Strides::of(copy);
  }
  return made;
}

Program Program::of(const FusedTree& tree, DType product) {
  Program made;
  made.elements = tree.result.shape.elements();
  made.width = static_cast<std::uint8_t>(dtype_bytes(tree.result.dtype));
  for (const TensorType& leaf : tree.leaves)
    made.leaves.push_back(Leaf::of(leaf, tree.result.shape));
  made.narrow =
      tree.result.dtype == DType::kBfloat16 && tree.nodes.back().output == DType::kFloat32;
  if (tree.product) {
    Leaf& leaf = made.leaves.emplace_back();
    leaf.narrow = product == DType::kBfloat16;
    leaf.width = static_cast<std::uint8_t>(dtype_bytes(product));
  }
  CAIRN_CHECK(made.leaves.size() <= kLeavesMax, made.leaves.size(), " leaves of a fused tree");
  made.wide = made.width == 8;
  for (const Leaf& leaf : made.leaves) made.wide = made.wide || leaf.width == 8;

  Registers registers;
  std::vector<std::uint8_t> of_node;
  for (const FusedTree::Node& node : tree.nodes) {
    ProgramStep step;
    step.code = code_of(node);
    step.from = node.inputs.back();
    step.to = node.output;
    made.wide = made.wide || dtype_bytes(node.output) == 8;
    int k = 0;
    for (const FusedTree::Operand& operand : node.operands) {
      const DType wanted = node.inputs[static_cast<std::size_t>(k)];
      Operand& to = step.operands[k++];
      const auto at = static_cast<std::size_t>(operand.index);
      switch (operand.kind) {
        case FusedTree::Kind::kLeaf:
          made.leaves[at].narrow =
              wanted == DType::kFloat32 && tree.leaves[at].dtype == DType::kBfloat16;
          to = {Operand::Kind::kLeaf, static_cast<std::uint8_t>(at)};
          break;
        case FusedTree::Kind::kProduct:
          to = {Operand::Kind::kLeaf, static_cast<std::uint8_t>(made.leaves.size() - 1)};
          break;
        case FusedTree::Kind::kNode: to = {Operand::Kind::kRegister, of_node[at]}; break;
      }
    }
    // Operands are copied out of their registers before the result is written, so that its register
    // may be one of theirs.
    for (const Operand& operand : step.operands)
      if (operand.kind == Operand::Kind::kRegister) registers.release(operand.index);
    step.made = registers.take();
    of_node.push_back(step.made);
    made.steps.push_back(step);
  }
  made.registers = registers.count();
  return made;
}

}  // namespace cairn::cuda
