// Reverse-mode differentiation, from graph to graph: the chain rule applied to recorded nodes from
// the loss backwards.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/graph/function.h"
#include "core/graph/infer.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using NodePtr = const ArrayNode*;

// Nodes that the values are computed from, or from which a gradient of them could come, in the
// order they were recorded.
std::vector<std::shared_ptr<const ArrayNode>> ancestors(const std::vector<Array>& values) {
  std::unordered_set<NodePtr> seen;
  std::vector<std::shared_ptr<const ArrayNode>> all;
  for (const Array& value : values)
    if (seen.insert(value.node().get()).second) all.push_back(value.node());
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto node = all[i];
    for (const auto* inputs : {&node->inputs, &node->sources()})
      for (const Array& input : *inputs)
        if (seen.insert(input.node().get()).second) all.push_back(input.node());
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a->sequence < b->sequence; });
  return all;
}

// Reverse accumulation (Griewank and Walther, "Evaluating Derivatives", chapter 3). Nodes are
// visited against the order in which they were recorded. That order is topological, so when a
// node's turn comes, everything that reads it has contributed to its gradient already.
class Reverse {
 public:
  Reverse(const Array& loss, std::vector<std::shared_ptr<const ArrayNode>> nodes,
          const std::unordered_set<NodePtr>& targets)
      : nodes_(std::move(nodes)) {
    mark_relevant(targets);
    if (relevant_.count(loss.node().get())) add(loss, float_constant(1.0f));
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) propagate(*node);
  }

  // Undefined if the loss does not depend on it.
  Array gradient(const Array& of) const { return total({of.node().get(), of.output()}); }

 private:
  using Key = std::pair<NodePtr, int>;

  // Nodes through which a gradient reaches a target.
  void mark_relevant(const std::unordered_set<NodePtr>& targets) {
    for (const auto& node : nodes_) {
      const std::vector<Array>& sources = node->sources();
      bool passes = node->passes_gradients() &&
                    std::any_of(sources.begin(), sources.end(), [&](const Array& input) {
                      return relevant_.count(input.node().get()) > 0;
                    });
      if (passes) passing_.insert(node.get());
      if (passes || targets.count(node.get())) relevant_.insert(node.get());
    }
  }

  void add(const Array& value, const Array& gradient) {
    parts_[{value.node().get(), value.output()}].push_back(gradient);
  }

  // By the sum rule: a value that is used several times gets the sum over its uses.
  Array total(const Key& key) const {
    auto found = parts_.find(key);
    if (found == parts_.end()) return {};
    Array sum = found->second[0];
    for (std::size_t i = 1; i < found->second.size(); ++i) sum = sum + found->second[i];
    return sum;
  }

  void propagate(const std::shared_ptr<const ArrayNode>& node) {
    if (!passing_.count(node.get())) return;
    const bool each = node->op->has(OpFlags::kGradientOfEachOutput);
    const int outputs = each ? static_cast<int>(node->outputs.size()) : 1;
    for (int output = 0; output < outputs; ++output) propagate(node, output);
  }

  void propagate(const std::shared_ptr<const ArrayNode>& node, int output) {
    Array y(node, output), dy = total({node.get(), output});
    if (!dy.defined()) return;
    // The sum is recorded once; who asks for this gradient later gets the same node.
    parts_[{node.get(), output}] = {dy};
    const std::vector<Array>& sources = node->sources();
    const OriginScope origin(node->origin);
    std::vector<Array> gradients =
        node->derivative ? node->derivative->backward(dy, sources, y) : node->op->gradient(y, dy);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Array& input = sources[i];
      if (!gradients[i].defined() || !relevant_.count(input.node().get())) continue;
      CAIRN_CHECK(gradients[i].dtype() == input.dtype() &&
                      infer::shapes_agree(gradients[i].shape(), input.shape()),
                  "the gradient of ", node->op->name, " for input ", i, ", ",
                  input.type().to_string(), ", is ", gradients[i].type().to_string());
      add(input, gradients[i]);
    }
  }

  std::vector<std::shared_ptr<const ArrayNode>> nodes_;
  std::unordered_set<NodePtr> relevant_, passing_;
  std::map<Key, std::vector<Array>> parts_;
};

void check_loss(const Array& loss) {
  if (!loss.defined() || loss.dtype() != DType::kFloat32 || loss.rank() != 0)
    throw InvalidArgumentError(str("grad: the loss is ",
                                   loss.defined() ? loss.type().to_string() : "undefined",
                                   "; a scalar float32 is wanted (see mean)"));
}

// All uses of one variable that the loss depends on.
struct Uses {
  Variable variable;
  std::vector<Array> reads, gathers;
};

// Only float32 variables can be learnt. A variable is known by its name, under which each function
// reads it through nodes of its own.
std::vector<Uses> variable_uses(const std::vector<std::shared_ptr<const ArrayNode>>& nodes,
                                const std::vector<Variable>& wanted) {
  std::vector<Uses> all;
  for (const auto& node : nodes) {
    if (node->op->effect != Effect::kRead || node->variable->dtype != DType::kFloat32) continue;
    auto is_it = [&](const Variable& v) { return v.name() == node->variable->name; };
    bool counts = wanted.empty() ? node->variable->trainable
                                 : std::any_of(wanted.begin(), wanted.end(), is_it);
    if (!counts) continue;
    auto found =
        std::find_if(all.begin(), all.end(), [&](const Uses& u) { return is_it(u.variable); });
    if (found == all.end())
      found = all.insert(all.end(), Uses{Variable(node->variable, node->runtime), {}, {}});
    (node->inputs.empty() ? found->reads : found->gathers).emplace_back(node, 0);
  }
  return all;
}

// int64 [n], whatever shape and width the ids had.
Array flat_ids(const Array& gather) {
  Array ids = cast(gather.node()->inputs[0], DType::kInt64);
  return ids.rank() == 1 ? ids : reshape(ids, {Shape::kUnknown});
}

Array flat_rows(const Array& gather, const Array& dy, const Shape& variable) {
  return gather.node()->inputs[0].rank() == 1 ? dy
                                              : reshape(dy, variable.with_dim(0, Shape::kUnknown));
}

Array joined(const std::vector<Array>& parts) {
  return parts.size() == 1 ? parts[0] : concat(parts, 0);
}

// The derivative of a gather is sparse: rows beside the ids that they came from, of which equal
// ones add up. Beside a read of the whole variable it would not stay sparse, so it is added into
// that.
VariableGradient variable_gradient(const Uses& uses, const Reverse& reverse) {
  const Shape& shape = uses.variable.shape();
  VariableGradient made{uses.variable, {}, {}};
  std::vector<Array> ids, rows;
  auto add_dense = [&](const Array& part) {
    made.dense = made.dense.defined() ? made.dense + part : part;
  };
  for (const Array& read : uses.reads)
    if (Array dy = reverse.gradient(read); dy.defined()) add_dense(dy);
  for (const Array& gather : uses.gathers) {
    Array dy = reverse.gradient(gather);
    if (!dy.defined()) continue;
    ids.push_back(flat_ids(gather));
    rows.push_back(flat_rows(gather, dy, shape));
  }
  if (ids.empty()) return made;
  if (made.dense.defined())
    add_dense(gather_grad(joined(rows), joined(ids), uses.reads[0]));
  else
    made.sparse = {joined(ids), joined(rows), shape};
  return made;
}

}  // namespace

std::vector<Array> grad(const Array& loss, const std::vector<Array>& wrt) {
  check_loss(loss);
  std::unordered_set<NodePtr> targets;
  for (const Array& array : wrt) {
    if (!array.defined())
      throw InvalidArgumentError("grad: an Array to differentiate by has no value");
    targets.insert(array.node().get());
  }
  Reverse reverse(loss, ancestors({loss}), targets);
  std::vector<Array> gradients;
  for (const Array& array : wrt) gradients.push_back(reverse.gradient(array));
  return gradients;
}

std::vector<Variable> variables_read(const std::vector<Array>& values) {
  std::vector<Variable> read;
  std::unordered_set<std::string> seen;
  for (const auto& node : ancestors(values))
    if (node->op->effect == Effect::kRead && seen.insert(node->variable->name).second)
      read.emplace_back(node->variable, node->runtime);
  return read;
}

std::vector<VariableGradient> variable_gradients(const Array& loss,
                                                 const std::vector<Variable>& variables) {
  check_loss(loss);
  auto nodes = ancestors({loss});
  std::vector<Uses> uses = variable_uses(nodes, variables);
  std::unordered_set<NodePtr> targets;
  for (const Uses& of : uses) {
    for (const Array& read : of.reads) targets.insert(read.node().get());
    for (const Array& gather : of.gathers) targets.insert(gather.node().get());
  }
  Reverse reverse(loss, std::move(nodes), targets);
  std::vector<VariableGradient> gradients;
  for (const Uses& of : uses) {
    VariableGradient made = variable_gradient(of, reverse);
    made.loss = loss;
    if (made.dense.defined() || made.is_sparse()) gradients.push_back(std::move(made));
  }
  return gradients;
}

}  // namespace cairn
