#include "core/exec/executor.h"
#include "core/rows/local_store.h"
#include "tests/fuzz/refusal.h"

namespace cairn::fuzz {
namespace {

constexpr std::int64_t kElementsMax = 4096;      // of one argument or variable
constexpr std::size_t kRunBytesMax = 256 << 10;  // of a run: an execution should take milliseconds
constexpr std::int64_t kTakenMax = 8;            // elements of an iterator

// A value of the type with 2 where a dimension may be anything; undefined: too large to try.
Tensor value_of(const TensorType& type) {
  std::vector<std::int64_t> dims = type.shape.dims();
  std::int64_t elements = 1;
  for (std::int64_t& dim : dims) {
    if (dim == Shape::kUnknown) dim = 2;
    if (dim > kElementsMax) return {};
    elements *= std::max<std::int64_t>(dim, 1);
    if (elements > kElementsMax) return {};
  }
  const Shape shape(dims);
  if (type.dtype == DType::kString)
    return Tensor::strings(
        shape, std::vector<std::string>(static_cast<std::size_t>(shape.elements()), "a"));
  return Tensor::zeros(type.dtype, shape);
}

// False: some value is too large to try.
bool values_of(const std::vector<TensorType>& types, std::vector<Tensor>& values) {
  for (const TensorType& type : types) {
    values.push_back(value_of(type));
    if (!values.back().defined()) return false;
  }
  return true;
}

bool elements_of(const Graph& graph, std::vector<std::vector<Element>>& elements) {
  const std::vector<std::int64_t> taken = graph.elements_taken();
  for (std::size_t i = 0; i < taken.size(); ++i) {
    std::vector<TensorType> types;
    for (const ColumnSpec& column : graph.iterators[i].columns) types.push_back(column.type);
    Element element;
    if (taken[i] > kTakenMax || !values_of(types, element)) return false;
    elements.emplace_back(static_cast<std::size_t>(taken[i]), element);
  }
  return true;
}

bool variables_of(const Graph& graph, LocalStore& store, std::vector<VariableId>& bound) {
  for (const GraphVariable& variable : graph.variables) {
    if (!value_of(variable.type).defined()) return false;
    VariableSpec spec{
        .name = variable.name, .dtype = variable.type.dtype, .shape = variable.type.shape};
    bound.push_back(store.create(std::make_shared<const VariableSpec>(std::move(spec))));
  }
  return true;
}

// The slots that a coordinator would have declared.
void add_slots(const std::shared_ptr<const Plan>& plan, LocalStore& store,
               const std::vector<VariableId>& bound) {
  for (const Node& node : plan_graph(*plan).nodes)
    if (node.op != nullptr && node.attributes.entries().size() >= 2)
      for (const auto& [name, value] : node.attributes.entries())
        if (const auto* rule = std::get_if<UpdateRule>(&value))
          may_refuse([&] {
            store.add_slots(
                bound.at(static_cast<std::size_t>(node.attributes.get<std::int64_t>("variable"))),
                *rule);
          });
}

}  // namespace

void graph(Bytes input) {
  may_refuse([&] {
    Graph parsed = parse_graph(input);
    to_text(parsed);
    CAIRN_CHECK(serialize(parse_graph(serialize(parsed))) == serialize(parsed),
                "a graph changes when it is written again");
    LocalStore store;
    std::vector<VariableId> bound;
    std::vector<Tensor> arguments;
    std::vector<std::vector<Element>> elements;
    if (!variables_of(parsed, store, bound) || !values_of(parsed.arguments, arguments) ||
        !elements_of(parsed, elements))
      return;
    const auto plan = make_plan(std::move(parsed), bound, {.bytes_max = kRunBytesMax});
    add_slots(plan, store, bound);
    Workspace workspace;
    run(plan, workspace, store, {}, std::move(arguments), std::move(elements));
  });
}

}  // namespace cairn::fuzz
