#include "model/saved/model_examples.h"

#include <algorithm>

#include "core/base/error.h"
#include "data/dataset/file_source.h"
#include "data/dataset/stage_spec.h"

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

Dataset reading(const FileSource& source, std::vector<std::string> files) {
  return dataset_of(source.reading(std::move(files)));
}

// One name for each list of files.
std::vector<std::string> no_files(const FileSource& source) {
  return std::vector<std::string>(source.files().size(), kNoFile);
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
  const FileSource* const source = file_source_of(*chain.front());
  const Dataset stored =
      source != nullptr ? reading(*source, no_files(*source)) : without_rows(*chain.front());
  return prepared(examples, stored);
}

Dataset over_files(const Dataset& examples, std::vector<std::string> files) {
  const std::vector<Spec> chain = chain_of(examples);
  const FileSource* const source = file_source_of(*chain.front());
  if (source == nullptr)
    throw FailedPreconditionError(
        "the model was saved with columns that come from no file: prepare() a dataset that has "
        "them");
  return reading(*source, std::move(files));
}

Dataset with_on_error(const Dataset& source, OnError on_error) {
  const FileSource* const files = file_source_of(*source.last());
  return files == nullptr ? source : dataset_of(files->with_on_error(on_error));
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
