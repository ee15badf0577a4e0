// Graph: a traced function as data. No code in it, so it can be sent, verified, hashed,
// differentiated and planned.
//
// Nodes stand in program order, which is a topological order: a node's inputs name earlier nodes
// only. Effects (reads and updates of variables, iterator advances) are nodes too, and their order
// for each variable is their meaning: a read after an update sees it.
#pragma once
#include <array>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/origin.h"
#include "core/graph/update_rule.h"
#include "core/tensor/element.h"
#include "core/tensor/tensor.h"

namespace cairn {

struct OpDef;  // core/graph/op_def.h: an operation's name, type rule and gradient

using AttributeValue = std::variant<std::int64_t, double, bool, std::string,
                                    std::vector<std::int64_t>, Tensor, UpdateRule>;

// Few, named, sorted by name so that equal graphs have equal bytes.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> entries);
  void set(std::string name, AttributeValue value);
  template <typename T>
  const T& get(std::string_view name) const;  // InvalidArgument: absent, or of another type
  template <typename T>
  T get_or(std::string_view name, T otherwise) const;
  const std::vector<std::pair<std::string, AttributeValue>>& entries() const { return entries_; }

 private:
  const AttributeValue* find(std::string_view name) const;
  std::vector<std::pair<std::string, AttributeValue>> entries_;
};

// Output `output` of node `node`.
struct ValueRef {
  std::int32_t node = 0;
  std::int32_t output = 0;
  bool operator==(const ValueRef&) const = default;
};

// One operation: its inputs, its attributes, and the types of its outputs. The types are stored, so
// that a graph can be read without the rules by which they follow.
struct Node {
  const OpDef* op = nullptr;
  std::vector<ValueRef> inputs;
  Attributes attributes;
  std::vector<TensorType> outputs;
  // Neither is in the graph's bytes or hash: where it was recorded, and the number that it had
  // before nodes were put in front of it in this process (-1: the one that it has).
  Origin origin = {};
  std::int32_t original = -1;
};

// The effects' operations, by name, with what their nodes carry:
//   "argument"         attribute index: the plain argument -> its value
//   "iterator_next"    attribute iterator: which iterator argument -> a value per column of its
//                      ElementSpec
//   "read_variable"    attribute variable: index in Graph::variables -> the whole value
//   "gather_variable"  attribute variable; input ids -> [ids..., row shape]
//   "update_variable"  attributes variable, rule (UpdateRule), sparse (bool); inputs: value | ids,
//                      rows; then learning_rate if the rule is no assignment -> nothing
//   "update_shared"    the same, with the attribute shares (the name of an Aggregation): of each
//                      replica in sync its share of one update
//   "all_reduce"       attribute reduction ("sum" or "mean"); inputs: values of this replica -> as
//                      many of the same types: those of all replicas, reduced element by element
struct GraphVariable {
  std::string name;  // unique in a strategy; the receiver finds the variable's place by it
  TensorType type;
  // Replicas in sync that each run the graph keep copies of the variable, and all of them make the
  // same updates of it. The strategy that traced the graph decides so (HybridStrategy).
  bool mirrored = false;
  bool operator==(const GraphVariable&) const = default;
};

// Arguments and iterators are what a caller brings for each run, variables what the store holds.
struct Graph {
  std::vector<TensorType> arguments;
  std::vector<ElementSpec> iterators;
  std::vector<GraphVariable> variables;
  std::vector<Node> nodes;
  std::vector<ValueRef> outputs;
  std::vector<std::string> output_names;  // beside outputs; empty names for plain results

  const TensorType& type(ValueRef value) const {
    return nodes[static_cast<std::size_t>(value.node)]
        .outputs[static_cast<std::size_t>(value.output)];
  }
  // How many elements of iterator argument i one run takes.
  std::vector<std::int64_t> elements_taken() const;
  bool updates_variables() const;
  // updates a variable other than through an optimizer's rule: such a function runs at depth 1
  bool assigns() const;
};

// ---- Serialisation (Cap'n Proto, core/graph/graph.capnp) ----

inline constexpr std::size_t kGraphBytesMax = 64u << 20;
inline constexpr std::size_t kGraphNodesMax = 1u << 20;

using GraphHash = std::array<std::uint8_t, 16>;

// Equal graphs give equal bytes. Thread: any.
std::vector<std::byte> serialize(const Graph& graph);
// 128 bits of a hash over the bytes; names a function on the wire. Not a defence against a forger:
// the token is.
GraphHash content_hash(std::span<const std::byte> bytes);
// Reads and verifies: every operation known, every reference backwards, every type as the
// operation's rule infers it, sizes within the limits. InvalidArgument naming the node otherwise;
// nothing is allocated on a sender's word alone.
Graph parse_graph(std::span<const std::byte> bytes);
// The same checks on a graph in memory.
void verify(const Graph& graph);
std::string to_text(const Graph& graph);  // a line a node, for people

// ---- Errors that are met at a node ----

// Node `number` of the graph as errors name it.
ErrorPlace place_of(const Graph& graph, std::int32_t number);
// Throws the error that node `number` ran into. The message is preceded by the node's origin, or by
// "node 3" if the origin is not known.
[[noreturn]] void fail_at(const Graph& graph, std::int32_t number, Code code,
                          const std::string& message);
// Returns the error with the origin of its node (ErrorPlace) added, or unchanged if `graph` has no
// origin for that node.
std::exception_ptr with_origin(std::exception_ptr error, const Graph& graph);

// ---- templates ----
template <typename T>
const T& Attributes::get(std::string_view name) const {
  const AttributeValue* value = find(name);
  if (value == nullptr) throw InvalidArgumentError(str("the attribute \"", name, "\" is missing"));
  const T* typed = std::get_if<T>(value);
  if (typed == nullptr)
    throw InvalidArgumentError(
        str("the attribute \"", name, "\" has another type than its operation wants"));
  return *typed;
}
template <typename T>
T Attributes::get_or(std::string_view name, T otherwise) const {
  return find(name) == nullptr ? otherwise : get<T>(name);
}

}  // namespace cairn
