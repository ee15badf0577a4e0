// The job file, section by section. Each read_ function asks its table for every key that exists
// and then refuses what is left, so a misspelt key is an error and never a default that was meant
// to be changed.
//
// Two kinds of checks are apart: here, that a text has the right form; in job_limits.cc, that a
// value is possible, because flags bring values too.
#include "tools/job/spec/job.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "core/base/json.h"
#include "core/disk/disk.h"
#include "tools/job/spec/job_limits.h"
#include "tools/job/spec/job_objective.h"
#include "tools/job/spec/job_strategy.h"
#include "tools/job/toml/toml_json.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

// Keys of other objectives are refused as well.
void read_objective(TomlTable& table, JobModel& model) {
  table.read("objective", model.objective);
  table.one_of("objective", model.objective, objectives());
  if (model.objective == "regression") {
    table.read("loss", model.loss);
    model.standardize = true;
    table.read("standardize", model.standardize);
    if (model.loss == "huber") table.read("huber_delta", model.huber_delta);
  }
  if (model.objective == "ranking") {
    model.loss = ranking_losses().front();
    table.read("loss", model.loss);
  }
  if (model.objective == "binary") read_threshold(table, model.threshold);
  if (model.objective == "binary" || model.objective == "multiclass")
    table.read("class_weights", model.class_weights);
  if (model.objective != "multiclass") return;
  const toml::node* found = table.node("classes");
  if (found == nullptr)
    throw InvalidArgumentError(
        table.located("objective = \"multiclass\" needs classes = N, or a list of their texts"));
  if (found->is_integer()) {
    model.classes = table.convert<std::int64_t>(*found, "classes");
  } else {
    model.class_texts = table.convert<std::vector<std::string>>(*found, "classes");
    model.classes = static_cast<std::int64_t>(model.class_texts.size());
  }
}

void read_early_stopping(TomlTable table, JobEarlyStopping& stopping) {
  table.read("monitor", stopping.monitor);
  table.read("patience", stopping.patience);
  table.read("min_delta", stopping.min_delta);
  table.read("restore_best", stopping.restore_best);
  table.refuse_unknown();
}

// Where it begins is beside the job file, as its data is.
JobWarmStart read_warm_start(TomlTable table, const std::string& path) {
  JobWarmStart start;
  table.read("from", start.from);
  if (!start.from.empty())
    start.from =
        (std::filesystem::absolute(path).parent_path() / start.from).lexically_normal().string();
  table.read("include", start.include);
  table.read("exclude", start.exclude);
  table.table("rename").each([&](const std::string& from, const toml::node& to) {
    start.rename[from] = table.convert<std::string>(to, "rename");
  });
  table.read("slots", start.slots);
  table.refuse_unknown();
  return start;
}

// Keys of other kinds of model are not asked for, and so are refused: they would have no effect.
void read_model(TomlTable table, JobModel& model) {
  table.read("objective", model.objective);
  if (model.objective == "retrieval") model.kind = "two_tower";
  table.read("kind", model.kind);
  table.one_of("kind", model.kind, model_kinds());
  table.read("embedding_dim", model.embedding_dim);
  table.read("hidden", model.hidden);
  if (model.kind == "dlrm" || model.kind == "dcn_v2" || model.kind == "deepfm")
    table.read("bottom", model.bottom);
  if (model.kind == "dcn_v2") table.read("cross_layers", model.cross_layers);
  if (model.kind == "two_tower") {
    table.read("query", model.query);
    table.read("candidate", model.candidate);
    table.read("temperature", model.temperature);
    table.read("normalize", model.normalize);
  }
  if (model.kind != "wide") table.read("combiner", model.combiner);
  table.read("seed", model.seed);
  table.read("hashed_from", model.hashed_from);
  read_objective(table, model);
  table.refuse_unknown();
}

// A share may go without quotes: 0.1 and "0.1" mean the same.
void read_device_cache(TomlTable& table, JobCluster& cluster) {
  const toml::node* found = table.node("device_cache");
  if (found == nullptr) return;
  cluster.device_cache = found->is_number() ? str(*found->value<double>())
                                            : table.convert<std::string>(*found, "device_cache");
}

// "auto", or how many.
void read_threads(TomlTable& table, const char* key, int& threads) {
  const toml::node* found = table.node(key);
  if (found == nullptr || (found->is_string() && *found->value<std::string>() == "auto")) return;
  threads = table.convert<int>(*found, key);
}

void read_cluster(TomlTable table, JobCluster& cluster) {
  table.read("ps", cluster.ps);
  table.read("workers", cluster.workers);
  table.read("replicas", cluster.ps_loss.replicas);
  read_threads(table, "shards", cluster.shards);
  read_threads(table, "lanes", cluster.lanes);
  table.read("memory_limit", cluster.memory_limit);
  table.read("row_log", cluster.row_log);
  table.read("pipeline_depth", cluster.pipeline_depth);
  table.read("send_window", cluster.send_window);
  table.read("transport", cluster.transport);
  table.read("arithmetic", cluster.arithmetic);
  table.read("wire", cluster.wire);
  table.read("device", cluster.device);
  table.read("deterministic", cluster.deterministic);
  read_device_cache(table, cluster);
  table.read("partition_min_bytes", cluster.partition_min_bytes);
  table.read("ps_wait_seconds", cluster.ps_loss.ps_wait_seconds);
  table.read("recovery", cluster.ps_loss.recovery);
  table.read("restore_on_demand", cluster.ps_loss.restore_on_demand);
  table.read("steps_per_closure", cluster.steps_per_closure);
  table.refuse_unknown();
}

// 500 and "500" mean the same; only the number of steps may go without quotes.
Every read_every(TomlTable& table, const Every& otherwise) {
  const toml::node* found = table.node("every");
  if (found == nullptr) return otherwise;
  std::string text = found->is_integer() ? std::to_string(*found->value<std::int64_t>())
                                         : table.convert<std::string>(*found, "every");
  return parse_every(text, str(table.place(*found), ": ", table.path("every")));
}

// The node of a key such as "features.hashed.COLUMN", for the line number of a message. A column's
// name may hold dots, so what follows the section is looked up whole before it is split.
const toml::node* find(const toml::table& root, const std::string& key) {
  const auto dot = key.find('.');
  const toml::node* section = root.get(key.substr(0, dot));
  if (dot == std::string::npos || section == nullptr || !section->is_table()) return section;
  const std::string rest = key.substr(dot + 1);
  if (const toml::node* found = section->as_table()->get(rest)) return found;
  const auto column = rest.find('.');
  const toml::node* table = section->as_table()->get(rest.substr(0, column));
  if (column == std::string::npos || table == nullptr || !table->is_table()) return table;
  const toml::node* found = table->as_table()->get(rest.substr(column + 1));
  return found == nullptr ? table : found;
}

}  // namespace

// Shares and seconds need not be whole, steps must be.
Every parse_every(const std::string& text, const std::string& where) {
  Every every;
  if (text.empty() || text == "never") return every;
  std::size_t used = 0;
  double number = -1;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  std::string unit = text.substr(std::min(used, text.size()));
  constexpr double kStepsMax = 0x1p53;  // every whole number up to it is a double
  constexpr double kSecondsMax = 1e9;   // longer than any run, and still within a Duration
  if (number > 0 && number <= kStepsMax && unit.empty() && number == std::floor(number))
    every.steps = static_cast<std::int64_t>(number);
  else if (number > 0 && number <= kSecondsMax && unit == "s")
    every.seconds = number;
  else if (number > 0 && number <= 100 && unit == "%")
    every.share = number / 100;
  else
    throw InvalidArgumentError(
        str(where, " is \"", text,
            "\": a number of steps, seconds (\"30s\") or a share of the run (\"10%\") is wanted"));
  return every;
}

namespace {

// Values are verified last, when all sections are known, with the line of the key in question.
Job job_of_table(const toml::table& parsed, const std::string& text, const std::string& path) {
  Job job;
  job.text = text;
  TomlTable root(&parsed, "", path);
  job.name = std::filesystem::path(path).stem().string();
  root.read("name", job.name);
  read_data(root.table("data"), job.data);
  read_validation(root.table("validation"), job.validation);
  read_features(root.table("features"), job.features);
  read_model(root.table("model"), job.model);
  job.tables = JobTables::read(root.table("table"));
  job.optimizer = read_optimizer(root.table("optimizer"), {}, ModelPart::kDeep);
  job.wide_optimizer =
      read_optimizer(root.table("wide_optimizer"), job.optimizer, ModelPart::kWide);
  job.strategy = read_strategy(root.table("strategy"));
  read_cluster(root.table("cluster"), job.cluster);
  TomlTable checkpoint = root.table("checkpoint");
  checkpoint.read("folder", job.checkpoint.folder);
  checkpoint.read("local_folder", job.checkpoint.local_folder);
  checkpoint.read("keep_last", job.checkpoint.keep_last);
  checkpoint.read("keep_every", job.checkpoint.keep_every);
  checkpoint.read("full_every", job.checkpoint.full_every);
  checkpoint.read("consolidate_after", job.checkpoint.consolidate_after);
  checkpoint.read("rows", job.checkpoint.rows);
  checkpoint.read("slots", job.checkpoint.slots);
  checkpoint.read("compression", job.checkpoint.compression);
  checkpoint.read("encode", job.checkpoint.encode);
  job.checkpoint.every = read_every(checkpoint, job.checkpoint.every);
  checkpoint.refuse_unknown();
  job.warm_start = read_warm_start(root.table("warm_start"), path);
  TomlTable evaluation = root.table("evaluation");
  evaluation.read("batch", job.evaluation.batch);
  evaluation.read("metrics", job.evaluation.metrics);
  job.evaluation.every = read_every(evaluation, job.evaluation.every);
  evaluation.refuse_unknown();
  job.early_stopping.given = root.has("early_stopping");
  read_early_stopping(root.table("early_stopping"), job.early_stopping);
  read_callbacks(root.table("callbacks"), job.callbacks);
  root.refuse_unknown();
  const PlaceOf place = [&](const std::string& key) {
    const toml::node* found = find(parsed, key);
    return str(found == nullptr ? path : root.place(*found), ": ", key);
  };
  GivenKeys given;
  for (const char* section : {"data", "features", "strategy", "cluster"})
    root.table(section).each(
        [&](const std::string& key, const toml::node&) { given.insert(str(section, ".", key)); });
  verify_job(job, place, given);
  return job;
}

}  // namespace

// toml++ throws errors of its own for what is not TOML, and our TOML_ASSERT throws InvalidArgument
// without a place (toml_table.h).
Job parse_job(const std::string& text, const std::string& path) {
  toml::table parsed;
  try {
    parsed = toml::parse(text, path);
  } catch (const toml::parse_error& e) {
    throw InvalidArgumentError(
        str(path, ":", e.source().begin.line, ":", e.source().begin.column, ": ", e.description()));
  } catch (const InvalidArgumentError& e) {
    throw InvalidArgumentError(
        str(path, ": ", e.what(), "; look for a key or table name with odd characters"));
  }
  return job_of_table(parsed, text, path);
}

Job job_of_values(const std::string& values, const std::string& beside) {
  const toml::table table = table_of_json(parse_json(values, "the job"), "job");
  std::ostringstream text;
  text << table << "\n";
  return job_of_table(table, text.str(), beside.empty() ? "job" : beside + "/job");
}

Job read_job(const std::string& path) { return parse_job(system_disk().read(path), path); }

}  // namespace cairn::tools
