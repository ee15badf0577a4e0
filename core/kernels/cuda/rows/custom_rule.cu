// A program's own update rule on a CUDA device. The rows that are named are laid side by side, each
// result is one fused tree over them, and the results are put back into the rows.
#include <algorithm>
#include <utility>

#include "core/graph/custom_rule.h"
#include "core/graph/graph.h"
#include "core/graph/op_def.h"
#include "core/graph/rules/rule_def.h"
#include "core/kernels/cuda/rows/rules.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"
#include "core/kernels/cuda/trees/fused.h"

namespace cairn::cuda {
namespace {

constexpr std::size_t kValue = 0, kGradient = 1, kRate = 2, kT = 3, kSlots = 4;

// The value, or a slot, of rows of a block.
struct Rows {
  float* base;
  std::int64_t stride, dim, count;
  const std::int64_t* numbers;  // as RuleRun has them

  CAIRN_DEVICE std::int64_t row(std::int64_t i) const {
    return numbers != nullptr ? numbers[i] : i;
  }
};

// Their lambdas become kernels, so they may not stand in a private member.
void gather_parts(Queue& queue, const Rows& rows, float* to) {
  const Divisor dim{rows.dim};
  for_each(queue, rows.count * rows.dim, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const std::int64_t at = dim.divide(i), row = rows.row(at);
    to[i] = row < 0 ? 0 : rows.base[row * rows.stride + (i - at * rows.dim)];
  });
}
void scatter_parts(Queue& queue, const Rows& rows, const float* from, bool one_for_all) {
  const Divisor dim{rows.dim};
  for_each(queue, rows.count * rows.dim, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const std::int64_t at = dim.divide(i), row = rows.row(at);
    if (row >= 0) rows.base[row * rows.stride + (i - at * rows.dim)] = from[one_for_all ? 0 : i];
  });
}

Range range(const void* begin, std::int64_t count, std::size_t width) {
  return {static_cast<const std::byte*>(begin), static_cast<std::size_t>(count) * width};
}

// The operations that lead to one output, as a tree over the arguments and the constants.
class TreeOf {
 public:
  TreeOf(const Graph& graph, ValueRef output, std::int64_t elements) : graph_(graph) {
    tree_.result = {DType::kFloat32, Shape{elements}};
    needed_.resize(graph.nodes.size());
    need(output);
    places_.resize(graph.nodes.size());
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      if (needed_[i] && is_leaf(i)) add_leaf(i, elements);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      if (needed_[i] && !is_leaf(i)) add_node(i);
  }
  const FusedTree& tree() const { return tree_; }
  // The graph's nodes that are the tree's leaves, in their order.
  const std::vector<std::size_t>& leaves() const { return leaves_; }

 private:
  bool is_leaf(std::size_t node) const {
    const OpDef& op = *graph_.nodes[node].op;
    return op.effect == Effect::kArgument || op.has(OpFlags::kConstant);
  }
  void need(ValueRef value) {
    const auto node = static_cast<std::size_t>(value.node);
    if (needed_[node]) return;
    needed_[node] = true;
    for (const ValueRef input : graph_.nodes[node].inputs) need(input);
  }
  void add_leaf(std::size_t node, std::int64_t elements) {
    const TensorType& type = graph_.nodes[node].outputs[0];
    places_[node] = {FusedTree::Kind::kLeaf, static_cast<int>(leaves_.size())};
    leaves_.push_back(node);
    tree_.leaves.push_back({type.dtype, type.shape.rank() == 0 ? Shape{} : Shape{elements}});
  }
  void add_node(std::size_t node) {
    const Node& from = graph_.nodes[node];
    FusedTree::Node made{from.op, {}, {}, from.outputs[0].dtype};
    for (const ValueRef input : from.inputs) {
      made.operands.push_back(places_[static_cast<std::size_t>(input.node)]);
      made.inputs.push_back(graph_.type(input).dtype);
    }
    places_[node] = {FusedTree::Kind::kNode, static_cast<int>(tree_.nodes.size())};
    tree_.nodes.push_back(std::move(made));
  }

  const Graph& graph_;
  FusedTree tree_;
  std::vector<bool> needed_;
  std::vector<FusedTree::Operand> places_;
  std::vector<std::size_t> leaves_;
};

class CustomUpdate {
 public:
  CustomUpdate(Queue& queue, std::shared_ptr<const CustomRule> rule)
      : queue_(queue), rule_(std::move(rule)), arguments_(kSlots + slots(), nullptr) {
    const Graph& graph = rule_->graph();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].op->has(OpFlags::kConstant)) send_constant(i);
  }

  void run(const RowBlock& block, const RuleRates* rates, const std::int64_t* numbers,
           std::int64_t count, const std::byte* values) {
    if (count == 0 || block.rows == 0 || block.dim == 0) return;
    prepare(count * block.dim);
    announce(block, rates, numbers, count, values);
    for (std::size_t k = 0; k <= slots(); ++k) {
      auto* const to = before_->as<float>() + static_cast<std::int64_t>(k) * elements_;
      gather_parts(queue_, part(block, k, numbers, count), to);
      arguments_[k == 0 ? kValue : kSlots + k - 1] = reinterpret_cast<const std::byte*>(to);
    }
    arguments_[kGradient] = values;
    arguments_[kRate] = reinterpret_cast<const std::byte*>(&rates->rate);
    arguments_[kT] = reinterpret_cast<const std::byte*>(&rates->t);
    for (std::size_t k = 0; k <= slots(); ++k) {
      const Result& result = results_[k];
      const std::byte* made = at(result.leaves.empty() ? 0 : result.leaves[0]);
      if (result.run) {
        std::vector<const std::byte*> leaves;
        for (const std::size_t leaf : result.leaves) leaves.push_back(at(leaf));
        std::byte* out = reinterpret_cast<std::byte*>(after_->as<float>() +
                                                      static_cast<std::int64_t>(k) * elements_);
        result.run(KernelCall{leaves.data(), &out});
        made = out;
      }
      scatter_parts(queue_, part(block, k, numbers, count), reinterpret_cast<const float*>(made),
                    !result.run && result.scalar);
    }
  }

 private:
  struct Result {
    std::vector<std::size_t> leaves;
    KernelRun run;        // empty: the result is the only leaf as it is
    bool scalar = false;  // and that is one number
  };

  std::size_t slots() const { return rule_->slots().size(); }
  Rows part(const RowBlock& block, std::size_t k, const std::int64_t* numbers,
            std::int64_t count) const {
    float* const base =
        reinterpret_cast<float*>(block.base) + static_cast<std::int64_t>(k) * block.slot_offset;
    return {base, block.row_stride, block.dim, count, numbers};
  }

  void send_constant(std::size_t node) {
    const Tensor& value = rule_->graph().nodes[node].attributes.get<Tensor>("value");
    auto memory = queue_.memory(value.bytes());
    queue_.driver().copy(queue_.stream(), Device::Direction::kIn, memory->data(), value.raw(),
                         value.bytes());
    constants_.emplace_back(node, std::move(memory));
  }

  // Where the value of an argument or a constant lies.
  const std::byte* at(std::size_t node) const {
    const Node& from = rule_->graph().nodes[node];
    if (from.op->effect == Effect::kArgument)
      return arguments_[static_cast<std::size_t>(from.attributes.get<std::int64_t>("index"))];
    const auto found = std::find_if(constants_.begin(), constants_.end(),
                                    [&](const auto& constant) { return constant.first == node; });
    return found->second->data();
  }

  // Trees are made for one number of elements, which seldom changes.
  void prepare(std::int64_t elements) {
    if (elements == elements_) return;
    elements_ = elements;
    const Graph& graph = rule_->graph();
    results_.clear();
    for (const ValueRef output : graph.outputs) {
      const TreeOf tree(graph, output, elements);
      Result result{tree.leaves(), {}, graph.type(output).shape.rank() == 0};
      if (!tree.tree().nodes.empty()) result.run = fuse(queue_, tree.tree());
      results_.push_back(std::move(result));
    }
    const std::size_t bytes = (1 + slots()) * static_cast<std::size_t>(elements) * sizeof(float);
    before_ = queue_.memory(bytes);
    after_ = queue_.memory(bytes);
  }

  void announce(const RowBlock& block, const RuleRates* rates, const std::int64_t* numbers,
                std::int64_t count, const std::byte* values) {
    if (!queue_.driver().watches()) return;
    std::vector<Range> reads{range(values, count * block.dim, sizeof(float)),
                             range(rates, 1, sizeof *rates)};
    std::vector<Range> writes;
    for (std::size_t k = 0; k <= slots(); ++k) {
      const auto* const base = reinterpret_cast<const float*>(block.base) +
                               static_cast<std::int64_t>(k) * block.slot_offset;
      writes.push_back(range(base, (block.rows - 1) * block.row_stride + block.dim, sizeof(float)));
    }
    reads.insert(reads.end(), writes.begin(), writes.end());
    for (const auto& [node, memory] : constants_) reads.push_back(range(memory->data(), 1, 4));
    if (numbers != nullptr) reads.push_back(range(numbers, count, sizeof *numbers));
    const std::int64_t all = static_cast<std::int64_t>(1 + slots()) * elements_;
    writes.push_back(range(before_->data(), all, sizeof(float)));
    writes.push_back(range(after_->data(), all, sizeof(float)));
    queue_.driver().announce(queue_.stream(), reads, writes);
  }

  Queue& queue_;
  std::shared_ptr<const CustomRule> rule_;
  std::vector<std::pair<std::size_t, std::shared_ptr<Memory>>> constants_;  // by node
  std::vector<const std::byte*> arguments_;
  std::int64_t elements_ = 0;
  std::vector<Result> results_;  // of the value and each slot
  // The value and the slots of the rows before and after, one behind another.
  std::shared_ptr<Memory> before_, after_;
};

}  // namespace

RuleRun prepare_custom_rule(Queue& queue, const UpdateRule& rule) {
  operations_of(rule);
  return [update = std::make_shared<CustomUpdate>(queue, rule.custom)](
             const RowBlock& block, const RuleRates* rates, const std::int64_t* numbers,
             std::int64_t count,
             const std::byte* values) { update->run(block, rates, numbers, count, values); };
}

}  // namespace cairn::cuda
