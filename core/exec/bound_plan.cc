#include "core/exec/bound_plan.h"

#include <algorithm>

#include "core/exec/bind.h"
#include "core/graph/op_def.h"

namespace cairn {
namespace {

void append_dims(std::vector<std::int64_t>& signature, const Shape& shape) {
  signature.insert(signature.end(), shape.dims().begin(), shape.dims().end());
}

template <typename... What>
void check_type(const TensorType& want, const Tensor& got, const What&... what) {
  if (!got.defined())
    throw InvalidArgumentError(str(what..., " has no value; ", want.to_string(), " is wanted"));
  if (got.dtype() != want.dtype || !want.shape.admits(got.shape()))
    throw InvalidArgumentError(
        str(what..., " is ", got.type().to_string(), "; ", want.to_string(), " is wanted"));
}

void check_element(const ElementSpec& spec, const Element& element, std::size_t iterator,
                   std::vector<std::int64_t>& signature) {
  if (element.size() != spec.columns.size())
    throw InvalidArgumentError(str("an element of iterator ", iterator, " has ", element.size(),
                                   " columns; ", spec.columns.size(), " are wanted"));
  for (std::size_t c = 0; c < element.size(); ++c) {
    check_type(spec.columns[c].type, element[c], "column \"", spec.columns[c].name,
               "\" of iterator ", iterator);
    append_dims(signature, element[c].shape());
  }
}

}  // namespace

// The dimensions of all that is passed, one after the other, are the signature of a run: with equal
// ones every shape in the graph is equal.
void check_inputs(const Plan& plan, const RunInputs& inputs, std::vector<std::int64_t>& signature) {
  const Graph& graph = plan.graph;
  if (inputs.arguments.size() != graph.arguments.size() ||
      inputs.elements.size() != graph.iterators.size())
    throw InvalidArgumentError(str("the function takes ", graph.arguments.size(), " arguments and ",
                                   graph.iterators.size(), " iterators, not ",
                                   inputs.arguments.size(), " and ", inputs.elements.size()));
  for (std::size_t i = 0; i < graph.arguments.size(); ++i) {
    check_type(graph.arguments[i], inputs.arguments[i], "argument ", i);
    append_dims(signature, inputs.arguments[i].shape());
  }
  for (std::size_t i = 0; i < graph.iterators.size(); ++i) {
    if (static_cast<std::int64_t>(inputs.elements[i].size()) != plan.elements_taken[i])
      throw InvalidArgumentError(str("a run takes ", plan.elements_taken[i],
                                     " elements of iterator ", i, ", not ",
                                     inputs.elements[i].size()));
    for (const Element& element : inputs.elements[i])
      check_element(graph.iterators[i], element, i, signature);
  }
}

// To place intervals in the least memory is NP-hard (Garey, Johnson, SR2), so this is first fit in
// the order of first use: each interval gets the lowest gap between those that live at the same
// time. Two that meet in one instruction both live there, since a kernel may read one while it
// writes the other.
std::size_t place_intervals(std::vector<Interval>& intervals) {
  constexpr std::size_t kAlign = 64;
  std::vector<Interval*> order, active;  // active: by offset
  for (auto& interval : intervals) order.push_back(&interval);
  std::stable_sort(order.begin(), order.end(),
                   [](const Interval* a, const Interval* b) { return a->first < b->first; });
  std::size_t total = 0;
  for (Interval* next : order) {
    std::erase_if(active, [&](const Interval* old) { return old->last < next->first; });
    // a line of slack: vector code may look past the end
    std::size_t bytes = (next->bytes + kAlign - 1) / kAlign * kAlign + kAlign;
    std::size_t offset = 0;
    auto place = active.begin();
    for (; place != active.end(); ++place) {
      if (static_cast<std::size_t>((*place)->offset) >= offset + bytes) break;
      offset = static_cast<std::size_t>((*place)->offset) +
               (((*place)->bytes + kAlign - 1) / kAlign + 1) * kAlign;
    }
    next->offset = static_cast<std::int64_t>(offset);
    active.insert(place, next);
    total = std::max(total, offset + bytes);
  }
  return total;
}

BoundPlan::BoundPlan(std::shared_ptr<const Plan> plan, std::vector<std::int64_t> signature,
                     const RunInputs& inputs, Device& device)
    : plan_(std::move(plan)), signature_(std::move(signature)) {
  Binder(*this, inputs, device).bind();
}

void BoundPlan::fail(std::int32_t number, Code code, const std::string& message) const {
  const Node& node = plan_->graph.nodes[static_cast<std::size_t>(number)];
  std::vector<TensorType> types;
  for (ValueRef in : node.inputs) types.push_back(type(plan_->value(in)));
  fail_at(plan_->graph, number, code, str(signature_text(*node.op, types), ": ", message));
}

}  // namespace cairn
