// map(): a traced function over elements, run by the same executor as a training step. The function
// is a graph, not code, so it travels with the dataset, and every machine that opens the dataset
// runs the same operations.
#include <algorithm>

#include "core/graph/graph.h"
#include "core/graph/ops.h"
#include "data/dataset/map_origins.h"
#include "data/dataset/stage.h"
#include "data/stage/map_function.h"

namespace cairn {

// A map reads and updates no variables, as map_element() has checked, so it needs no store and its
// plan runs to the end at once.
MapFunction::MapFunction(const StageSpec& spec)
    : pack_(!spec.batched() && has_known_shapes(spec.element)),
      at_once_(spec.batched() ? 1 : kExamplesAheadAtOnce),
      layout_(std::make_shared<const BlockLayout>(spec.element)),
      plan_(make_plan(parse_with_origins(std::get<MapSpec>(spec.kind).graph), {})) {}

Mapped MapFunction::run(const Block& block, Workspace& workspace) const {
  Mapped made;
  std::vector<Element> all;
  try {
    for (std::int64_t i = 0; i < block.size(); ++i)
      all.push_back(run_without_variables(plan_, workspace, {}, {{}, {{block.element(i)}}}));
  } catch (...) {
    made.error = std::current_exception();
  }
  try {
    const Block loose = Block::of(std::move(all));
    made.block = pack_ ? loose.pack(layout_) : loose;
  } catch (...) {
    made = {{}, std::current_exception()};
  }
  return made;
}

namespace {

// Skipping elements need not run the function: a map yields one element for each that it takes.
class MapStage final : public StageOver {
 public:
  MapStage(StagePtr input, const StageSpec& spec) : StageOver(std::move(input)), function_(spec) {}

  Block next(std::int64_t most) override {
    const Block block = input_->next(std::min(most, function_.at_once()));
    Mapped made = function_.run(block, workspace_);
    if (made.error) std::rethrow_exception(made.error);
    return std::move(made.block);
  }
  std::int64_t skip(std::int64_t count) override { return input_->skip(count); }

 private:
  const MapFunction function_;
  Workspace workspace_;
};

}  // namespace

std::vector<std::byte> trace_map(const ElementSpec& input,
                                 const std::function<Outputs(const Batch&)>& body) {
  Function::Body traced = [&](const std::vector<TraceArgument>& arguments) {
    Batch batch = std::get<Iterator>(arguments[0]).get_next();
    Outputs outputs = body(batch);
    bool has_label = std::any_of(outputs.begin(), outputs.end(),
                                 [&](const auto& output) { return output.first == input.label; });
    if (!input.label.empty() && !has_label) outputs.emplace_back(input.label, batch.label);
    return outputs;
  };
  return serialize_with_origins(trace(traced, {input}).graph);
}

namespace {

// The graph may come from a peer, so everything that stages rely on is checked here: no variables,
// no arguments, one element of one iterator with the columns that are below.
Graph graph_of_element(const ElementSpec& input, const std::vector<std::byte>& bytes,
                       const char* call) {
  Graph graph = parse_graph(bytes);
  if (!graph.variables.empty())
    throw InvalidArgumentError(str(call, "(): the function uses the variable \"",
                                   graph.variables.front().name, "\"; it may use none"));
  if (!graph.arguments.empty() || graph.iterators.size() != 1 ||
      graph.elements_taken() != std::vector<std::int64_t>{1})
    throw InvalidArgumentError(
        str(call, "(): the graph must take one element of one iterator, and nothing else"));
  if (!(graph.iterators[0] == input))
    throw InvalidArgumentError(
        str(call, "(): the function was traced for other columns than the stage below yields"));
  return graph;
}

}  // namespace

void check_predicate(const ElementSpec& input, const std::vector<std::byte>& graph,
                     const char* call) {
  const Graph parsed = graph_of_element(input, graph, call);
  if (parsed.outputs.size() == 1 &&
      parsed.type(parsed.outputs.front()) == TensorType{DType::kBool, {}})
    return;
  throw InvalidArgumentError(str(call, "(): the function must return one bool, and returns ",
                                 parsed.outputs.size() == 1
                                     ? parsed.type(parsed.outputs.front()).to_string()
                                     : str(parsed.outputs.size(), " values")));
}

ElementSpec map_element(const ElementSpec& input, const MapSpec& spec) {
  const Graph graph = graph_of_element(input, spec.graph, "map");
  ElementSpec element;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const std::string& name = graph.output_names[i];
    if (name.empty())
      throw InvalidArgumentError(
          "map(): an output has no name; return Outputs, such as {{\"age\", age}, {\"words\", "
          "words}}");
    for (const auto& column : element.columns)
      if (column.name == name)
        throw InvalidArgumentError(str("map(): two outputs are named \"", name, "\""));
    element.columns.push_back({name, graph.type(graph.outputs[i])});
  }
  if (element.columns.empty()) throw InvalidArgumentError("map(): the function returns nothing");
  if (!input.label.empty()) element.find(input.label);
  element.label = input.label;
  return element;
}

// The form of the states depends on the number of calls and not on the Offload, so that an iterator
// can be resumed in a process without threads.
StagePtr make_map_stage(StagePtr input, const StageSpec& spec, const OpenOptions& options) {
  const bool one_call = std::get<MapSpec>(spec.kind).calls == 1;
  if (!one_call && options.offload != nullptr)
    return make_parallel_map_stage(std::move(input), spec, options);
  StagePtr map = std::make_unique<MapStage>(std::move(input), spec);
  return one_call ? std::move(map) : make_nothing_ahead_stage(std::move(map));
}

}  // namespace cairn
