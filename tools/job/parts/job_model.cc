// Makes the model from [data], [features] and [model]. Variables are named after the features
// ("deep/COLUMN", "table/COLUMN", "wide"), and checkpoints are restored by these names: renaming
// one makes older checkpoints useless.
#include "tools/job/parts/job_model.h"

#include <algorithm>

#include "core/graph/ops.h"
#include "tools/job/parts/embedded_ids.h"

namespace cairn::tools {
namespace {

bool is_click_model(const std::string& kind) {
  return kind == "dlrm" || kind == "dcn_v2" || kind == "deepfm";
}

}  // namespace

// The wide part has no bias if there is a deep part, whose last layer has one. One optimizer per
// part, named after it, so that their counts of steps are two variables.
JobNetwork::JobNetwork(const Job& job, const FittedFeatures& features)
    : click_on_(is_click_model(job.model.kind)),
      wide_on_(job.model.kind.starts_with("wide")),
      deep_on_(job.model.kind == "deep" || job.model.kind == "wide_deep"),
      features_(features),
      embedded_(embedded_ids(job, features)),
      objective_(job, features.label) {
  const std::uint64_t seed = job.model.seed;
  verify_tables(job);
  if (click_on_) make_click_model(job);
  if (job.model.kind == "two_tower") {
    towers_ = std::make_shared<RetrievalNetwork>(job, features);
    deep_optimizer_ = make_optimizer(job.optimizer, job.optimizer.kind);
  }
  if (deep_on_) {
    deep_input_.emplace(job, features, "deep");
    std::vector<std::int64_t> units = job.model.hidden;
    units.push_back(job.model.outputs());
    tower_ = std::make_shared<nn::Mlp>(
        nn::MlpOptions{.units = units, .name = "deep/tower", .seed = seed});
    deep_optimizer_ = make_optimizer(job.optimizer, "deep/" + job.optimizer.kind);
  }
  if (wide_on_) make_wide(job);
  std::vector<std::shared_ptr<nn::Optimizer>> optimizers{deep_optimizer_, wide_optimizer_};
  std::erase(optimizers, nullptr);
  learning_rates_.emplace(job, std::move(optimizers));
}

// A section that no table has would change nothing, without a word.
void JobNetwork::verify_tables(const Job& job) const {
  std::vector<std::string> names;
  std::string listed;
  for (const IdFeature& id : embedded_) {
    names.push_back(id.name);
    listed += (listed.empty() ? "" : ", ") + id.name;
  }
  for (const auto& [name, table] : job.tables.all()) {
    if (std::ranges::find(names, name) != names.end() || (name == "*" && !names.empty())) continue;
    const std::string near = nearest_name(name, names);
    throw InvalidArgumentError(str(table.place, "no feature of ids that a model of the kind \"",
                                   job.model.kind, "\" embeds has this name",
                                   names.empty()  ? std::string(": it embeds none")
                                   : near.empty() ? str("; there are ", listed)
                                                  : str("; did you mean \"", near, "\"?")));
  }
}

// Each output has a linear model of its own. Without ids, the numbers alone make it.
void JobNetwork::make_wide(const Job& job) {
  const std::int64_t outputs = job.model.outputs();
  const FittedFeatures& features = features_;
  nn::WideOptions wide;
  for (const IdFeature& id : features.ids) {
    if (id.value >= 0)
      throw InvalidArgumentError(
          str("features.ids.", id.field,
              ": the wide part takes one number of rows for all values of a field"));
    wide.columns.push_back({id.name, id.rows, id.bags, id.weights});
  }
  for (const auto& cross : job.features.crosses)
    wide.crosses.push_back({cross.columns, cross.buckets});
  wide.use_bias = !deep_on_;
  wide.hashed =
      std::any_of(wide.columns.begin(), wide.columns.end(),
                  [&](const nn::WideColumn& column) { return job.model.hashed(column.rows); });
  const bool has_ids = !wide.columns.empty() || !wide.crosses.empty();
  if (!has_ids && !features.numeric)
    throw InvalidArgumentError(
        str("model.kind = \"", job.model.kind,
            "\": its wide part reads ids and standardised numbers, and [features] names none "
            "(vocabulary, hashed, bucketised, text, ids, dates or numeric): name some, or set "
            "model.kind = \"deep\", which reads features.plain too"));
  for (std::int64_t i = 0; has_ids && i < outputs; ++i) {
    if (outputs > 1) wide.name = str("wide/", i);
    wide_.push_back(std::make_shared<nn::Wide>(wide));
  }
  if (features.numeric)
    wide_numeric_ = std::make_shared<nn::Dense>(nn::DenseOptions{.units = outputs,
                                                                 .use_bias = !has_ids && !deep_on_,
                                                                 .name = "wide/numeric",
                                                                 .seed = job.model.seed});
  wide_optimizer_ = make_optimizer(job.wide_optimizer, "wide/" + job.wide_optimizer.kind);
}

void JobNetwork::make_click_model(const Job& job) {
  nn::ClickModelOptions click{.dim = job.model.embedding_dim,
                              .bottom = job.model.bottom,
                              .top = job.model.hidden,
                              .cross_layers = job.model.cross_layers,
                              .combiner = combiner_of(job),
                              .seed = job.model.seed};
  click.kind = job.model.kind == "dlrm"     ? nn::ClickModelKind::kDlrm
               : job.model.kind == "dcn_v2" ? nn::ClickModelKind::kDcnV2
                                            : nn::ClickModelKind::kDeepFm;
  for (const IdFeature& id : embedded_) {
    const JobTable table = job.table_of(id.name, id.rows);
    click.tables.push_back({"table/" + id.name, id.rows, *table.hashed, id.bags, table.policy});
  }
  click_ = std::make_shared<nn::ClickModel>(click);
  deep_optimizer_ = make_optimizer(job.optimizer, job.optimizer.kind);
}

// Wide and deep parts add up, so they are trained together, as the paper has it.
Array JobNetwork::logits(const Features& features) const {
  if (click_on_) {
    std::vector<nn::Ids> ids;
    for (const IdFeature& id : embedded_) ids.push_back(id.of(features));
    return (*click_)(numbers_of(features_, features), ids);
  }
  Array outputs;
  if (deep_on_) outputs = (*tower_)((*deep_input_)(features));
  if (wide_on_) {
    std::vector<Array> parts;
    for (const auto& each : wide_) parts.push_back((*each)(features));
    Array wide;
    if (!parts.empty()) wide = parts.size() == 1 ? parts[0] : concat(parts, 1);
    if (wide_numeric_) {
      const Array numeric = (*wide_numeric_)(features["numeric"]);
      wide = wide.defined() ? wide + numeric : numeric;
    }
    outputs = outputs.defined() ? outputs + wide : wide;
  }
  return outputs;
}

Array JobNetwork::losses(const Batch& batch) const {
  if (towers_) return towers_->losses(batch.features);
  return objective_.losses(logits(batch.features), objective_.truth(batch.label),
                           features_.groups_of(batch.features));
}

// One backward pass serves both optimizers: the gradients are dealt out by the variables' names.
void JobNetwork::minimize(const Array& loss) const {
  std::vector<VariableGradient> wide, deep;
  for (auto& gradient : variable_gradients(loss))
    (gradient.variable.name().starts_with("wide") ? wide : deep).push_back(std::move(gradient));
  if (!deep.empty()) deep_optimizer_->apply_gradients(std::move(deep));
  if (!wide.empty()) wide_optimizer_->apply_gradients(std::move(wide));
}

}  // namespace cairn::tools
