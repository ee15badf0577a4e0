#include "tools/job/model/trained_model.h"

#include "core/base/json.h"
#include "core/disk/disk.h"
#include "core/graph/ops.h"
#include "model/saved/saved_model.h"

namespace cairn::tools {
namespace {

// Records and libsvm lines have the label among their columns, or beside them; the model does not.
ElementSpec input_of(const Job& job, const Dataset& examples) {
  ElementSpec input = examples.batch(1).element_spec();
  // Where features() makes columns, one of this name is a feature.
  const std::string group = job.data.has_columns() ? "" : job.data.group;
  std::erase_if(input.columns, [&](const ColumnSpec& column) {
    return column.name == job.data.label() || column.name == job.data.weight ||
           column.name == group || column.name == input.label;
  });
  input.label.clear();
  return input;
}

Outputs outputs_of(const Job& job, const JobNetwork& network, const Features& features,
                   std::optional<float> threshold) {
  if (job.model.objective == "retrieval") {
    const Array query = network.towers().queries(features);
    const Array candidate = network.towers().candidates(features);
    return {
        {"score", reduce_sum(query * candidate, {1})}, {"query", query}, {"candidate", candidate}};
  }
  const char* name = job.model.objective == "regression" ? "prediction"
                     : job.model.objective == "ranking"  ? "score"
                                                         : "probability";
  Outputs outputs{{name, network.objective().prediction(network.logits(features))}};
  if (threshold)
    outputs.emplace_back("decision", cast(outputs.front().second > *threshold, DType::kInt32));
  return outputs;
}

}  // namespace

void save_trained_model(const Job& job, const FittedFeatures& features, const JobNetwork& network,
                        Strategy& strategy, const TrainedModelPlace& place) {
  SaveModelOptions options;
  options.name = job.name;
  options.examples = examples_to_predict(job, features);
  options.label = job.data.label();
  Json metadata{{"job", job.name}, {"toml", job.text}};
  if (place.threshold) metadata["threshold"] = *place.threshold;
  options.metadata = json_text(metadata);
  options.checkpoint = place.checkpoint;
  options.without_weights = place.checkpoint.empty();
  const Function predict = strategy.function(
      [&](Iterator input) {
        return outputs_of(job, network, input.get_next().features, place.threshold);
      },
      "predict");
  save_model(strategy, predict, input_of(job, options.examples), options, place.folder);
}

std::string model_at(const std::string& path) {
  for (const std::string& folder : {path, path + "/model"})
    if (system_disk().exists(folder + "/model.json")) return folder;
  throw NotFoundError(str("there is no saved model in ", path, ", nor in ", path,
                          "/model: name one that `cairn train` or save_model() made"));
}

}  // namespace cairn::tools
