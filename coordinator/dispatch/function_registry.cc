#include "coordinator/dispatch/function_registry.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/exec/plan.h"

namespace cairn {

// The numbers that variables have in a store do not matter to the cut.
std::uint64_t count_pushes(const Graph& graph) {
  std::vector<VariableId> numbers(graph.variables.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<VariableId>(i);
  const Plan plan(graph, std::move(numbers), {});
  std::uint64_t pushes = 0;
  for (const Wave& wave : plan.waves) pushes += wave.updates.empty() ? 0 : 1;
  return std::max<std::uint64_t>(pushes, 1);
}

namespace {

// Workers know both as one function, but an error must name the lines of the one scheduled.
std::shared_ptr<const RegisteredFunction> with_own_origins(
    const std::shared_ptr<const RegisteredFunction>& known,
    std::shared_ptr<const ConcreteFunction> concrete) {
  const auto is_known = [](const Node& node) { return node.origin.known(); };
  if (known->concrete == concrete || std::ranges::none_of(concrete->graph.nodes, is_known))
    return known;
  auto own = std::make_shared<RegisteredFunction>(*known);
  own->concrete = std::move(concrete);
  return own;
}

// The hash of their serialised graph identifies functions: a lambda that is wrapped anew in each
// round of a loop, but records the same graph, is sent to a lane once.
std::string key_of(const ConcreteFunction& concrete) {
  return {reinterpret_cast<const char*>(concrete.hash.data()), concrete.hash.size()};
}

}  // namespace

std::shared_ptr<const RegisteredFunction> FunctionRegistry::add(
    std::shared_ptr<const ConcreteFunction> concrete, const std::string& name,
    const VariableRegistry& variables) {
  std::lock_guard hold(mutex_);
  if (auto known = functions_.find(key_of(*concrete)); known != functions_.end())
    return with_own_origins(known->second, std::move(concrete));
  variables.require_own(concrete->variables);
  return keep(next_, std::move(concrete), name);
}

std::shared_ptr<const RegisteredFunction> FunctionRegistry::find_again(
    const journal::FunctionMade& made, const Layout& layout) {
  auto concrete = std::make_shared<ConcreteFunction>();
  try {
    concrete->graph = parse_graph(made.graph);
  } catch (const InvalidArgumentError& error) {
    throw DataLossError(str("function \"", made.name, "\" of the journal: ", error.what()));
  }
  concrete->bytes = made.graph;
  concrete->hash = content_hash(concrete->bytes);
  concrete->takes_worker_index = made.takes_worker_index;
  concrete->replicas = made.replicas;
  for (const GraphVariable& variable : concrete->graph.variables) {
    const VariableLayout* found = layout.find(variable.name);
    if (found == nullptr)
      throw DataLossError(str("function \"", made.name, "\" of the journal uses variable \"",
                              variable.name, "\", which the journal does not have"));
    concrete->variables.push_back(found->spec);
  }
  std::lock_guard hold(mutex_);
  return keep(made.id, std::move(concrete), made.name);
}

std::shared_ptr<const RegisteredFunction> FunctionRegistry::keep(
    std::uint32_t id, std::shared_ptr<const ConcreteFunction> concrete, const std::string& name) {
  auto made = std::make_shared<RegisteredFunction>();
  made->id = id;
  made->name = name;
  made->updates = concrete->graph.updates_variables();
  made->assigns = concrete->graph.assigns();
  made->uses_variables = !concrete->graph.variables.empty();
  made->elements = concrete->graph.elements_taken();
  if (!made->elements.empty())
    made->steps = std::max<std::int64_t>(1, made->elements.front() / concrete->replicas);
  made->concrete = std::move(concrete);
  verify_(*made);
  next_ = std::max(next_, id + 1);
  return functions_[key_of(*made->concrete)] = std::move(made);
}

}  // namespace cairn
