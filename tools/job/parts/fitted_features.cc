// Features are named after columns, and the model's variables after them: what checkpoints are
// restored by.
#include "tools/job/parts/fitted_features.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/graph/ops.h"
#include "core/tensor/known_names.h"
#include "data/dataset/dataset_iterator.h"
#include "nn/layers/id_cross.h"
#include "tools/job/parts/job_warnings.h"
#include "tools/job/spec/job_format.h"

namespace cairn::tools {
namespace {

// A feature column of ids, and the table that the model needs for it.
void add(FittedFeatures& features, FeatureColumn column) {
  features.ids.push_back({column.name, column.ids()});
  features.columns.push_back(std::move(column));
}

FeatureColumn ids_of(const JobFeatures& wanted, const std::string& column) {
  const IdRange ids = wanted.id_range(column);
  return FeatureColumn::as_is(column, ids.rows.front(), "", ids.padding);
}

void add_date_parts(FittedFeatures& made, const JobFeatures& wanted) {
  for (const auto& [column, dates] : wanted.dates)
    for (const DatePart part : dates.parts) add(made, FeatureColumn::date_part(column, part));
}

// A feature for each column that the job's [features] name, but those whose statistics are fitted.
void add_unfitted(FittedFeatures& made, const JobFeatures& wanted) {
  for (const auto& [column, buckets] : wanted.hashed)
    add(made, FeatureColumn::hashed(column, buckets));
  for (const auto& [column, boundaries] : wanted.bucketised)
    add(made, FeatureColumn::bucketised(column, boundaries));
  for (const auto& [column, text] : wanted.text)
    add(made, FeatureColumn::words(column, text.buckets, text.ngrams));
  for (const auto& column : wanted.plain) {
    made.columns.push_back(FeatureColumn::as_is(column));
    made.plain.push_back(column);
  }
  for (const auto& column : wanted.ids) made.columns.push_back(ids_of(wanted, column));
  add_date_parts(made, wanted);
}

// Fields that hold ids already: a feature each, or one for each of their values.
void add_ids(FittedFeatures& made, const JobFeatures& wanted) {
  for (const auto& name : wanted.ids) {
    const auto& rows = wanted.id_rows.at(name);
    if (rows.size() == 1) made.ids.push_back({name, rows.front()});
    for (std::size_t i = 0; rows.size() > 1 && i < rows.size(); ++i)
      made.ids.push_back({str(name, "_", i + 1), rows[i], name, static_cast<int>(i)});
  }
}

// The fitted numbers, and the indicators of missing cells, which are 0 or 1 as they are.
void add_numeric(FittedFeatures& made, const Job& job, std::vector<NumericInput> numbers) {
  if (const CsvSchema* cells = job.data.form().cells())
    for (const CsvColumn& column : cells->columns)
      if (column.missing_indicator && !column.skip)
        numbers.push_back({.column = column.name + "/missing"});
  made.numeric = !numbers.empty();
  if (made.numeric) made.columns.push_back(FeatureColumn::numeric(std::move(numbers)));
}

// Which columns are ragged only the dataset knows, once it has the features.
void tell_bags(FittedFeatures& made, const Dataset& data) {
  const ElementSpec& element = data.element_spec();
  const auto is_ragged = [&](const std::string& name) {
    return std::ranges::any_of(element.columns, [&](const ColumnSpec& column) {
      return column.name == name + "/row_splits";
    });
  };
  for (IdFeature& id : made.ids) {
    id.bags = is_ragged(id.field);
    if (id.bags && id.value >= 0)
      throw InvalidArgumentError(str("features.ids.", id.field,
                                     ": examples have any number of its values, so that all of "
                                     "them share one number of rows"));
    if (element.columns[element.find(id.field)].type.dtype == DType::kFloat32)
      throw InvalidArgumentError(
          str("features.ids.", id.field, ": ids are whole numbers, and the column is float32"));
  }
  for (const std::string& name : made.plain)
    if (is_ragged(name))
      throw InvalidArgumentError(str("features.plain: examples have any number of values of \"",
                                     name, "\": a model reads as many of each"));
}

// Crosses name features, and job_crosses.h has verified them.
void verify_named_columns(const JobFeatures& features, const ElementSpec& data) {
  std::vector<std::string> known;
  for (const ColumnSpec& column : data.columns)
    if (!column.name.ends_with("/row_splits")) known.push_back(column.name);
  for_each_named_column(features, [&](const std::string& key, const std::string& column) {
    if (key == "features.crosses" || std::ranges::find(known, column) != known.end()) return;
    throw InvalidArgumentError(str(key, " names \"", column, "\", which is no column of the data",
                                   names_there(column, known)));
  });
}

void take_weight(FittedFeatures& made, const Job& job, const Dataset& data) {
  made.weight = job.data.weight;
  if (made.weight.empty()) return;
  const ElementSpec& element = data.element_spec();
  const TensorType& type = element.columns[element.find(made.weight)].type;
  if (type.shape.rank() > 0 || type.dtype == DType::kString)
    throw InvalidArgumentError(str("data.weight: \"", made.weight, "\" is ", type.to_string(),
                                   "; a column of one number per example is wanted"));
}

// The name and range of list numbers where features() makes the columns: a list's number is then a
// hash of its value, so long that no two lists have the same.
constexpr const char* kGroup = "data.identity";
constexpr std::int64_t kGroups = std::int64_t{1} << 62;

void take_group(FittedFeatures& made, const Job& job, const Dataset& data) {
  const std::string& group = job.data.identity();
  const std::string key = job.data.identity_key();
  if (group.empty()) return;
  std::vector<std::string> known;
  for (const ColumnSpec& column : data.element_spec().columns) known.push_back(column.name);
  if (std::ranges::find(known, group) == known.end()) {
    throw InvalidArgumentError(str(key, " names \"", group, "\", which is no column of the data",
                                   names_there(group, known)));
  }
  const TensorType& type = data.element_spec().columns[data.element_spec().find(group)].type;
  const bool whole = type.dtype == DType::kInt32 || type.dtype == DType::kInt64;
  if (type.shape.rank() > 0 || !(whole || (type.dtype == DType::kString && job.data.has_columns())))
    throw InvalidArgumentError(
        str(key, ": \"", group, "\" is ", type.to_string(), "; a column of one whole number ",
            job.data.has_columns() ? "or text " : "", "per example is wanted"));
  made.group = job.data.has_columns() ? kGroup : group;
  if (job.data.has_columns()) made.columns.push_back(group_column(job));
}

// Fits the label's scale, for formats of which nothing else is fitted.
LabelScale label_scale(const Job& job, const Dataset& data) {
  if (!job.model.standardize) return {};
  const NumericInput label = fit(data, fit_request(job)).numeric.back();
  return {label.mean, label.stddev};
}

// Reads the training data once more.
std::shared_ptr<const CandidateShares> shares_of(const Job& job, const Dataset& data) {
  constexpr std::size_t kCandidatesMax = 1 << 20;  // they are constants of every step
  std::map<std::int64_t, std::int64_t> counts;
  std::int64_t all = 0;
  const auto batches = open(data.features({group_column(job)}).batch(4096));
  while (const auto batch = batches->next())
    for (const std::int64_t candidate : batch->front().values<std::int64_t>()) {
      ++counts[candidate];
      ++all;
    }
  if (counts.size() > kCandidatesMax)
    throw InvalidArgumentError(str("data.candidate: \"", job.data.candidate, "\" has ",
                                   counts.size(),
                                   " different values in the training data; at most ",
                                   kCandidatesMax, " candidates are possible"));
  std::vector<std::int64_t> candidates;
  std::vector<float> log_share;
  for (const auto& [candidate, count] : counts) {
    candidates.push_back(candidate);
    log_share.push_back(std::log(static_cast<float>(count) / static_cast<float>(all)));
  }
  log_share.push_back(0);
  const auto n = static_cast<std::int64_t>(candidates.size());
  return std::make_shared<CandidateShares>(CandidateShares{
      Tensor::of<std::int64_t>({n}, candidates), Tensor::of<float>({n + 1}, log_share)});
}

// Only features() leaves out padding and makes parts of dates, and it makes all columns that are
// read then.
void add_columns_of_records(FittedFeatures& made, const JobFeatures& wanted) {
  for (const std::string& name : made.plain) made.columns.push_back(FeatureColumn::as_is(name));
  for (const std::string& name : wanted.ids) made.columns.push_back(ids_of(wanted, name));
  for (const std::string& name : {made.weight, made.group})
    if (!name.empty() && !wanted.id_rows.contains(name))
      made.columns.push_back(FeatureColumn::as_is(name));
}

// Counts the examples of formats without fitted columns; fit() refuses empty data of the others.
void count_examples(FittedFeatures& made, const Dataset& data) {
  made.examples = cardinality(data, &made.lines);
  if (made.examples == 0)
    throw InvalidArgumentError(
        str("data.train holds no examples. ", passed_over_text(made.lines, "data.train")));
}

std::vector<AgeRequest> ages_of(const JobFeatures& features) {
  std::vector<AgeRequest> ages;
  for (const auto& [column, dates] : features.dates)
    if (dates.age) ages.push_back({column, dates.until});
  return ages;
}

// Records hold numbers and ids that are ready to use: nothing is fitted, and their number is the
// file's size over a record's.
FittedFeatures features_of_numbers(const Job& job, const Dataset& data) {
  FittedFeatures made;
  for (const ColumnType& field : job.data.form().columns())
    if (field.dtype == DType::kFloat32 && field.name != job.data.label() &&
        field.name != job.data.weight)
      made.plain.push_back(field.name);
  add_ids(made, job.features);
  take_weight(made, job, data);
  take_group(made, job, data);
  count_examples(made, data);
  made.label = label_scale(job, data);
  if (!job.features.id_padding.empty() || !job.features.dates.empty()) {
    add_columns_of_records(made, job.features);
    add_date_parts(made, job.features);
    if (const FitRequest wanted{.ages = ages_of(job.features)}; !wanted.ages.empty())
      add_numeric(made, job, fit(data, wanted).ages);
    tell_bags(made, data.features(made.columns));
  }
  return made;
}

// One bag of ids, each with a value.
FittedFeatures features_of_bag(const Job& job, const Dataset& data) {
  const IdBag bag = job.data.form().bag();
  FittedFeatures made;
  made.ids.push_back(
      {.name = bag.ids, .rows = bag.rows, .field = bag.ids, .bags = true, .weights = bag.values});
  take_group(made, job, data);
  count_examples(made, data);
  made.label = label_scale(job, data);
  return made;
}

}  // namespace

FeatureColumn group_column(const Job& job) {
  return FeatureColumn::hashed(job.data.identity(), kGroups, kGroup);
}

FitRequest fit_request(const Job& job) {
  FitRequest request;
  const auto with_label = [&job](FitRequest made) {
    if (job.model.standardize) made.numeric.push_back({.column = job.data.label()});
    return made;
  };
  if (!job.data.has_columns()) return with_label(request);
  for (const auto& name : job.features.numeric) request.numeric.push_back({.column = name});
  for (const auto& name : job.features.log1p)
    request.numeric.push_back({.column = name, .log1p = true});
  request.vocabularies = job.features.vocabulary;
  request.vocabulary_options.min_count = job.features.vocabulary_min_count;
  request.ages = ages_of(job.features);
  return with_label(request);
}

FittedFeatures fit_features(const Job& job) {
  const JobFeatures& wanted = job.features;
  verify_label(job);
  const Dataset data = train_data(job);
  verify_named_columns(wanted, data.element_spec());
  const FeatureForm form = job.data.form().form();
  if (form == FeatureForm::kNumbers) return features_of_numbers(job, data);
  if (form == FeatureForm::kBag) return features_of_bag(job, data);
  FittedFeatures made;
  const Fit fitted = fit(data, fit_request(job));
  made.lines = fitted.lines;
  made.examples = fitted.examples;
  std::vector<NumericInput> numeric = fitted.numeric;
  if (job.model.standardize) {
    made.label = {numeric.back().mean, numeric.back().stddev};
    numeric.pop_back();
  }
  numeric.insert(numeric.end(), fitted.ages.begin(), fitted.ages.end());
  add_numeric(made, job, std::move(numeric));
  for (std::size_t i = 0; i < wanted.vocabulary.size(); ++i)
    add(made, FeatureColumn::vocabulary(wanted.vocabulary[i], fitted.vocabularies[i]));
  add_unfitted(made, wanted);
  add_ids(made, wanted);
  if (made.columns.empty())
    throw InvalidArgumentError("the job has no features: name columns under [features]");
  take_weight(made, job, data);
  if (!made.weight.empty()) made.columns.push_back(FeatureColumn::as_is(made.weight));
  take_group(made, job, data);
  if (job.model.objective == "retrieval") made.shares = shares_of(job, data);
  tell_bags(made, data.features(made.columns));
  return made;
}

// Without fitted columns the data's own columns serve, and features() would only drop them.
Dataset train_source(const Job& job, const FittedFeatures& features, const InputContext& context) {
  const Dataset data = train_data(job, context);
  return features.columns.empty() ? data : data.features(features.columns);
}

std::vector<EvaluationData> eval_sources(const Job& job, const FittedFeatures& features) {
  std::vector<EvaluationData> all = eval_data(job);
  if (features.columns.empty()) return all;
  for (EvaluationData& each : all) each.data = each.data.features(features.columns);
  return all;
}

std::vector<FeatureColumn> columns_of_model(const FittedFeatures& features) {
  std::vector<FeatureColumn> columns = features.columns;
  std::erase_if(columns, [&](const FeatureColumn& column) {
    return column.name == kGroup ||
           (column.kind == FeatureColumn::Kind::kAsIs && column.name == features.weight);
  });
  return columns;
}

Dataset examples_to_predict(const Job& job, const FittedFeatures& features) {
  std::vector<FeatureColumn> columns = columns_of_model(features);
  const Dataset data = data_to_predict(job);
  return columns.empty() ? data : data.features(std::move(columns));
}

Array FittedFeatures::weights_of(const Features& features) const {
  if (weight.empty()) return {};
  const Array& weights = features[weight];
  return weights.dtype() == DType::kFloat32 ? weights : cast(weights, DType::kFloat32);
}

Array FittedFeatures::groups_of(const Features& features) const {
  return group.empty() ? Array() : features[group];
}

namespace {

// The features that a cross combines are embedded beside it, and their own lookups refuse ids that
// are not theirs.
Array crossed_ids(const IdFeature& cross, const Features& features) {
  std::vector<std::int64_t> rows;
  std::vector<Array> ids;
  for (const IdFeature& one : cross.crossed) {
    rows.push_back(one.rows);
    const Array of_one = one.of(features).values;
    ids.push_back(of_one.dtype() == DType::kInt64 ? of_one : cast(of_one, DType::kInt64));
  }
  return nn::IdCross(std::move(rows), cross.rows)(ids);
}

}  // namespace

// Reshaped to [-1], because the batch's size is not known when this is traced.
nn::Ids IdFeature::of(const Features& features) const {
  if (!crossed.empty()) return {crossed_ids(*this, features)};
  nn::Ids ids{features[field]};
  if (value >= 0) ids.values = reshape(slice(ids.values, 1, value, 1), {-1});
  if (bags) ids.row_splits = features.row_splits(field);
  if (!weights.empty()) ids.weights = features[weights];
  return ids;
}

}  // namespace cairn::tools
