#include "core/kernels/cuda/trees/fused.h"

#include <vector>

#include "core/base/error.h"
#include "core/graph/op_def.h"
#include "core/kernels/cuda/runtime/launch.h"
#include "core/kernels/cuda/trees/interpreter.h"
#include "core/kernels/cuda/trees/products.h"
#include "core/kernels/cuda/trees/tree_run.h"

namespace cairn::cuda {
namespace {

// Registers are an array that is indexed at run time, so it has one size per kernel: trees of a few
// nodes, which are nearly all, and the rest.
constexpr int kFewRegisters = 6, kManyRegisters = 64;

// A program that is ready to run: as a kernel of its own, or in device memory for the interpreter.
class Loaded {
 public:
  Loaded(Queue& queue, const Program& program, std::shared_ptr<const FaultSite> fault)
      : queue_(queue),
        own_(TreeRun::plan(queue, program)),
        steps_(own_ ? nullptr : upload(program.steps)),
        leaves_(own_ ? nullptr : upload(program.leaves)),
        program_(program),
        fault_(std::move(fault)) {}

  void run(const std::byte* const* leaves, std::byte* result) const {
    if (own_) return own_->run(leaves, result);
    const bool few = program_.registers <= kFewRegisters;
    if (program_.wide)
      few ? launch<Interpreter<std::uint64_t, kFewRegisters>>(leaves, result)
          : launch<Interpreter<std::uint64_t, kManyRegisters>>(leaves, result);
    else if (program_.registers <= SmallInterpreter::kRegisters &&
             program_.leaves.size() <= SmallInterpreter::kLeaves)
      launch<SmallInterpreter>(leaves, result);
    else
      few ? launch<Interpreter<std::uint32_t, kFewRegisters>>(leaves, result)
          : launch<Interpreter<std::uint32_t, kManyRegisters>>(leaves, result);
  }

 private:
  template <typename T>
  std::shared_ptr<Memory> upload(const std::vector<T>& values) const {
    const std::size_t bytes = values.size() * sizeof(T);
    auto made = queue_.memory(bytes);
    queue_.driver().copy(queue_.stream(), Device::Direction::kIn, made->data(),
                         reinterpret_cast<const std::byte*>(values.data()), bytes);
    return made;
  }

  template <typename Body>
  void launch(const std::byte* const* leaves, std::byte* result) const {
    Body body{{steps_->as<ProgramStep>(),
               leaves_->as<Leaf>(),
               static_cast<int>(program_.steps.size()),
               static_cast<int>(program_.leaves.size()),
               program_.width,
               program_.narrow,
               program_.elements,
               {},
               result,
               *fault_}};
    std::copy_n(leaves, program_.leaves.size(), body.program.from.at);
    for_each(queue_, (program_.elements + kLanes - 1) / kLanes, body);
  }

  Queue& queue_;
  std::shared_ptr<const TreeRun> own_;
  std::shared_ptr<Memory> steps_, leaves_;
  Program program_;
  std::shared_ptr<const FaultSite> fault_;
};

// The part of a tree that the product itself computes, and the rest of the tree, over the product's
// result.
struct Absorbed {
  bool bias = false, relu = false;
  int bias_leaf = -1;
  FusedTree rest;
  std::vector<int> leaves;  // of the tree: those of the rest, in their order
};

// The result is float32 that is rounded on its way to memory.
bool is_rounded(const FusedTree& tree) {
  return tree.result.dtype == DType::kBfloat16 && tree.nodes.back().output == DType::kFloat32;
}

bool is_row(const TensorType& leaf, const FusedTree& tree) {
  const Shape& result = tree.result.shape;
  return (leaf.dtype == DType::kFloat32 || (leaf.dtype == DType::kBfloat16 && is_rounded(tree))) &&
         leaf.shape.rank() >= 1 && leaf.shape.elements() == result[1] &&
         leaf.shape[leaf.shape.rank() - 1] == result[1];
}

// The node that reads `kind` `index`; -1: none.
int reader_of(const FusedTree& tree, FusedTree::Kind kind, int index) {
  for (std::size_t i = 0; i < tree.nodes.size(); ++i)
    for (const FusedTree::Operand& operand : tree.nodes[i].operands)
      if (operand.kind == kind && operand.index == index) return static_cast<int>(i);
  return -1;
}

// Takes node `gone`, which computed what the product now yields, out of the tree.
void remove_node(FusedTree& tree, int gone) {
  tree.nodes.erase(tree.nodes.begin() + gone);
  for (FusedTree::Node& node : tree.nodes)
    for (FusedTree::Operand& operand : node.operands) {
      if (operand.kind != FusedTree::Kind::kNode || operand.index < gone) continue;
      operand = operand.index == gone
                    ? FusedTree::Operand{FusedTree::Kind::kProduct, 0}
                    : FusedTree::Operand{FusedTree::Kind::kNode, operand.index - 1};
    }
}

// Takes the leaves out of the rest that nothing of it reads.
void drop_leaves(Absorbed& made) {
  FusedTree& rest = made.rest;
  std::vector<TensorType> kept;
  for (std::size_t i = 0; i < rest.leaves.size(); ++i) {
    const int leaf = static_cast<int>(i), place = static_cast<int>(kept.size());
    if (reader_of(rest, FusedTree::Kind::kLeaf, leaf) < 0) continue;
    for (FusedTree::Node& node : rest.nodes)
      for (FusedTree::Operand& operand : node.operands)
        if (operand.kind == FusedTree::Kind::kLeaf && operand.index == leaf) operand.index = place;
    kept.push_back(rest.leaves[i]);
    made.leaves.push_back(leaf);
  }
  rest.leaves = std::move(kept);
}

// Whether the rest adds something to the product, or takes it away: rounded before, a product that
// is near the other number would leave little but the rounding.
bool adds_to_product(const FusedTree& rest) {
  const int reader = reader_of(rest, FusedTree::Kind::kProduct, 0);
  if (reader < 0) return false;
  const std::string_view name = rest.nodes[static_cast<std::size_t>(reader)].op->name;
  return name == "add" || name == "sub";
}

void absorb_bias(const FusedTree& tree, Absorbed& made) {
  const int add = reader_of(tree, FusedTree::Kind::kProduct, 0);
  if (add < 0 || tree.product->k == 0) return;
  const FusedTree::Node& node = tree.nodes[static_cast<std::size_t>(add)];
  if (node.op->name != "add") return;
  for (const FusedTree::Operand& operand : node.operands)
    if (operand.kind == FusedTree::Kind::kLeaf &&
        is_row(tree.leaves[static_cast<std::size_t>(operand.index)], tree))
      made.bias_leaf = operand.index;
  if (made.bias_leaf < 0) return;
  made.bias = true;
  remove_node(made.rest, add);
  const int next = reader_of(made.rest, FusedTree::Kind::kProduct, 0);
  if (next < 0 || made.rest.nodes[static_cast<std::size_t>(next)].op->name != "relu") return;
  made.relu = true;
  remove_node(made.rest, next);
}

Absorbed absorb(const FusedTree& tree) {
  Absorbed made;
  made.rest = tree;
  absorb_bias(tree, made);
  drop_leaves(made);
  return made;
}

std::shared_ptr<const FaultSite> division_fault(Queue& queue, const FusedTree& tree) {
  return queue.add_fault([last = std::string(tree.nodes.back().op->name)](std::int64_t position,
                                                                          std::int64_t) {
    return str("an integer is divided by zero, at element ", position, " of what leads to ", last);
  });
}

KernelRun fuse_product(Queue& queue, const FusedTree& tree) {
  Absorbed absorbed = absorb(tree);
  ProductShape shape;
  shape.gemm = *tree.product;
  shape.arithmetic = tree.products;
  shape.bias = absorbed.bias;
  shape.relu = absorbed.relu;
  shape.deterministic = tree.deterministic;
  shape.narrow_result = is_rounded(tree) && !adds_to_product(absorbed.rest);
  const int bias = absorbed.bias_leaf;
  const Multiply product = plan_multiply(
      queue, shape, tree.factors,
      bias >= 0 ? tree.leaves[static_cast<std::size_t>(bias)].dtype : DType::kFloat32);
  auto multiply = [product, leaves = tree.leaves.size(), bias](const KernelCall& call,
                                                               std::byte* to) {
    product({call.inputs[leaves], call.inputs[leaves + 1], bias >= 0 ? call.inputs[bias] : nullptr,
             to});
  };
  if (absorbed.rest.nodes.empty())
    return [multiply](const KernelCall& call) { multiply(call, call.outputs[0]); };

  const DType made_as = shape.narrow_result ? DType::kBfloat16 : DType::kFloat32;
  auto rest = std::make_shared<Loaded>(queue, Program::of(absorbed.rest, made_as),
                                       division_fault(queue, tree));
  // The product lies where the result will, if the elements are of one size: each thread reads its
  // own before it writes.
  const bool in_place = dtype_bytes(tree.result.dtype) == dtype_bytes(made_as);
  auto scratch =
      in_place
          ? nullptr
          : queue.memory(static_cast<std::size_t>(shape.gemm.m * shape.gemm.n) * sizeof(float));
  auto pointers = std::make_shared<std::vector<const std::byte*>>(absorbed.leaves.size() + 1);
  return [multiply, rest, scratch, pointers, own = absorbed.leaves](const KernelCall& call) {
    std::byte* const made = scratch ? scratch->data() : call.outputs[0];
    multiply(call, made);
    for (std::size_t i = 0; i < own.size(); ++i) (*pointers)[i] = call.inputs[own[i]];
    pointers->back() = made;
    rest->run(pointers->data(), call.outputs[0]);
  };
}

}  // namespace

KernelRun fuse(Queue& queue, const FusedTree& tree) {
  if (tree.product) return fuse_product(queue, tree);
  auto loaded = std::make_shared<Loaded>(queue, Program::of(tree), division_fault(queue, tree));
  return [loaded](const KernelCall& call) { loaded->run(call.inputs, call.outputs[0]); };
}

}  // namespace cairn::cuda
