// Decides which node is computed inside which: trees of elementwise operations, and the dtype in
// which each of their values lies in memory.
#include <algorithm>

#include "core/exec/bind.h"
#include "core/graph/op_def.h"

namespace cairn {
namespace {

// of one tree: bounds its registers and the recursion that builds it
constexpr std::int32_t kFusedNodesMax = 64;

// Rows of the result need the same rows of the first matrix alone.
bool is_product_by_rows(const Node& node) {
  return node.op->has(OpFlags::kMatrixProduct) && !node.attributes.get<bool>("transpose_a");
}

bool is_broadcast(const Node& node) { return node.op->has(OpFlags::kBroadcast); }

}  // namespace

// By value, its only reader. A node that needs the shape alone does not read the value, nor does a
// node that the plan does not run; an output of the graph counts as a reader.
void Binder::find_consumers() {
  runs_.assign(plan_.graph.nodes.size(), false);
  for (const Wave& wave : plan_.waves) {
    for (const auto* nodes : {&wave.compute, &wave.updates, &wave.reductions})
      for (std::int32_t i : *nodes) runs_[static_cast<std::size_t>(i)] = true;
    for (const ReadGroup& group : wave.reads)
      for (std::int32_t i : group.nodes) runs_[static_cast<std::size_t>(i)] = true;
  }
  consumer_.assign(plan_.values(), -1);
  std::vector<std::int32_t> readers(plan_.values(), 0);
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (!runs_[i]) continue;
    const Node& n = plan_.graph.nodes[i];
    for (std::size_t k = 0; k < n.inputs.size(); ++k) {
      if (n.op->needs_shape_only(k)) continue;
      const auto value = static_cast<std::size_t>(plan_.value(n.inputs[k]));
      consumer_[value] = static_cast<std::int32_t>(i);
      ++readers[value];
    }
  }
  for (ValueRef out : plan_.graph.outputs) ++readers[static_cast<std::size_t>(plan_.value(out))];
  for (std::size_t v = 0; v < consumer_.size(); ++v)
    if (readers[v] != 1) consumer_[v] = -1;
}

// Elementwise nodes whose only consumer is elementwise and of the same shape are computed inside
// it, and so is one product a tree. Of a value that is only stretched for it, the consumer reads
// the value as it was before.
void Binder::mark_absorbed(const Wave& wave) {
  in_wave_.assign(plan_.graph.nodes.size(), false);
  if (fusion_ == nullptr) return;
  for (std::int32_t i : wave.compute) in_wave_[static_cast<std::size_t>(i)] = true;
  for (std::int32_t i : wave.compute) {
    auto at = static_cast<std::size_t>(i);
    if (is_product_by_rows(node(i))) product_of_[at] = i;
    std::int32_t value = plan_.value_base[at];
    const bool inside = product_of_[at] == i || is_elementwise(node(i)) || is_broadcast(node(i));
    if (!inside || bound_.root(value) != value) continue;
    std::int32_t consumer = consumer_[static_cast<std::size_t>(value)];
    if (consumer < 0 || !in_wave_[static_cast<std::size_t>(consumer)] ||
        !is_elementwise(node(consumer)))
      continue;
    std::int32_t made = plan_.value_base[static_cast<std::size_t>(consumer)];
    std::int32_t& size = fused_nodes_[static_cast<std::size_t>(consumer)];
    std::int32_t& product = product_of_[static_cast<std::size_t>(consumer)];
    bool fits = size + fused_nodes_[at] <= kFusedNodesMax &&
                bound_.type(made).shape == bound_.type(value).shape;
    if (!fits || bound_.root(made) != made || (product_of_[at] >= 0 && product >= 0)) continue;
    absorbed_into_[at] = consumer;
    size += fused_nodes_[at];
    if (product_of_[at] >= 0) product = product_of_[at];
  }
}

// Appends the nodes that are computed inside `i`, and then `i`; their inputs from outside of the
// tree become its leaves.
void Binder::add_to_tree(std::int32_t i, FusedTree& tree, Instruction& made) const {
  const Node& n = node(i);
  FusedTree::Node step{n.op, {}, {}, bound_.type(plan_.value({i, 0})).dtype};
  for (ValueRef in : n.inputs) {
    const bool inside = absorbed_into_[static_cast<std::size_t>(in.node)] == i;
    const bool stretched = inside && is_broadcast(node(in.node));
    const std::int32_t v = plan_.value(stretched ? node(in.node).inputs[0] : in);
    step.inputs.push_back(bound_.type(v).dtype);
    if (!inside || stretched) {
      step.operands.push_back({FusedTree::Kind::kLeaf, static_cast<int>(tree.leaves.size())});
      tree.leaves.push_back(bound_.stored_type(v));
      made.inputs.push_back(v);
    } else if (is_product_by_rows(node(in.node))) {
      step.operands.push_back({FusedTree::Kind::kProduct, 0});
    } else {
      add_to_tree(in.node, tree, made);
      step.operands.push_back({FusedTree::Kind::kNode, static_cast<int>(tree.nodes.size()) - 1});
    }
  }
  tree.nodes.push_back(std::move(step));
}

// The product's matrices come behind the leaves, where the fused kernel expects them.
void Binder::emit_fused(std::int32_t top) {
  const std::int32_t value = plan_.value({top, 0});
  const std::int32_t product = product_of_[static_cast<std::size_t>(top)];
  FusedTree tree;
  tree.result = bound_.stored_type(value);
  tree.products = plan_.options.products;
  tree.deterministic = plan_.options.deterministic;
  Instruction made{top, {}, {}, {value}};
  add_to_tree(top, tree, made);
  if (product >= 0) {
    const Node& n = node(product);
    for (ValueRef in : n.inputs) made.inputs.push_back(plan_.value(in));
    for (std::size_t k = 0; k < 2; ++k)
      tree.factors[k] = bound_.stored_type(plan_.value(n.inputs[k])).dtype;
    const Shape &a = input_type(n, 0).shape, &c = bound_.type(value).shape;
    tree.product = {
        c[0], c[1], a[1], false, n.attributes.get<bool>("transpose_b"), plan_.rows_alike};
  }
  made.run = fusion_->prepare(tree);
  into_->compute.push_back(std::move(made));
}

}  // namespace cairn
