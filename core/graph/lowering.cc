#include "core/graph/lowering.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

namespace cairn {
namespace {

using NodePtr = const ArrayNode*;

// Larger constants are compared by their buffer, not by their bytes.
constexpr std::size_t kComparedBytesMax = 1u << 16;

// Lists the nodes that outputs and effects depend on, in the order of recording, which is program
// order. A value that was read eagerly becomes a constant, so nothing behind it is visited. The
// walk keeps its own stack, because a recorded chain may be far longer than the thread's stack
// allows.
std::vector<NodePtr> reachable(const Lowering& request) {
  std::unordered_set<NodePtr> seen;
  std::vector<NodePtr> pending, all;
  auto visit = [&](NodePtr node) {
    if (seen.insert(node).second) pending.push_back(node);
  };
  for (const auto& effect : request.effects) visit(effect.get());
  for (const auto& [name, output] : request.outputs) visit(output.node().get());
  while (!pending.empty()) {
    NodePtr node = pending.back();
    pending.pop_back();
    all.push_back(node);
    if (node->value.defined()) continue;
    for (const Array& input : node->inputs) visit(input.node().get());
  }
  std::sort(all.begin(), all.end(), [](NodePtr a, NodePtr b) { return a->sequence < b->sequence; });
  return all;
}

template <typename T>
void append_raw(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The length goes first, so that two keys cannot meet by shifting bytes from one field to the next.
void append_text(std::string& key, std::string_view text) {
  append_raw(key, text.size());
  key.append(text);
}

void append_value(std::string& key, const Tensor& tensor) {
  append_text(key, tensor.type().to_string());
  if (tensor.dtype() == DType::kString) {
    for (const auto& text : tensor.string_values()) append_text(key, text);
  } else if (tensor.bytes() <= kComparedBytesMax) {
    key.append(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
  } else {
    append_raw(key, tensor.raw());
  }
}
void append_value(std::string& key, const std::string& text) { append_text(key, text); }
void append_value(std::string& key, const std::vector<std::int64_t>& numbers) {
  append_raw(key, numbers.size());
  for (std::int64_t n : numbers) append_raw(key, n);
}
void append_value(std::string& key, const UpdateRule& rule) {
  append_raw(key, rule.kind);
  append_raw(key, rule.constants);
  append_raw(key, rule.custom.get());
}
template <typename T>
requires std::is_arithmetic_v<T>
void append_value(std::string& key, T number) { append_raw(key, number); }

// Equal keys mean equal values: the operation, what it is given, and for reads how often the
// variable was updated before.
std::string node_key(const Node& node, std::uint64_t updates) {
  std::string key;
  append_raw(key, node.op);
  append_raw(key, updates);
  append_raw(key, node.inputs.size());
  for (ValueRef input : node.inputs) append_raw(key, input);
  for (const auto& [name, value] : node.attributes.entries()) {
    append_text(key, name);
    append_raw(key, value.index());
    std::visit([&](const auto& typed) { append_value(key, typed); }, value);
  }
  return key;
}

class Emitter {
 public:
  explicit Emitter(const Lowering& request) : request_(request) {
    made_.graph.arguments = request.arguments;
    made_.graph.iterators = request.iterators;
  }

  ConcreteFunction run() {
    for (NodePtr node : reachable(request_)) emit(*node);
    for (const auto& [name, output] : request_.outputs) {
      made_.graph.outputs.push_back(place(output));
      made_.graph.output_names.push_back(name);
    }
    return std::move(made_);
  }

 private:
  // Nodes come in the order of recording, so an input always has its place already.
  ValueRef place(const Array& array) const {
    return {places_.at(array.node().get()), array.output()};
  }

  void emit(const ArrayNode& from) {
    Node node{from.op, {}, from.attributes, from.outputs, from.origin};
    std::uint64_t updates = 0;
    if (from.value.defined()) {
      node = {find_op("constant"), {}, {{"value", from.value}}, {from.value.type()}, from.origin};
    } else {
      check_trace(from);
      for (const Array& input : from.inputs) node.inputs.push_back(place(input));
      if (from.variable) updates = bind_variable(from, node);
    }
    places_[&from] = insert(std::move(node), updates);
  }

  // Effects belong to the function in whose trace they were recorded; values without effects may
  // come from anywhere and are computed again here.
  void check_trace(const ArrayNode& node) const {
    if (node.op->effect == Effect::kNone || node.trace == request_.trace) return;
    if (request_.trace == 0)
      throw FailedPreconditionError(str("eval: the value depends on \"", node.op->name,
                                        "\" of a function being traced; return it from there"));
    throw FailedPreconditionError(str("the function uses \"", node.op->name,
                                      "\" of another function; pass the value as an argument"));
  }

  // Returns how many updates of the variable came before.
  std::uint64_t bind_variable(const ArrayNode& from, Node& node) {
    auto [found, added] = variable_places_.emplace(from.variable->name, made_.variables.size());
    TensorType type{from.variable->dtype, from.variable->shape};
    if (added) {
      made_.graph.variables.push_back({from.variable->name, type, false});
      made_.variables.push_back(from.variable);
      updates_.push_back(0);
    } else if (made_.graph.variables[found->second].type != type) {
      throw InvalidArgumentError(
          str("the function uses two variables of the name \"", from.variable->name, "\""));
    }
    node.attributes.set("variable", static_cast<std::int64_t>(found->second));
    bool& mirrored = made_.graph.variables[found->second].mirrored;
    mirrored = mirrored || from.mirrored;
    std::uint64_t& count = updates_[found->second];
    return from.op->effect == Effect::kUpdate ? count++ : count;
  }

  // Common subexpressions become one node by value numbering. Updates and advances are never
  // shared, because each of them happens; reads are, between two updates of their variable. Nor are
  // all-reduces: two that are equal on one replica may differ on another, which has another number,
  // and all replicas must make as many.
  std::int32_t insert(Node node, std::uint64_t updates) {
    const Effect effect = node.op->effect;
    bool shared =
        effect != Effect::kUpdate && effect != Effect::kAdvance && effect != Effect::kAllReduce;
    auto next = static_cast<std::int32_t>(made_.graph.nodes.size());
    if (shared) {
      auto [found, added] = known_.emplace(node_key(node, updates), next);
      if (!added) return found->second;
    }
    made_.graph.nodes.push_back(std::move(node));
    return next;
  }

  const Lowering& request_;
  ConcreteFunction made_;
  std::unordered_map<NodePtr, std::int32_t> places_;
  std::unordered_map<std::string, std::int32_t> known_;
  std::unordered_map<std::string, std::size_t> variable_places_;
  std::vector<std::uint64_t> updates_;  // beside made_.variables
};

}  // namespace

ConcreteFunction lower(const Lowering& request) {
  for (const auto& [name, output] : request.outputs)
    if (!output.defined())
      throw InvalidArgumentError(str("the output \"", name, "\" is an Array without a value"));
  return Emitter(request).run();
}

}  // namespace cairn
