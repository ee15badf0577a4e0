// A field of this file is a promise to other people's scripts: add, but never rename. What is not
// known is null, not a number that looks like an answer. tools/job/train/user_files.cc knows a
// report by three of the fields.
#include "tools/job/run/report.h"

#include "coordinator/engine/staleness_json.h"
#include "core/base/json.h"
#include "tools/job/toml/job_words.h"

namespace cairn::tools {
namespace {

// Fields that the strategy does not have are null.
Json strategy_json(const Job& job, const TrainingOutcome& outcome) {
  const JobStrategy& strategy = job.strategy;
  const bool servers = strategy.kind == "parameter_server";  // of hybrid it is not asked
  const bool bounded = servers && strategy.consistency == "bounded";
  return {{"kind", strategy.kind},
          {"replicas", outcome.replicas},
          {"consistency", servers ? Json(strategy.consistency) : Json(nullptr)},
          {"max_staleness", bounded ? Json(strategy.max_staleness) : Json(nullptr)}};
}

Json cluster_json(const Job& job) {
  const JobCluster& cluster = job.cluster;
  if (!job.strategy.on_workers()) return nullptr;
  if (!job.strategy.on_servers())
    return {{"workers", cluster.workers}, {"transport", cluster.transport}, {"wire", cluster.wire}};
  return {{"ps", cluster.ps},
          {"workers", cluster.workers},
          {"replicas", cluster.ps_loss.replicas},
          {"shards", cluster.shards},
          {"lanes", cluster.lanes},
          {"threads_why", cluster.threads_why.empty() ? Json(nullptr) : Json(cluster.threads_why)},
          {"device", cluster.device.empty() ? "auto" : cluster.device},
          {"deterministic", cluster.deterministic},
          {"pipeline_depth", cluster.pipeline_depth},
          {"transport", cluster.transport},
          {"wire", cluster.wire},
          {"arithmetic", cluster.arithmetic}};
}

// The address is in the run's cluster.json, if the service is its own.
Json data_service_json(const Job& job) {
  const JobService& service = job.data.service;
  if (!service.given) return nullptr;
  return {{"mode", service.mode}, {"job", service.job}, {"address", service.address}};
}

Json staleness_json(const Job& job, const EngineStats& stats) {
  if (!job.strategy.on_servers()) return nullptr;
  return {{"mean", stats.staleness_mean},
          {"max", stats.staleness_max},
          {"p50", stats.staleness.quantile(0.5)},
          {"p99", stats.staleness.quantile(0.99)},
          {"histogram", histogram_json(stats.staleness)}};
}

// Null: the job does not stop early, or no evaluation came to a number.
Json best_json(const TrainingOutcome& outcome) {
  if (!outcome.best) return nullptr;
  return {{"checkpoint", outcome.best->checkpoint},
          {"step", outcome.best->step},
          {"monitor", outcome.best->monitor},
          {"value", outcome.best->value}};
}

// By replica; null if there was no other replica to meet.
Json collectives_json(const TrainingOutcome& outcome) {
  if (outcome.collectives.empty()) return nullptr;
  Json all = Json::array();
  for (const CollectiveCounts& each : outcome.collectives)
    all.push_back({{"calls", each.calls},
                   {"bytes", each.bytes},
                   {"held_seconds", each.held_seconds},
                   {"waited_seconds", each.waited_seconds}});
  return all;
}

Json skipped_json(const LinesRead& lines) {
  Json first = Json::array();
  for (const std::string& row : lines.first_skipped) first.push_back(in_job_words(row));
  return {{"rows", lines.skipped},
          {"first", std::move(first)},
          {"empty_files", lines.empty_files.size()}};
}

Json left_out_json(const LinesRead& lines) {
  return {{"where", lines.filtered}, {"unknown_label", lines.unlabelled}};
}

}  // namespace

std::string report_json(const Job& job, const TrainingOutcome& outcome,
                        const std::map<std::string, int>& restarts, const LinesRead& train_lines) {
  const EngineStats& stats = outcome.stats;
  Json report{
      {"job", job.name},
      {"completed", !outcome.ended_early() && outcome.failure.empty()},
      {"error", outcome.failure.empty() ? Json(nullptr) : Json(in_job_words(outcome.failure))},
      {"strategy", strategy_json(job, outcome)},
      {"cluster", cluster_json(job)},
      {"data_service", data_service_json(job)},
      {"metrics", Json::object()},
      {"validation", outcome.validation.empty() ? Json(nullptr) : Json::object()},
      {"loss", outcome.loss},
      {"steps", outcome.steps},
      {"examples", outcome.examples},
      {"seconds", outcome.seconds},
      {"examples_per_s", outcome.examples_per_s},
      {"staleness", staleness_json(job, stats)},
      {"collectives", collectives_json(outcome)},
      {"gpus", outcome.gpus.json()},
      {"restarts", Json::object()},
      {"retried_closures", stats.retried},
      {"lost_updates", stats.lost_updates},
      {"skipped_rows", stats.skipped_rows},
      {"skipped",
       {{"train", skipped_json(train_lines)}, {"test", skipped_json(outcome.test_lines)}}},
      {"left_out",
       {{"train", left_out_json(train_lines)}, {"test", left_out_json(outcome.test_lines)}}},
      {"losses", Json::array()},
      {"checkpoint", outcome.checkpoint.empty() ? stats.last_checkpoint : outcome.checkpoint},
      {"model", outcome.model.empty() ? Json(nullptr) : Json(outcome.model)},
      {"best", best_json(outcome)},
      {"stopped_early", outcome.stopped_early},
      {"checkpoints_saved", stats.checkpoints},
      {"checkpoints_failed", stats.checkpoints_failed},
      {"last_checkpoint_error",
       stats.checkpoint_error.empty() ? Json(nullptr) : Json(stats.checkpoint_error)},
      {"last_cut_seconds", stats.last_cut_seconds}};
  for (const auto& [name, value] : outcome.metrics) report["metrics"][name] = value;
  for (const auto& [name, value] : outcome.validation) report["validation"][name] = value;
  for (const auto& [role, count] : restarts) report["restarts"][role] = count;
  // Times below 0 mean that it has not happened.
  auto or_null = [](double seconds) { return seconds < 0 ? Json(nullptr) : Json(seconds); };
  for (const LossReport& loss : stats.losses)
    report["losses"].push_back(
        {{"task", loss.task},
         {"reason", loss.reason},
         {"at_seconds", loss.at_seconds},
         {"back_after_seconds", or_null(loss.back_after_seconds)},
         {"first_push_after_seconds", or_null(loss.first_push_after_seconds)},
         {"lost_updates", loss.lost_updates}});
  return json_text(report, 2) + "\n";
}

}  // namespace cairn::tools
