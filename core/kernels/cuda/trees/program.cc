#include "core/kernels/cuda/trees/program.h"

#include <iterator>
#include <string_view>
#include <unordered_map>

#include "core/base/error.h"
#include "core/graph/op_def.h"

namespace cairn::cuda {
namespace {

constexpr std::string_view kNames[] = {
#define CAIRN_CUDA_NAME(NAME, IN, OUT, EXPRESSION) #NAME,
    CAIRN_CUDA_UNARY(CAIRN_CUDA_NAME) CAIRN_CUDA_BINARY(CAIRN_CUDA_NAME)
#undef CAIRN_CUDA_NAME
        "where",
    "cast",
};

// The letter at the end of a name; 0: no operation but cast takes such values.
char letter_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return 'f';
    case DType::kInt32: return 'i';
    case DType::kInt64: return 'l';
    case DType::kBool:
    case DType::kUint8: return 'b';
    default: return 0;
  }
}

// The last input decides: the first of `where` is its condition, and a comparison makes a bool.
Code code_of(const FusedTree::Node& node) {
  static const auto table = [] {
    std::unordered_map<std::string_view, Code> all;
    for (std::size_t i = 0; i < std::size(kNames); ++i)
      all.emplace(kNames[i], static_cast<Code>(i));
    return all;
  }();
  const std::string_view op = node.op->name;
  const DType dtype = node.inputs.back();
  const char letter = letter_of(dtype);
  const bool of_any_dtype = op == "cast" || (op == "where" && letter != 0);
  const auto found = table.find(of_any_dtype ? std::string(op) : str(op, '_', letter));
  if (found == table.end())
    throw InvalidArgumentError(str("no kernel of ", op, " for ", dtype_name(dtype)));
  return found->second;
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

std::string_view name_of(Code code) { return kNames[static_cast<std::size_t>(code)]; }

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
