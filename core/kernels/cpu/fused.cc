#include "core/kernels/cpu/fused.h"

#include <algorithm>

#include "core/graph/op_def.h"

namespace cairn {
namespace {

// elements: a handful of registers of them fit the first-level cache
constexpr std::int64_t kBlock = 1024;
// of a product: with its operands' rows it fits a second-level cache
constexpr std::int64_t kPanelBytes = 256 * 1024;
// at least: each panel reads the whole second matrix anew
constexpr std::int64_t kPanelRows = 512;
constexpr std::size_t kRegisterBytes = static_cast<std::size_t>(kBlock) * 8;

// A leaf that repeats with a period that divides the block needs to be laid out only once a run.
std::int64_t period_of(const StridedCopy& copy) {
  if (copy.dims.size() == 1 && copy.strides[0] == 0) return 1;
  if (copy.dims.size() == 2 && copy.strides[0] == 0 && copy.strides[1] == 1) return copy.dims[1];
  return 0;
}

// Whole last axes where they fit, so that rows stretched over them repeat in each block alike.
std::int64_t block_for(const Shape& shape) {
  std::int64_t last = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  return last >= 1 && last <= kBlock ? kBlock / last * last : kBlock;
}

}  // namespace

struct FusedRun {
  using Leaf = FusedBuilder::Leaf;
  explicit FusedRun(const FusedBuilder& builder)
      : operands(builder.operands_),
        leaves(builder.leaves_),
        steps(builder.steps_),
        elements(builder.result_.shape.elements()),
        block(block_for(builder.result_.shape)),
        width(dtype_bytes(builder.result_.dtype)) {
    std::size_t bytes = (builder.registers_ + leaves.size()) * kRegisterBytes;
    memory = Tensor(DType::kUint8, Shape{static_cast<std::int64_t>(bytes)});
    leaf_data.resize(leaves.size());
    laid_out.resize(leaves.size());
    registers = builder.registers_;
  }

  std::byte* slot(std::size_t i) { return memory.mutable_raw() + i * kRegisterBytes; }

  void operator()(const KernelCall& call) {
    lay_out(call);
    run(call, 0, elements, nullptr);
  }

  // Elements [first, end); `panel` holds the product's, if there is one. After lay_out().
  void run(const KernelCall& call, std::int64_t first, std::int64_t end, const float* panel) {
    for (std::int64_t begin = first; begin < end; begin += block) {
      std::int64_t n = std::min(block, end - begin);
      fetch(call, begin, n);
      if (panel != nullptr) product = reinterpret_cast<const std::byte*>(panel + (begin - first));
      for (const auto& step : steps) {
        std::byte* out = &step == &steps.back()
                             ? call.outputs[0] + static_cast<std::size_t>(begin) * width
                             : slot(static_cast<std::size_t>(step.made));
        step.op(data(step.operands[0]), data(step.operands[1]), data(step.operands[2]), out,
                static_cast<std::size_t>(n));
      }
    }
  }

  const std::byte* data(int operand) {
    if (operand < 0) return nullptr;
    const auto& o = operands[static_cast<std::size_t>(operand)];
    if (o.kind == FusedBuilder::Kind::kProduct) return product;
    return o.kind == FusedBuilder::Kind::kLeaf ? leaf_data[static_cast<std::size_t>(o.index)]
                                               : slot(static_cast<std::size_t>(o.index));
  }

  void lay_out(const KernelCall& call) {
    std::int64_t n = std::min(block, elements);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      std::int64_t period = leaves[i].dense ? 0 : period_of(leaves[i].copy);
      laid_out[i] = n > 0 && period > 0 && block % period == 0;
      if (!laid_out[i]) continue;
      leaves[i].copy.run(call.inputs[i], slot(registers + i), 0, n, leaves[i].width);
      leaf_data[i] = slot(registers + i);
    }
  }

  void fetch(const KernelCall& call, std::int64_t begin, std::int64_t n) {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (laid_out[i]) continue;
      if (leaves[i].dense) {
        leaf_data[i] = call.inputs[i] + static_cast<std::size_t>(begin) * leaves[i].width;
      } else {
        leaves[i].copy.run(call.inputs[i], slot(registers + i), begin, n, leaves[i].width);
        leaf_data[i] = slot(registers + i);
      }
    }
  }

  std::vector<FusedBuilder::Operand> operands;
  std::vector<Leaf> leaves;
  std::vector<FusedBuilder::Step> steps;
  std::int64_t elements, block;
  std::size_t width, registers = 0;
  Tensor memory;
  std::vector<const std::byte*> leaf_data;
  std::vector<char> laid_out;
  const std::byte* product = nullptr;  // the block's part
};

// c = a x b by panels of rows, each handed to the tree that it begins.
class PanelRun {
 public:
  PanelRun(std::shared_ptr<FusedRun> tree, const Gemm& whole, Arithmetic arithmetic)
      : tree_(std::move(tree)), shape_(whole), leaves_(tree_->leaves.size()) {
    const std::int64_t fitting =
        std::max(kPanelRows, kPanelBytes / static_cast<std::int64_t>(sizeof(float)) /
                                 std::max<std::int64_t>(1, whole.n));
    const std::int64_t panels = std::max<std::int64_t>(1, (whole.m + fitting - 1) / fitting);
    rows_ = (whole.m + panels - 1) / panels;
    panel_ = planned(rows_, arithmetic);
    last_ = planned(whole.m - (panels - 1) * rows_, arithmetic);
  }

  void operator()(const KernelCall& call) {
    const float *a = input_of<float>(call, static_cast<int>(leaves_)),
                *b = input_of<float>(call, static_cast<int>(leaves_) + 1);
    float* made = panel(rows_ * shape_.n);
    tree_->lay_out(call);
    for (std::int64_t row = 0; row < shape_.m; row += rows_) {
      const std::int64_t end = std::min(shape_.m, row + rows_);
      (end < shape_.m ? panel_ : last_)(a + row * shape_.k, b, made);
      tree_->run(call, row * shape_.n, end * shape_.n, made);
    }
  }

 private:
  // One for all products of a thread, so that it is in the cache already.
  static float* panel(std::int64_t floats) {
    thread_local Tensor memory(DType::kFloat32,
                               Shape{kPanelBytes / static_cast<std::int64_t>(sizeof(float))});
    if (memory.elements() < floats) memory = Tensor(DType::kFloat32, Shape{floats});
    return memory.mutable_values<float>().data();
  }

  Product planned(std::int64_t rows, Arithmetic arithmetic) const {
    Gemm shape = shape_;
    shape.m = rows;
    return plan_product(shape, arithmetic);
  }

  std::shared_ptr<FusedRun> tree_;
  Gemm shape_;
  std::size_t leaves_;
  std::int64_t rows_ = 0;  // of a panel
  Product panel_, last_;
};

int FusedBuilder::leaf(const TensorType& type) {
  Leaf made{dtype_bytes(type.dtype), type.shape.elements() == result_.shape.elements(), {}};
  if (!made.dense) made.copy = StridedCopy::broadcast(type.shape, result_.shape);
  operands_.push_back({Kind::kLeaf, static_cast<int>(leaves_.size())});
  leaves_.push_back(std::move(made));
  return static_cast<int>(operands_.size()) - 1;
}

int FusedBuilder::product() {
  operands_.push_back({Kind::kProduct, 0});
  return static_cast<int>(operands_.size()) - 1;
}

int FusedBuilder::apply(BlockOp op, const std::vector<int>& operands) {
  Step step{op, {-1, -1, -1}, 0};
  std::copy(operands.begin(), operands.end(), step.operands);
  // A new register first: blocks must not overlap, so the result cannot stand where an operand
  // stands.
  if (free_.empty()) free_.push_back(static_cast<int>(registers_++));
  step.made = free_.back();
  free_.pop_back();
  for (int operand : operands)
    if (const auto& o = operands_[static_cast<std::size_t>(operand)]; o.kind == Kind::kRegister)
      free_.push_back(o.index);
  steps_.push_back(step);
  operands_.push_back({Kind::kRegister, step.made});
  return static_cast<int>(operands_.size()) - 1;
}

KernelRun FusedBuilder::finish() {
  auto run = std::make_shared<FusedRun>(*this);
  return [run](const KernelCall& call) { (*run)(call); };
}

KernelRun FusedBuilder::finish(const Gemm& product, Arithmetic arithmetic) {
  auto run = std::make_shared<PanelRun>(std::make_shared<FusedRun>(*this), product, arithmetic);
  return [run](const KernelCall& call) { (*run)(call); };
}

KernelRun fuse(const FusedTree& tree) {
  FusedBuilder builder(tree.result);
  std::vector<int> leaves, nodes;
  for (const TensorType& leaf : tree.leaves) leaves.push_back(builder.leaf(leaf));
  const int product = tree.product ? builder.product() : -1;
  for (const FusedTree::Node& node : tree.nodes) {
    std::vector<int> operands;
    for (const FusedTree::Operand& operand : node.operands) {
      const auto at = static_cast<std::size_t>(operand.index);
      switch (operand.kind) {
        case FusedTree::Kind::kLeaf: operands.push_back(leaves[at]); break;
        case FusedTree::Kind::kProduct: operands.push_back(product); break;
        case FusedTree::Kind::kNode: operands.push_back(nodes[at]); break;
      }
    }
    nodes.push_back(
        builder.apply(find_block_op(node.op->name, node.inputs, node.output), operands));
  }
  return tree.product ? builder.finish(*tree.product, tree.products) : builder.finish();
}

}  // namespace cairn
