// The calls of Dataset that make one dataset of several.
#include <algorithm>
#include <cmath>

#include "data/dataset/dataset_calls.h"
#include "data/feature/dataset_bounds.h"

namespace cairn {
namespace {

// The wire's nesting limit bounds it too; each level of descriptions within descriptions costs the
// reader of the wire some stack.
constexpr std::size_t kNestingMax = 6;
constexpr std::size_t kInputsMax = 64;

Dataset over_several(const std::vector<Dataset>& inputs, const char* call, StageKind kind,
                     ElementSpec element) {
  Dataset made =
      over(inputs.front(), std::move(kind), std::move(element), inputs.front().last()->batches);
  auto spec = std::make_shared<StageSpec>(*made.last());
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const StageSpec& other = input_of(inputs[i], call);
    spec->others.push_back(inputs[i].last());
    spec->depth += other.depth;
    spec->nesting = std::max(spec->nesting, other.nesting + 1);
  }
  if (spec->depth > kDatasetStagesMax)
    throw InvalidArgumentError(str(call, ": the datasets have ", spec->depth,
                                   " stages together, at most ", kDatasetStagesMax,
                                   " are possible"));
  if (spec->nesting > kNestingMax)
    throw InvalidArgumentError(
        str(call, ": datasets within datasets go ", kNestingMax,
            " deep at most; build the list from the left: a.concatenate(b).concatenate(c)"));
  return Dataset(std::move(spec));
}

void check_inputs(const std::vector<Dataset>& inputs, const char* call) {
  if (inputs.empty() || inputs.size() > kInputsMax)
    throw InvalidArgumentError(
        str(call, ": ", inputs.size(), " datasets, from 1 to ", kInputsMax, " are possible"));
  for (const Dataset& input : inputs)
    if (input_of(input, call).batches != input_of(inputs.front(), call).batches)
      throw InvalidArgumentError(
          str(call, ": the elements of one dataset are batches, and those of another are not"));
}

ElementSpec common_to(const std::vector<Dataset>& inputs, const char* call) {
  ElementSpec element = inputs.front().element_spec();
  for (const Dataset& input : inputs) element = common_element(element, input.element_spec(), call);
  return element;
}

}  // namespace

Dataset Dataset::from_service(const Dataset& dataset, ServiceSource source, OpenElements open) {
  const StageSpec& read = input_of(dataset, "from_service");
  if (source.dispatcher.empty())
    throw InvalidArgumentError("from_service: the address of a dispatcher is wanted");
  check_at_least("from_service: buffer_elements", source.buffer_elements, 1);
  if (reads_once(read))
    throw InvalidArgumentError("from_service: the elements come from a data service already");
  auto spec = std::make_shared<StageSpec>();
  spec->kind = ServiceSpec{dataset.last(), std::move(source), std::move(open)};
  spec->element = read.element;
  spec->batches = read.batches;
  spec->nesting = read.nesting + 1;
  if (spec->nesting > kNestingMax)
    throw InvalidArgumentError(
        str("from_service: datasets within datasets go ", kNestingMax, " deep at most"));
  return Dataset(std::move(spec));
}

ElementSpec common_element(const ElementSpec& one, const ElementSpec& other, const char* call) {
  ElementSpec common = one;
  bool fits = one.columns.size() == other.columns.size() && one.label == other.label;
  for (std::size_t i = 0; fits && i < one.columns.size(); ++i) {
    const ColumnSpec &a = one.columns[i], &b = other.columns[i];
    fits = a.name == b.name && a.type.dtype == b.type.dtype &&
           a.type.shape.rank() == b.type.shape.rank();
    for (int axis = 0; fits && axis < a.type.shape.rank(); ++axis)
      if (a.type.shape[axis] != b.type.shape[axis])
        common.columns[i].type.shape = common.columns[i].type.shape.with_dim(axis, Shape::kUnknown);
  }
  if (fits) return common;
  const auto text = [](const ElementSpec& spec) {
    std::string all;
    for (const ColumnSpec& column : spec.columns)
      all += str(all.empty() ? "" : ", ", column.name, ": ", column.type.to_string(),
                 column.name == spec.label ? " (label)" : "");
    return all;
  };
  throw InvalidArgumentError(str(call, ": the datasets have different columns: {", text(one),
                                 "} and {", text(other), "}"));
}

ElementSpec zip_element(const std::vector<const ElementSpec*>& inputs) {
  ElementSpec element;
  for (const ElementSpec* input : inputs) {
    if (!input->label.empty() && !element.label.empty())
      throw InvalidArgumentError(str("zip: two datasets name a label, \"", element.label,
                                     "\" and \"", input->label, "\""));
    if (!input->label.empty()) element.label = input->label;
    element.columns.insert(element.columns.end(), input->columns.begin(), input->columns.end());
  }
  check_columns(element.columns, "zip()");
  return element;
}

Dataset Dataset::concatenate(const Dataset& other) const {
  const std::vector<Dataset> inputs{*this, other};
  check_inputs(inputs, "concatenate");
  return over_several(inputs, "concatenate", ConcatenateSpec{}, common_to(inputs, "concatenate"));
}

Dataset Dataset::zip(std::vector<Dataset> datasets) {
  check_inputs(datasets, "zip");
  std::vector<const ElementSpec*> specs;
  for (const Dataset& each : datasets) specs.push_back(&each.element_spec());
  return over_several(datasets, "zip", ZipSpec{}, zip_element(specs));
}

Dataset Dataset::sample_from_datasets(std::vector<Dataset> datasets, std::vector<double> weights,
                                      std::uint64_t seed, bool stop_on_empty) {
  constexpr const char* kCall = "sample_from_datasets";
  check_inputs(datasets, kCall);
  if (weights.empty()) weights.assign(datasets.size(), 1.0);
  if (weights.size() != datasets.size())
    throw InvalidArgumentError(
        str(kCall, ": ", weights.size(), " weights for ", datasets.size(), " datasets"));
  for (const double weight : weights)
    if (!(weight >= 0.0) || !std::isfinite(weight))
      throw InvalidArgumentError(str(kCall, ": a weight is ", weight, ", it must be at least 0"));
  if (std::ranges::none_of(weights, [](double weight) { return weight > 0; }))
    throw InvalidArgumentError(str(kCall, ": one of the weights must be above 0"));
  ElementSpec element = common_to(datasets, kCall);
  return over_several(datasets, kCall, SampleSpec{std::move(weights), seed, stop_on_empty},
                      std::move(element));
}

}  // namespace cairn
