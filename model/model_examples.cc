#include "model/model_examples.h"

#include <algorithm>

#include "core/base/error.h"
#include "data/stage_spec.h"

namespace cairn {
namespace {

using Spec = std::shared_ptr<const StageSpec>;

// Stands where the files' names were: those of one machine mean nothing on another.
constexpr const char* kNoFile = "examples";

// The stages from the source on; each stands on the one before it.
std::vector<Spec> chain_of(const Dataset& examples) {
  std::vector<Spec> chain;
  for (Spec stage = examples.last(); stage; stage = stage->input) chain.push_back(stage);
  std::ranges::reverse(chain);
  return chain;
}

// So many rows of each column that its data is none of a model's business: none.
Dataset without_rows(const StageSpec& source) {
  std::vector<std::pair<std::string, Tensor>> columns;
  for (const ColumnSpec& column : source.element.columns) {
    if (!column.type.shape.known() || column.name.ends_with(kRowSplits))
      throw InvalidArgumentError(
          str("a model's examples: their source has no files, and no tensors can stand for the ",
              "column \"", column.name, "\", ", column.type.to_string(),
              ": read them from files, or save the model without examples"));
    const Shape none = column.type.shape.with_front(0);
    columns.emplace_back(column.name, column.type.dtype == DType::kString
                                          ? Tensor::strings(none, std::vector<std::string>())
                                          : Tensor::zeros(column.type.dtype, none));
  }
  return Dataset::from_tensor_slices(std::move(columns), source.element.label);
}

// Each column has a file of its own, so that the label's may be left out.
Dataset idx_over(const IdxSpec& source, const std::vector<std::string>& files) {
  std::vector<IdxColumn> columns = source.columns;
  std::string label = source.label, names;
  for (const IdxColumn& column : columns) names += (names.empty() ? "" : ", ") + column.name;
  if (files.size() + 1 == columns.size() && !label.empty()) {
    std::erase_if(columns, [&](const IdxColumn& column) { return column.name == label; });
    label.clear();
  }
  if (files.size() != columns.size())
    throw InvalidArgumentError(
        str("the model's examples are IDX files, one for each of the columns ", names, ": got ",
            files.size(), "; give one for each, in that order",
            source.label.empty() ? "" : str(", or all but that of \"", source.label, "\"")));
  for (std::size_t i = 0; i < files.size(); ++i) columns[i].paths = {files[i]};
  return Dataset::idx(std::move(columns), std::move(label));
}

Dataset reading(const StageSpec& source, std::vector<std::string> files) {
  if (const auto* idx = std::get_if<IdxSpec>(&source.kind)) return idx_over(*idx, files);
  return Dataset(source_over(source, std::move(files)));
}

// One name for each list of files.
std::vector<std::string> no_files(const StageSpec& source) {
  const auto* idx = std::get_if<IdxSpec>(&source.kind);
  return std::vector<std::string>(idx == nullptr ? 1 : idx->columns.size(), kNoFile);
}

}  // namespace

Dataset without_files(const Dataset& examples) {
  const std::vector<Spec> chain = chain_of(examples);
  for (const Spec& stage : chain)
    if (stage->batched() ||
        (stage != chain.front() && !std::holds_alternative<FeaturesSpec>(stage->kind) &&
         !std::holds_alternative<MapSpec>(stage->kind)))
      throw InvalidArgumentError(
          "a model's examples are a source with features() and map() above it, and nothing else: "
          "what shuffles, repeats or batches is the caller's");
  const StageSpec& source = *chain.front();
  const Dataset stored =
      reads_files(source) ? reading(source, no_files(source)) : without_rows(source);
  return prepared(examples, stored);
}

Dataset over_files(const Dataset& examples, std::vector<std::string> files) {
  const StageSpec& source = *chain_of(examples).front();
  if (!reads_files(source))
    throw FailedPreconditionError(
        "the model was saved with columns that come from no file: prepare() a dataset that has "
        "them");
  return reading(source, std::move(files));
}

Dataset with_on_error(const Dataset& source, OnError on_error) {
  auto copy = std::make_shared<StageSpec>(*source.last());
  std::visit(
      [on_error](auto& kind) {
        if constexpr (requires { kind.options.on_error; }) kind.options.on_error = on_error;
      },
      copy->kind);
  return Dataset(std::move(copy));
}

// By the calls of Dataset, which check that each stage fits the one below.
Dataset prepared(const Dataset& examples, const Dataset& raw) {
  Dataset made = raw;
  for (const Spec& stage : chain_of(examples)) {
    if (const auto* features = std::get_if<FeaturesSpec>(&stage->kind))
      made = made.features(features->columns);
    if (const auto* map = std::get_if<MapSpec>(&stage->kind))
      made = made.map_graph(map->graph, {.num_parallel_calls = map->calls});
  }
  return made;
}

}  // namespace cairn
