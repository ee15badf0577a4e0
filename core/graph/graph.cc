#include "core/graph/graph.h"

#include <algorithm>

#include "core/graph/op_def.h"

namespace cairn {
namespace {

auto lower_bound_of(auto& entries, std::string_view name) {
  return std::lower_bound(entries.begin(), entries.end(), name,
                          [](const auto& entry, std::string_view n) { return entry.first < n; });
}

std::string text_of(const AttributeValue& value) {
  struct Print {
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return str(v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(const std::string& v) const { return "\"" + v + "\""; }
    std::string operator()(const std::vector<std::int64_t>& v) const {
      return Shape(v).to_string();
    }
    std::string operator()(const Tensor& v) const { return v.to_string(); }
    std::string operator()(const UpdateRule& v) const { return std::string(rule_name(v)); }
  };
  return std::visit(Print{}, value);
}

std::string text_of(ValueRef value) {
  return value.output == 0 ? str("%", value.node) : str("%", value.node, ".", value.output);
}

template <typename List, typename Text>
std::string comma_list(const List& list, Text text) {
  std::string all;
  for (const auto& entry : list) all += (all.empty() ? "" : ", ") + text(entry);
  return all;
}

std::string node_text(const Node& node) {
  std::string text = std::string(node.op->name) + "(" +
                     comma_list(node.inputs, [](ValueRef v) { return text_of(v); }) + ")";
  if (!node.attributes.entries().empty())
    text += " {" +
            comma_list(node.attributes.entries(),
                       [](const auto& e) { return e.first + "=" + text_of(e.second); }) +
            "}";
  if (!node.outputs.empty())
    text += " : " + comma_list(node.outputs, [](const TensorType& t) { return t.to_string(); });
  return text;
}

}  // namespace

Attributes::Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

// Kept in order of the names, so that equal attributes have equal bytes however they were set.
void Attributes::set(std::string name, AttributeValue value) {
  auto place = lower_bound_of(entries_, name);
  if (place != entries_.end() && place->first == name)
    place->second = std::move(value);
  else
    entries_.insert(place, {std::move(name), std::move(value)});
}

const AttributeValue* Attributes::find(std::string_view name) const {
  auto place = lower_bound_of(entries_, name);
  return place != entries_.end() && place->first == name ? &place->second : nullptr;
}

// The number is fixed by the graph, so a coordinator can say beforehand which elements a closure
// takes.
std::vector<std::int64_t> Graph::elements_taken() const {
  std::vector<std::int64_t> taken(iterators.size());
  for (const Node& node : nodes)
    if (node.op->effect == Effect::kAdvance)
      ++taken[static_cast<std::size_t>(node.attributes.get<std::int64_t>("iterator"))];
  return taken;
}

bool Graph::updates_variables() const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node& node) { return node.op->effect == Effect::kUpdate; });
}

// An optimizer's count of its steps has a rule of its own and is no assignment here: a step that
// only counts itself may overlap with others.
bool Graph::assigns() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
    if (node.op->effect != Effect::kUpdate) return false;
    const auto& rule = node.attributes.get<UpdateRule>("rule");
    return is_assignment(rule.kind) && rule != counter_rule();
  });
}

std::string to_text(const Graph& graph) {
  std::string text;
  for (std::size_t i = 0; i < graph.variables.size(); ++i)
    text += str("variable ", i, " = \"", graph.variables[i].name,
                "\" : ", graph.variables[i].type.to_string(),
                graph.variables[i].mirrored ? ", mirrored\n" : "\n");
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    text += str("%", i, " = ", node_text(graph.nodes[i]), "\n");
  return text + "return " + comma_list(graph.outputs, [](ValueRef v) { return text_of(v); }) + "\n";
}

ErrorPlace place_of(const Graph& graph, std::int32_t number) {
  const Node& node = graph.nodes[static_cast<std::size_t>(number)];
  return {node.original < 0 ? number : node.original, node.origin.path_and_line()};
}

void fail_at(const Graph& graph, std::int32_t number, Code code, const std::string& message) {
  const Origin& origin = graph.nodes[static_cast<std::size_t>(number)].origin;
  const ErrorPlace place = place_of(graph, number);
  const std::string before = origin.known() ? origin.text() + ": " : str("node ", place.node, ", ");
  throw_error(code, before + message, {}, place);
}

// Code that passed the error on may have put a prefix before the message, so "node 3, " is searched
// for instead of being expected at the beginning.
std::exception_ptr with_origin(std::exception_ptr error, const Graph& graph) {
  ErrorParts parts = error_parts(error);
  const std::int32_t node = parts.place.node;
  if (node < 0 || !parts.place.origin.empty()) return error;
  if (static_cast<std::size_t>(node) >= graph.nodes.size()) return error;
  const Origin& origin = graph.nodes[static_cast<std::size_t>(node)].origin;
  if (!origin.known()) return error;
  parts.place.origin = origin.path_and_line();
  const std::string number = str("node ", node, ", ");
  if (const auto at = parts.message.find(number); at != std::string::npos)
    parts.message.replace(at, number.size(), origin.text() + ": ");
  else
    parts.message = origin.text() + ": " + parts.message;
  try {
    throw_error(parts);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace cairn
