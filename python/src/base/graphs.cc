// Recorded functions as data, to be looked at; update rules; hash tables; gradients of one's own.
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core/graph/custom_gradient.h"
#include "core/graph/custom_rule.h"
#include "core/graph/graph.h"
#include "core/graph/op_def.h"
#include "core/graph/static_hash_table.h"
#include "fields.h"
#include "functions.h"
#include "graphs.h"
#include "values.h"

namespace cairn::python {
namespace {

// ---- graphs ----

nb::object object_of(const AttributeValue& value) {
  return std::visit(
      [](const auto& each) -> nb::object {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(each)>, Tensor>)
          return numpy_of(each);
        else
          return nb::cast(each);
      },
      value);
}

nb::dict dict_of(const Attributes& attributes) {
  nb::dict all;
  for (const auto& [name, value] : attributes.entries()) all[name.c_str()] = object_of(value);
  return all;
}

std::vector<std::string> texts_of(const std::vector<TensorType>& types) {
  std::vector<std::string> all;
  for (const TensorType& type : types) all.push_back(type.to_string());
  return all;
}

void bind_nodes(nb::module_& m) {
  nb::class_<ValueRef>(m, "ValueRef", "An output of a node.")
      .def_ro("node", &ValueRef::node, "The node's number.")
      .def_ro("output", &ValueRef::output, "Which of its outputs.")
      .def("__repr__", [](const ValueRef& of) {
        return str('%', of.node, of.output == 0 ? "" : str('.', of.output));
      });
  nb::class_<GraphVariable>(m, "GraphVariable", "A variable that a recorded function uses.")
      .def_ro("name", &GraphVariable::name)
      .def_prop_ro(
          "type", [](const GraphVariable& of) { return of.type.to_string(); },
          "\"float32[8, 16]\".")
      .def_ro("mirrored", &GraphVariable::mirrored, "Replicas in sync keep copies of it.");
  nb::class_<Node>(m, "Node", "An operation of a recorded function.")
      .def_prop_ro(
          "op", [](const Node& of) { return std::string(of.op->name); }, "\"matmul\".")
      .def_ro("inputs", &Node::inputs, "The values that it takes.")
      .def_prop_ro(
          "attributes", [](const Node& of) { return dict_of(of.attributes); },
          nb::sig("def attributes(self) -> dict[str, typing.Any]"))
      .def_prop_ro(
          "outputs", [](const Node& of) { return texts_of(of.outputs); },
          "The types of its values.")
      .def_prop_ro(
          "origin", [](const Node& of) { return of.origin.path_and_line(); },
          "The line that recorded it; empty: not known.")
      .def_ro("original", &Node::original,
              "Its number before others were put in front; -1: the same.");
}

nb::bytes bytes_of(const std::vector<std::byte>& bytes) {
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
std::vector<std::byte> bytes_from(const nb::bytes& bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.c_str());
  return {begin, begin + bytes.size()};
}

std::string hexadecimal(const GraphHash& hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : hash) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

void bind_graph(nb::module_& m) {
  nb::class_<Graph>(m, "Graph", R"(A recorded function: operations in the order of the program.

>>> strategy = cairn.OneDeviceStrategy()
>>> double = strategy.function(lambda x: x + x)
>>> [node.op for node in double.concrete(np.ones(3, "float32")).graph.nodes]
['argument', 'add'])")
      .def_prop_ro(
          "arguments", [](const Graph& of) { return texts_of(of.arguments); }, "Their types.")
      .def_ro("iterators", &Graph::iterators, "The columns of each dataset that it takes from.")
      .def_ro("variables", &Graph::variables)
      .def_ro("nodes", &Graph::nodes)
      .def_ro("outputs", &Graph::outputs)
      .def_ro("output_names", &Graph::output_names)
      .def(
          "type", [](const Graph& of, ValueRef value) { return of.type(value).to_string(); },
          "value"_a, "The type of a value.")
      .def("elements_taken", &Graph::elements_taken, "How many elements a run takes of each.")
      .def("updates_variables", &Graph::updates_variables)
      .def("assigns", &Graph::assigns, "Whether it changes variables other than by an optimizer.")
      .def(
          "serialize", [](const Graph& of) { return bytes_of(serialize(of)); },
          "Equal graphs give equal bytes.")
      .def("verify", &verify, "Raises ValueError where it cannot be run.")
      .def("to_text", &to_text, "A line for each operation.")
      .def("__str__", &to_text);
  m.def(
      "parse_graph", [](const nb::bytes& bytes) { return parse_graph(bytes_from(bytes)); },
      "bytes"_a, R"(The graph of what serialize() gave.

>>> double = cairn.OneDeviceStrategy().function(lambda x: 2.0 * x)
>>> graph = double.concrete(1.0).graph
>>> len(cairn.parse_graph(graph.serialize()).nodes) == len(graph.nodes)
True)");
  m.def(
      "content_hash",
      [](const nb::bytes& bytes) { return hexadecimal(content_hash(bytes_from(bytes))); },
      "bytes"_a,
      "The hash that names a function on every machine.\n\n>>> len(cairn.content_hash(b\"\"))\n32");
  using Concrete = ConcreteFunction;
  nb::class_<Concrete>(m, "ConcreteFunction", "A function, recorded for one kind of arguments.")
      .def_ro("graph", &Concrete::graph)
      .def_prop_ro(
          "bytes", [](const Concrete& of) { return bytes_of(of.bytes); }, "As it is sent.")
      .def_prop_ro(
          "hash", [](const Concrete& of) { return hexadecimal(of.hash); },
          "Equal hashes are equal functions, in whatever program and language.")
      .def_prop_ro("variables",
                   [](const Concrete& of) {
                     std::vector<VariableSpec> all;
                     for (const auto& each : of.variables) all.push_back(*each);
                     return all;
                   })
      .def_ro("takes_worker_index", &Concrete::takes_worker_index)
      .def_ro("replicas", &Concrete::replicas, "How many replicas in sync it runs.");
}

// ---- tables and gradients ----

void bind_hash_table(nb::module_& m) {
  nb::class_<StaticHashTable>(m, "StaticHashTable", R"(A dictionary that does not change.

>>> table = cairn.StaticHashTable(np.array(["a", "b"]), np.array([1, 2]), 0)
>>> table.lookup(np.array(["b", "z"])).numpy()
array([2, 0]))")
      .def(
          "__init__",
          [](StaticHashTable* self, ArrayLike keys, ArrayLike values, ArrayLike default_value) {
            const Tensor all = tensor_of(values.object);
            const Tensor missing = cast(Array(default_value), all.dtype()).eval();
            new (self) StaticHashTable({tensor_of(keys.object), all, missing});
          },
          "keys"_a, "values"_a, "default_value"_a)
      .def(
          "lookup", [](const StaticHashTable& of, ArrayLike keys) { return of.lookup(keys); },
          "keys"_a, "The value of each key, or the default.")
      .def_prop_ro("size", &StaticHashTable::size, "How many keys there are.");
}

void bind_custom_gradient(nb::module_& m) {
  m.def(
      "custom_gradient",
      [](ArrayList inputs, nb::object forward, nb::object backward) {
        const std::vector<Array> all = inputs;
        const auto y = [&](const std::vector<Array>& in) {
          const Tracing tracing;
          return array_of(forward(nb::cast(in)));
        };
        const auto grad = [function = share(backward)](
                              const Array& dy, const std::vector<Array>& in, const Array& out) {
          const Acquired here;
          const Tracing tracing;
          const nb::object made = nb::borrow(function->get())(dy, nb::cast(in), out);
          return std::vector<Array>(ArrayList{made});
        };
        return custom_gradient(all, y, grad);
      },
      "inputs"_a, "forward"_a, "backward"_a,
      nb::sig("def custom_gradient(inputs: collections.abc.Sequence[cairn.typing.ArrayLike], "
              "forward: collections.abc.Callable[[list[Array]], Array], backward: "
              "collections.abc.Callable[[Array, list[Array], Array], "
              "collections.abc.Sequence[Array]]) -> Array"),
      "forward(inputs), with backward(dy, inputs, y) as the gradients of the inputs.\n\n>>> "
      "cairn.custom_gradient([2.0], lambda xs: xs[0] * 3.0, lambda dy, xs, y: [dy]).item()\n6.0");
}

// ---- update rules ----

const Words<EqualIds>& equal_ids_words() {
  static const Words<EqualIds> words = {{"sum", EqualIds::kSum},
                                        {"last", EqualIds::kLast},
                                        {"product", EqualIds::kProduct},
                                        {"min", EqualIds::kMin},
                                        {"max", EqualIds::kMax}};
  return words;
}

std::vector<std::pair<std::string, float>> slots_of(const UpdateRule& rule) {
  std::vector<std::pair<std::string, float>> all;
  for (const SlotSpec& slot : rule_slots(rule))
    all.emplace_back(std::string(slot.name), slot.initial_value);
  return all;
}

const Words<RuleKind>& rule_kinds() {
  static const Words<RuleKind> words = {
      {"assign", RuleKind::kAssign},
      {"assign_add", RuleKind::kAssignAdd},
      {"assign_sub", RuleKind::kAssignSub},
      {"sgd", RuleKind::kSgd},
      {"momentum", RuleKind::kMomentum},
      {"adagrad", RuleKind::kAdagrad},
      {"adam", RuleKind::kAdam},
      {"lazy_adam", RuleKind::kLazyAdam},
      {"ftrl", RuleKind::kFtrl},
      {"momentum_table", RuleKind::kMomentumTable},
      {"rowwise_adagrad", RuleKind::kRowwiseAdagrad},
      {"rms_prop", RuleKind::kRmsProp},
      {"rms_prop_centered", RuleKind::kRmsPropCentered},
      {"rms_prop_momentum", RuleKind::kRmsPropMomentum},
      {"rms_prop_centered_momentum", RuleKind::kRmsPropCenteredMomentum},
      {"rms_prop_momentum_table", RuleKind::kRmsPropMomentumTable},
      {"rms_prop_centered_momentum_table", RuleKind::kRmsPropCenteredMomentumTable},
      {"amsgrad", RuleKind::kAmsgrad},
      {"adamax", RuleKind::kAdamax},
      {"adamax_table", RuleKind::kAdamaxTable},
      {"nadam", RuleKind::kNadam},
      {"adadelta", RuleKind::kAdadelta},
      {"adadelta_table", RuleKind::kAdadeltaTable},
      {"ftrl_table", RuleKind::kFtrlTable},
      {"assign_mul", RuleKind::kAssignMul},
      {"assign_div", RuleKind::kAssignDiv},
      {"assign_min", RuleKind::kAssignMin},
      {"assign_max", RuleKind::kAssignMax},
      {"custom", RuleKind::kCustom},
      {"lion", RuleKind::kLion},
      {"lion_table", RuleKind::kLionTable}};
  return words;
}

void bind_update_rule(nb::module_& m) {
  nb::class_<UpdateRule>(m, "UpdateRule", R"(How a variable's rows are changed by gradients.

>>> rule = cairn.optimizers.Adam().rule
>>> rule.name, [slot for slot, initial_value in rule.slots]
('adam', ['m', 'v']))")
      .def_prop_ro(
          "name", [](const UpdateRule& of) { return std::string(rule_name(of)); },
          "\"adam\"; of a program's own rule its name.")
      .def_prop_ro(
          "kind", [](const UpdateRule& of) { return word_of(of.kind, rule_kinds()); },
          "\"adam\", \"rms_prop_momentum\", ...; \"custom\" of a program's own.")
      .def_prop_ro(
          "constants", [](const UpdateRule& of) { return nb::cast(of.constants); },
          nb::sig("def constants(self) -> list[float]"))
      .def_prop_ro(
          "slots",
          [](const UpdateRule& of) {
            nb::list all;
            for (const auto& [name, value] : slots_of(of)) all.append(nb::make_tuple(name, value));
            return all;
          },
          nb::sig("def slots(self) -> list[tuple[str, float]]"),
          "What is kept beside each row, with its initial value.")
      .def(
          "slot_width",
          [](const UpdateRule& of, std::int64_t dim) { return slot_width(of.kind, dim); }, "dim"_a,
          "The numbers of a slot of a row of `dim` numbers.")
      .def_prop_ro(
          "is_kept", [](const UpdateRule& of) { return is_kept(of); },
          "Whether it is a program's own, which only keeps slots here.")
      .def_prop_ro(
          "is_table_rule", [](const UpdateRule& of) { return is_table_rule(of.kind); },
          "Whether a step changes rows that it does not name.")
      .def_prop_ro("reaches_every_part",
                   [](const UpdateRule& of) { return reaches_every_part(of.kind); })
      .def_prop_ro("moves_untouched_rows",
                   [](const UpdateRule& of) { return moves_untouched_rows(of.kind); })
      .def_prop_ro("is_assignment", [](const UpdateRule& of) { return is_assignment(of.kind); })
      .def_prop_ro(
          "equal_ids",
          [](const UpdateRule& of) { return word_of(equal_ids(of.kind), equal_ids_words()); },
          "How updates of one row in one step are combined: \"sum\", \"last\", ...")
      .def(
          "same_slots",
          [](const UpdateRule& of, const UpdateRule& other) { return same_slots(of, other); },
          "other"_a, "Whether both keep the same beside a row.")
      .def_prop_ro(
          "has_operations", [](const UpdateRule& of) { return has_operations(of); },
          "Whether it is a program's own, with its operations.")
      .def_prop_ro(
          "graph",
          [](const UpdateRule& of) -> std::optional<Graph> {
            if (!has_operations(of)) return std::nullopt;
            return operations_of(of).graph();
          },
          "The operations of a program's own.")
      .def(
          "verify_learning_rate",
          [](const UpdateRule& of, float learning_rate) {
            verify_learning_rate(of, learning_rate);
          },
          "learning_rate"_a, "Raises ValueError where the rule cannot take such a rate.")
      .def(
          "verify", [](const UpdateRule& of) { verify_rule(of); },
          "Raises ValueError where its constants are not possible.")
      .def(
          "__eq__", [](const UpdateRule& a, const UpdateRule& b) { return a == b; },
          nb::is_operator(), "other"_a, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__",
           [](const UpdateRule& of) { return str("<cairn.UpdateRule \"", rule_name(of), "\">"); });
  m.def("counter_rule", &counter_rule,
        "The rule of counters: rows are added to.\n\n>>> cairn.counter_rule()\n<cairn.UpdateRule "
        "\"assign_add\">");
  m.def("eviction_rule", &eviction_rule,
        "The rule by which rows go.\n\n>>> cairn.eviction_rule()\n<cairn.UpdateRule \"assign\">");
}

}  // namespace

void bind_graphs(nb::module_& m) {
  bind_nodes(m);
  bind_graph(m);
  bind_hash_table(m);
  bind_custom_gradient(m);
  bind_update_rule(m);
}

}  // namespace cairn::python
