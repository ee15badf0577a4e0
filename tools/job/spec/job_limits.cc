#include "tools/job/spec/job_limits.h"

#include <algorithm>
#include <cmath>

#include "core/base/device_cache.h"
#include "core/base/error.h"
#include "core/base/memory_limit.h"
#include "core/kernels/chosen_devices.h"
#include "core/tensor/known_names.h"
#include "strategy/servers/ps_replicas.h"
#include "tools/job/spec/job_callbacks.h"
#include "tools/job/spec/job_conditions.h"
#include "tools/job/spec/job_crosses.h"
#include "tools/job/spec/job_dates.h"
#include "tools/job/spec/job_format.h"
#include "tools/job/spec/job_metrics.h"
#include "tools/job/spec/job_objective.h"
#include "tools/job/spec/job_retrieval.h"
#include "tools/job/spec/job_service.h"
#include "tools/job/spec/job_strategy.h"
#include "tools/job/toml/known_name.h"

namespace cairn::tools {
namespace {

// Bounds that no sensible job reaches. Below them, nothing that is computed from a value overflows,
// so later code need not check.
constexpr std::int64_t kMany = std::int64_t{1} << 40, kTasksMax = 512, kUnitsMax = 1 << 20;
constexpr std::int64_t kRowsMax = std::int64_t{1} << 46;  // of a hashed table
constexpr std::int64_t kClassesMax = 4096;                // outputs, each a row of the last layer
constexpr double kSecondsMax = 1e9, kEpochsMax = 1e9;

// One check per kind of value, each with the place where the value was given.
class Limits {
 public:
  explicit Limits(const PlaceOf& place) : place_(place) {}

  void whole(const std::string& key, std::int64_t value, std::int64_t least,
             std::int64_t most) const {
    if (value >= least && value <= most) return;
    throw InvalidArgumentError(str(place_(key), " is ", value, ": a whole number from ", least,
                                   " to ", most, " is wanted"));
  }
  void each(const std::string& key, const std::vector<std::int64_t>& values,
            std::int64_t most) const {
    for (const std::int64_t value : values) whole(key, value, 1, most);
  }
  void above_0(const std::string& key, double value, double most) const {
    if (value > 0 && value <= most) return;  // not so if it is NaN
    throw InvalidArgumentError(
        str(place_(key), " is ", value, ": a number above 0, at most ", most, ", is wanted"));
  }
  void name(const std::string& key, const std::string& value,
            const std::vector<std::string>& known) const {
    verify_known(place_(key), value, known);
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const {
    throw InvalidArgumentError(str(place_(key), why));
  }

 private:
  const PlaceOf& place_;
};

void verify_numbers(const Job& job, const Limits& limits) {
  limits.whole("data.batch", job.data.batch, 1, kMany);
  limits.whole("data.steps", job.data.steps, 0, kMany);
  if (job.data.steps == 0) limits.above_0("data.epochs", job.data.epochs.value_or(1), kEpochsMax);
  limits.whole("data.shuffle", job.data.shuffle.value_or(0), 0, kMany);
  limits.name("data.visitation", job.data.visitation, {"by_worker", "exactly_once"});
  if (!(job.validation.share > 0 && job.validation.share < 1))  // not so if it is NaN
    limits.refuse("validation.share",
                  str(" is ", job.validation.share, ": a number above 0 and below 1 is wanted"));
  limits.name("data.format", job.data.format, data_formats());
  limits.name("model.combiner", job.model.combiner, {"mean", "sum", "sqrtn"});
  limits.whole("model.embedding_dim", job.model.embedding_dim, 1, kUnitsMax);
  limits.each("model.hidden", job.model.hidden, kUnitsMax);
  limits.each("model.bottom", job.model.bottom, kUnitsMax);
  limits.whole("model.cross_layers", job.model.cross_layers, 1, 1024);
  limits.whole("model.hashed_from", job.model.hashed_from, 0, kRowsMax);
  limits.name("model.kind", job.model.kind, model_kinds());
  limits.whole("checkpoint.keep_last",
               static_cast<std::int64_t>(std::min<std::uint64_t>(job.checkpoint.keep_last, kMany)),
               1, kMany);
  limits.whole("checkpoint.keep_every",
               static_cast<std::int64_t>(std::min<std::uint64_t>(job.checkpoint.keep_every, kMany)),
               0, kMany);
  limits.name("checkpoint.rows", job.checkpoint.rows, {"exact", "bf16", "int8"});
  limits.name("checkpoint.slots", job.checkpoint.slots, {"exact", "bf16", "dropped"});
  limits.name("checkpoint.compression", job.checkpoint.compression, {"none", "zstd"});
  limits.whole("checkpoint.full_every",
               static_cast<std::int64_t>(std::min<std::uint64_t>(job.checkpoint.full_every, kMany)),
               1, kMany);
  limits.whole(
      "checkpoint.consolidate_after",
      static_cast<std::int64_t>(std::min<std::uint64_t>(job.checkpoint.consolidate_after, kMany)),
      0, kMany);
  limits.whole("evaluation.batch", job.evaluation.batch, 1, kMany);
}

void verify_class_weights(const JobModel& model, const Limits& limits) {
  if (model.class_weights.empty()) return;
  const auto classes = static_cast<std::size_t>(model.objective == "binary" ? 2 : model.classes);
  if (model.class_weights.size() != classes)
    limits.refuse("model.class_weights",
                  str(" are ", model.class_weights.size(), " numbers, and there are ", classes,
                      " classes: one number each is wanted"));
  for (const double weight : model.class_weights)
    limits.above_0("model.class_weights", weight, 1e9);
}

void verify_objective(const Job& job, const Limits& limits) {
  const JobModel& model = job.model;
  limits.name("model.objective", model.objective, objectives());
  const bool ranks = model.objective == "ranking";
  limits.name("model.loss", model.loss, ranks ? ranking_losses() : regression_losses());
  limits.above_0("model.huber_delta", model.huber_delta, 1e30);
  for (const std::string& metric : job.evaluation.metrics)
    if (!is_known_metric(model.objective, metric))
      limits.name("evaluation.metrics", metric, known_metrics(model.objective));
  if (model.objective != "binary" && !ranks && job.data.truth.is_threshold())
    limits.refuse("model.objective",
                  str(" is \"", model.objective, "\", and ", job.data.label_key(),
                      " has a threshold, which is of \"binary\" and \"ranking\""));
  if (job.data.truth.skip_unknown && job.data.form().cells() == nullptr)
    limits.refuse(job.data.label_key(), ": unknown = \"skip\" is of csv and text");
  if (!model.threshold.rule.empty() && !job.validation.given())
    limits.refuse("model.threshold",
                  str(" is \"", model.threshold.rule,
                      "\", which is found on validation data: name some in [validation]"));
  verify_class_weights(model, limits);
  if (model.objective != "multiclass") return;
  limits.whole("model.classes", model.classes, 2, kClassesMax);
  if (!model.kind.starts_with("wide") && model.kind != "deep")
    limits.refuse("model.kind", str(" is \"", model.kind,
                                    "\", which gives one number: of model.objective = "
                                    "\"multiclass\" are \"wide\", \"deep\" and \"wide_deep\""));
  if (!model.class_texts.empty() && job.data.form().cells() == nullptr)
    limits.refuse("model.classes",
                  str(" are texts, and the label of data.format = \"", job.data.format,
                      "\" is a class's number: give the number of classes"));
}

// The examples of a list have to stay together where losses compare them; metrics collect them.
void verify_lists(const Job& job, const Limits& limits) {
  const JobData& data = job.data;
  const bool ranks = job.model.ranks();
  const std::string listed = job.model.objective == "binary" ? metric_of_lists(job) : "";
  if (!ranks && listed.empty()) {
    if (!data.group.empty())
      limits.refuse("data.group",
                    " is of model.objective = \"ranking\", or of metrics of lists, which a binary "
                    "model may have: name \"grouped_auc\" in evaluation.metrics, or remove it");
    return;
  }
  const std::string key = ranks ? "model.objective" : "evaluation.metrics";
  const std::string what = str(ranks ? " is \"ranking\"" : " names \"" + listed + "\"");
  if (data.group.empty())
    limits.refuse(key, what + ": name with data.group the column whose equal values make a list");
  if (data.form().fixed_columns())
    limits.refuse(key, str(what, ", and data.format = \"", data.format,
                           "\" has no column that says to which list a line belongs"));
  if (data.group == data.label() || data.group == data.weight)
    limits.refuse("data.group", str(" is \"", data.group, "\", which is the ",
                                    data.group == data.weight ? "weight" : "label"));
  if (!ranks) return;
  if (data.shuffle.value_or(0) > 0)
    limits.refuse("data.shuffle",
                  str(" is ", *data.shuffle,
                      ", and model.objective is \"ranking\": shuffled "
                      "examples lie no longer beside those of their list; shuffle the files' lists "
                      "beforehand"));
  if (data.service.given)
    limits.refuse("data.service",
                  ": a data service deals out examples, and model.objective = \"ranking\" needs "
                  "those of a list together: read the data without one");
}

// It has to be evaluated on the way, on something.
void verify_early_stopping(const Job& job, const Limits& limits) {
  const JobEarlyStopping& stopping = job.early_stopping;
  if (!stopping.given) return;
  if (!stopping.monitor.empty())
    limits.name("early_stopping.monitor", stopping.monitor, eval_metrics(job));
  if ((stopping.monitor.empty() ? eval_metrics(job).front() : stopping.monitor) == "calibration")
    limits.refuse("early_stopping.monitor",
                  " is \"calibration\", which is best near 1 and not the larger or the smaller the "
                  "better: name another metric");
  limits.whole("early_stopping.patience", stopping.patience, 1, kTasksMax * kTasksMax);
  if (!(stopping.min_delta >= 0))
    limits.refuse("early_stopping.min_delta",
                  str(" is ", stopping.min_delta, ": a number from 0 on is wanted"));
  if (!job.evaluation.every.set())
    limits.refuse("early_stopping",
                  " goes by evaluations on the way: say with evaluation.every when they are");
  if (!job.validation.given() && job.data.test.empty())
    limits.refuse("early_stopping", " goes by evaluations: name data for them in [validation]");
}

// These keys have flags of the same names. cairn-ps and cairn-worker would refuse such numbers too,
// but only after the cluster was started, and in their logs.
void verify_cluster(const JobCluster& cluster, const Limits& limits) {
  limits.whole("cluster.ps", cluster.ps, 1, kTasksMax);
  limits.whole("cluster.workers", cluster.workers, 1, kTasksMax);
  // Whether there are as many ps is known once the cluster is: cairn-coordinator's is there.
  limits.whole("cluster.replicas", cluster.ps_loss.replicas, 1, kPsReplicasMax);
  for (const auto& [key, threads] :
       {std::pair("cluster.shards", cluster.shards), std::pair("cluster.lanes", cluster.lanes)})
    if (threads != kAutoThreads) limits.whole(key, threads, 1, kTasksMax);
  limits.whole("cluster.pipeline_depth", cluster.pipeline_depth, 1, 1024);
  limits.whole("cluster.send_window", cluster.send_window, 1, 1 << 16);
  limits.whole("cluster.steps_per_closure", cluster.steps_per_closure, 1, 1 << 20);
  limits.whole("cluster.partition_min_bytes", cluster.partition_min_bytes, 1, kMany);
  limits.above_0("cluster.ps_wait_seconds", cluster.ps_loss.ps_wait_seconds, kSecondsMax);
  limits.name("cluster.transport", cluster.transport, {"auto", "tcp", "unix"});
  limits.name("cluster.arithmetic", cluster.arithmetic,
              {"float32", "tf32", "bfloat16", "mixed_bfloat16"});
  limits.name("cluster.wire", cluster.wire, {"float32", "bfloat16"});
  try {
    if (!cluster.device.empty()) verify_device_choice(cluster.device);
  } catch (const InvalidArgumentError& error) {
    limits.refuse("cluster.device", str(": ", error.what()));
  }
  try {
    parse_device_cache(cluster.device_cache);
  } catch (const InvalidArgumentError& error) {
    limits.refuse("cluster.device_cache", str(": ", error.what()));
  }
  try {
    parse_memory_limit(cluster.memory_limit);
  } catch (const InvalidArgumentError& error) {
    limits.refuse("cluster.memory_limit", str(": ", error.what()));
  }
}

void verify_text(const std::string& key, const JobFeatures::Text& text, const Limits& limits) {
  constexpr std::int64_t kNgramsMax = 16;
  const Ngrams& ngrams = text.ngrams;
  limits.whole(key, text.buckets, 1, kRowsMax);
  limits.whole(key + ".words", ngrams.words_max, 0, kNgramsMax);
  if (ngrams.characters_max == 0 && ngrams.words_max > 0) return;
  limits.whole(key + ".characters", ngrams.characters_min, 1, kNgramsMax);
  limits.whole(key + ".characters", ngrams.characters_max, ngrams.characters_min, kNgramsMax);
}

// FeatureColumn checks the same again when it is made, without knowing the job's key.
void verify_feature_numbers(const JobFeatures& features, const Limits& limits) {
  limits.whole("features.vocabulary_min_count", features.vocabulary_min_count, 1, kMany);
  for (const auto& [column, buckets] : features.hashed)
    limits.whole("features.hashed." + column, buckets, 1, kRowsMax);
  for (const auto& [column, text] : features.text)
    verify_text("features.text." + column, text, limits);
  for (const auto& [column, rows] : features.id_rows)
    limits.each("features.ids." + column, rows, kRowsMax);
  for (const auto& cross : features.crosses)
    limits.whole("features.crosses", cross.buckets, 1, kRowsMax);
  for (const auto& [column, boundaries] : features.bucketised) {
    const std::string key = "features.bucketised." + column;
    const auto finite = [](float boundary) { return std::isfinite(boundary); };
    if (boundaries.empty() || !std::all_of(boundaries.begin(), boundaries.end(), finite) ||
        std::adjacent_find(boundaries.begin(), boundaries.end(), std::greater_equal<>()) !=
            boundaries.end())
      limits.refuse(key, " must be finite numbers, at least one, each above the one before it");
  }
}

// Which features no column can be.
void verify_feature_types(const Job& job, const Limits& limits) {
  if (!job.data.has_columns()) return;
  const std::vector<ColumnType> columns = job.data.form().columns();
  std::vector<std::string> names;
  for (const ColumnType& column : columns) names.push_back(column.name);
  for_each_named_column(job.features, [&](const std::string& key, const std::string& column) {
    const auto found = std::ranges::find(columns, column, &ColumnType::name);
    if (found == columns.end() && key != "features.crosses")
      limits.refuse(key, str(" names \"", column, "\", which is no column of the data",
                             names_there(column, names)));
    if (found == columns.end()) return;  // a cross may name a feature, too
    const auto& [name, dtype, single] = *found;
    const bool text = dtype == DType::kString;
    const bool real = dtype == DType::kFloat32 || dtype == DType::kFloat64;
    const bool of_number =
        key == "features.numeric" || key == "features.log1p" || key == "features.bucketised";
    if (text && (of_number || key == "features.plain" || key == "features.ids"))
      limits.refuse(key, str(" names \"", column, "\", whose dtype is string, and numbers are ",
                             "wanted: give it one, \"", column, ":",
                             key == "features.ids" ? "int64" : "float32",
                             "\", or make ids of its texts under vocabulary or hashed"));
    if (of_number && !single)
      limits.refuse(key, str(" names \"", column, "\", which holds several values, and one number ",
                             "per example is wanted"));
    if (real && (key == "features.vocabulary" || key == "features.hashed"))
      limits.refuse(key, str(" names \"", column, "\", whose dtype is ", dtype_name(dtype),
                             ", and texts or whole numbers are wanted: give it dtype string or "
                             "int64, or name it under bucketised"));
  });
}

// `named` is what `key` names as the label or the weight.
void verify_is_no_feature(const Job& job, const std::string& named, const std::string& key,
                          const char* role, const Limits& limits) {
  if (named.empty()) return;
  for_each_named_column(
      job.features, [&](const std::string& of_feature, const std::string& column) {
        if (column != named) return;
        limits.refuse(of_feature, str(" holds \"", named, "\", which ", key, " names as the ", role,
                                      ": a column is a feature or the ", role));
      });
}

// A model that is shown what it is to predict predicts that, and nothing else: the test would look
// perfect.
void verify_label_and_weight(const Job& job, const Limits& limits) {
  const JobData& data = job.data;
  verify_is_no_feature(job, data.label(), data.label_key(), "label", limits);
  verify_is_no_feature(job, data.weight, "data.weight", "weight", limits);
  const CsvSchema* const cells = data.form().cells();
  for (const CsvColumn& column : cells == nullptr ? std::vector<CsvColumn>() : cells->columns)
    if (column.missing_indicator && !column.skip &&
        (column.name == data.label() || column.name == data.weight))
      limits.refuse(
          str("data.", data.format, ".columns"),
          str(": \"", column.name, "\" is the ", column.name == data.weight ? "weight" : "label",
              ", and its indicator would be a feature: remove "
              "\"indicator\""));
  if (!data.weight.empty() && data.weight == data.label())
    limits.refuse("data.weight", str(" is \"", data.weight, "\", which is the label"));
}

// Keys that the data format does not read would be ignored silently.
void verify_format(const Job& job, const GivenKeys& given, const Limits& limits) {
  const std::string& format = job.data.format;
  const auto refuse_if = [&](bool is_given, const std::string& key) {
    if (is_given)
      limits.refuse(key, str(" is not read with data.format = \"", format,
                             "\": remove it, or change the format"));
  };
  for (const std::string& other : data_formats())
    refuse_if(other != format && given.contains("data." + other), "data." + other);
  job.data.form().verify(
      job, [&](const std::string& key, const std::string& why) { limits.refuse(key, why); });
  if (job.data.has_columns()) return;
  const JobFeatures& features = job.features;
  refuse_if(!features.numeric.empty(), "features.numeric");
  refuse_if(!features.log1p.empty(), "features.log1p");
  refuse_if(!features.plain.empty(), "features.plain");
  refuse_if(!features.vocabulary.empty(), "features.vocabulary");
  refuse_if(!features.hashed.empty(), "features.hashed");
  refuse_if(!features.bucketised.empty(), "features.bucketised");
  refuse_if(!features.text.empty(), "features.text");
  if (job.data.form().form() != FeatureForm::kBag) return;
  refuse_if(!features.ids.empty(), "features.ids");
  refuse_if(!features.crosses.empty(), "features.crosses");
  refuse_if(!features.dates.empty(), "features.dates");
}

}  // namespace

// In the order of the documentation. job_model.cc makes each of them.
const std::vector<std::string>& model_kinds() {
  static const std::vector<std::string> all = {"wide_deep", "wide",   "deep",     "dlrm",
                                               "dcn_v2",    "deepfm", "two_tower"};
  return all;
}

void verify_job(const Job& job, const PlaceOf& place, const GivenKeys& given) {
  const Limits limits(place);
  verify_strategy(job, given, place);
  verify_numbers(job, limits);
  verify_objective(job, limits);
  verify_lists(job, limits);
  verify_retrieval(job, place);
  verify_early_stopping(job, limits);
  verify_callbacks(job, place);
  verify_conditions(job, place);
  verify_service(job, place);
  verify_cluster(job.cluster, limits);
  verify_feature_numbers(job.features, limits);
  verify_label_and_weight(job, limits);
  verify_feature_types(job, limits);
  verify_format(job, given, limits);
  verify_dates(job, place);
  verify_crosses(job, place);
}

}  // namespace cairn::tools
