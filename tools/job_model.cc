// What [data], [features] and [model] become. Variables are named after the features
// ("deep/COLUMN", "table/COLUMN", "wide"), and names are what checkpoints are restored by: renaming
// one makes older checkpoints useless.
#include "tools/job_model.h"

#include <algorithm>

#include "core/graph/ops.h"
#include "data/byte_source.h"
#include "tools/job_warnings.h"

namespace cairn::tools {
namespace {

// A job's label is the truth of a binary cross-entropy, so cells outside [0, 1] are bad ones.
Dataset source(const Job& job, const std::vector<std::string>& files) {
  if (job.data.format == "records") {
    RecordSchema schema = job.data.records;
    schema.binary_label = true;
    return Dataset::records(files, schema);
  }
  CsvSchema schema = job.data.csv;
  schema.label.binary = true;
  CsvOptions options{.names = OptionNames::kJobFile};
  if (job.data.skip_bad_rows) options.on_error = OnError::kSkipAndCount;
  return Dataset::csv(files, schema, options);
}

// A label that is text has no value until the job says which texts count as 1.
void verify_label(const Job& job) {
  const bool csv = job.data.format == "csv";
  const std::string& label = csv ? job.data.csv.label.column : job.data.records.label;
  const char* const key = csv ? "data.csv.label" : "data.records.label";
  if (label.empty())
    throw InvalidArgumentError(str(key, " names no column: a job needs one to predict"));
  for (const CsvColumn& column : job.data.csv.columns)
    if (csv && column.name == label && column.dtype == DType::kString &&
        job.data.csv.label.positive.empty())
      throw InvalidArgumentError(str(key, ": column \"", label,
                                     "\" holds text: say with `positive` which texts count as 1"));
}

// A feature column of ids, and the table that the model needs for it.
void add(FittedFeatures& features, FeatureColumn column) {
  features.ids.push_back({column.name, column.ids()});
  features.columns.push_back(std::move(column));
}

bool is_click_model(const std::string& kind) {
  return kind == "dlrm" || kind == "dcn_v2" || kind == "deepfm";
}

}  // namespace

FitRequest fit_request(const Job& job) {
  FitRequest request;
  if (job.data.format == "records") return request;
  for (const auto& name : job.features.numeric) request.numeric.push_back({.column = name});
  for (const auto& name : job.features.log1p)
    request.numeric.push_back({.column = name, .log1p = true});
  request.vocabularies = job.features.vocabulary;
  request.vocabulary_options.min_count = job.features.vocabulary_min_count;
  return request;
}

FittedFeatures fit_features(const Job& job, const Fit* known) {
  const JobFeatures& wanted = job.features;
  FittedFeatures made;
  verify_label(job);
  Dataset data = source(job, job.data.train);
  // Records hold numbers and ids that are ready to use: nothing is fitted, and their number is the
  // file's size over a record's.
  if (job.data.format == "records") {
    for (const RecordField& field : job.data.records.fields)
      if (field.dtype == DType::kFloat32 && field.name != job.data.records.label)
        made.plain.push_back(field.name);
    for (const auto& name : wanted.ids) {
      const auto& rows = wanted.id_rows.at(name);
      if (rows.size() == 1) made.ids.push_back({name, rows.front()});
      for (std::size_t i = 0; rows.size() > 1 && i < rows.size(); ++i)
        made.ids.push_back({str(name, "_", i + 1), rows[i], name, static_cast<int>(i)});
    }
    for (const auto& path : job.data.train)
      if (file_bytes(path) == 0) made.lines.empty_files.push_back(path);
    refuse_empty_files(made.lines, "data.train");
    made.examples = cardinality(data);
    return made;
  }
  // Empty files are refused after the reading, because only reading tells that a file has no rows.
  const Fit fitted = known != nullptr ? *known : fit(data, fit_request(job));
  made.lines = fitted.lines;
  made.examples = known != nullptr ? cardinality(data, &made.lines) : fitted.examples;
  refuse_empty_files(made.lines, "data.train");
  if (!fitted.numeric.empty()) {
    made.columns.push_back(FeatureColumn::numeric(fitted.numeric));
    made.numeric = true;
  }
  for (std::size_t i = 0; i < wanted.vocabulary.size(); ++i)
    add(made, FeatureColumn::vocabulary(wanted.vocabulary[i], fitted.vocabularies[i]));
  for (const auto& [column, buckets] : wanted.hashed)
    add(made, FeatureColumn::hashed(column, buckets));
  for (const auto& [column, boundaries] : wanted.bucketised)
    add(made, FeatureColumn::bucketised(column, boundaries));
  if (made.columns.empty())
    throw InvalidArgumentError("the job has no features: name columns under [features]");
  return made;
}

// Without fitted columns the records' own columns serve, and features() would only drop them.
Dataset train_source(const Job& job, const FittedFeatures& features) {
  Dataset data = source(job, job.data.train);
  return features.columns.empty() ? data : data.features(features.columns);
}

Dataset test_source(const Job& job, const FittedFeatures& features) {
  Dataset data = source(job, job.data.test);
  return features.columns.empty() ? data : data.features(features.columns);
}

// Reshaped to [-1], because the batch's size is not known when this is traced.
Array IdFeature::of(const Features& features) const {
  const Array all = features[field];
  return value < 0 ? all : reshape(slice(all, 1, value, 1), {-1});
}

// The wide part has no bias if there is a deep part, whose last layer has one. One optimizer per
// part, named after it, so that their counts of steps are two variables.
JobNetwork::JobNetwork(const Job& job, const FittedFeatures& features)
    : click_on_(is_click_model(job.model.kind)),
      wide_on_(!click_on_ && job.model.kind != "deep"),
      deep_on_(!click_on_ && job.model.kind != "wide"),
      features_(features) {
  const std::uint64_t seed = job.model.seed;
  if (click_on_) make_click_model(job);
  if (deep_on_) {
    for (std::size_t i = 0; i < features.ids.size(); ++i)
      embeddings_.emplace_back(
          nn::EmbeddingOptions{.name = "deep/" + features.ids[i].name,
                               .rows = features.ids[i].rows,
                               .dim = job.model.embedding_dim,
                               .seed = seed,
                               .hashed = job.model.hashed(features.ids[i].rows)});
    std::vector<std::int64_t> units = job.model.hidden;
    units.push_back(1);
    tower_ = std::make_shared<nn::Mlp>(
        nn::MlpOptions{.units = units, .name = "deep/tower", .seed = seed});
    deep_optimizer_ = make_optimizer(job.optimizer, "deep/" + job.optimizer.kind);
  }
  if (wide_on_) {
    nn::WideOptions wide;
    for (const IdFeature& id : features.ids) {
      if (id.value >= 0)
        throw InvalidArgumentError(
            str("features.ids.", id.field,
                ": the wide part takes one number of rows for all values of a field"));
      wide.columns.push_back({id.name, id.rows});
    }
    for (const auto& cross : job.features.crosses)
      wide.crosses.push_back({cross.columns, cross.buckets});
    wide.use_bias = !deep_on_;
    wide.hashed =
        std::any_of(wide.columns.begin(), wide.columns.end(),
                    [&](const nn::WideColumn& column) { return job.model.hashed(column.rows); });
    wide_ = std::make_shared<nn::Wide>(wide);
    if (features.numeric)
      wide_numeric_ = std::make_shared<nn::Dense>(
          nn::DenseOptions{.units = 1, .use_bias = false, .name = "wide/numeric", .seed = seed});
    wide_optimizer_ = make_optimizer(job.wide_optimizer, "wide/" + job.wide_optimizer.kind);
  }
}

void JobNetwork::make_click_model(const Job& job) {
  nn::ClickModelOptions click{.dim = job.model.embedding_dim,
                              .bottom = job.model.bottom,
                              .top = job.model.hidden,
                              .cross_layers = job.model.cross_layers,
                              .seed = job.model.seed};
  click.kind = job.model.kind == "dlrm"     ? nn::ClickModelKind::kDlrm
               : job.model.kind == "dcn_v2" ? nn::ClickModelKind::kDcnV2
                                            : nn::ClickModelKind::kDeepFm;
  for (const IdFeature& id : features_.ids)
    click.tables.push_back({"table/" + id.name, id.rows, job.model.hashed(id.rows)});
  click_ = std::make_shared<nn::ClickModel>(click);
  deep_optimizer_ = make_optimizer(job.optimizer, job.optimizer.kind);
}

// All numbers of an example side by side: the standardised ones of csv, and the plain fields of
// records. Undefined if there are none.
Array JobNetwork::numbers(const Features& features) const {
  std::vector<Array> parts;
  if (features_.numeric) parts.push_back(features["numeric"]);
  for (const auto& name : features_.plain)
    parts.push_back(features[name].rank() == 1 ? expand_dims(features[name], 1) : features[name]);
  return parts.empty() ? Array() : parts.size() == 1 ? parts[0] : concat(parts, 1);
}

// Everything side by side: the embeddings, those of a field with several values one after another,
// and the numbers.
Array JobNetwork::deep_input(const Features& features) const {
  std::vector<Array> parts;
  for (std::size_t i = 0; i < embeddings_.size(); ++i) {
    Array vectors = embeddings_[i](features_.ids[i].of(features));
    if (vectors.rank() == 3)
      vectors = reshape(vectors, {-1, vectors.shape()[1] * vectors.shape()[2]});
    parts.push_back(vectors);
  }
  if (Array all = numbers(features); all.defined()) parts.push_back(all);
  return parts.size() == 1 ? parts[0] : concat(parts, 1);
}

// Wide and deep parts add up to one logit, so they are trained together, as the paper has it.
Array JobNetwork::logits(const Features& features) const {
  if (click_on_) {
    std::vector<Array> ids;
    for (const IdFeature& id : features_.ids) ids.push_back(id.of(features));
    return (*click_)(numbers(features), ids);
  }
  Array logits;
  if (deep_on_) logits = (*tower_)(deep_input(features));
  if (wide_on_) {
    Array wide = (*wide_)(features);
    if (wide_numeric_) wide = wide + (*wide_numeric_)(features["numeric"]);
    logits = logits.defined() ? logits + wide : wide;
  }
  return logits;
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
