#include "tools/job/spec/job_strategy.h"

#include <algorithm>

#include "core/base/error.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

constexpr std::int64_t kReplicasMax = 512, kStalenessMax = 1 << 20;

// A key, the kinds that read it, and what the others have in its place.
struct KeyOf {
  std::string key;
  std::vector<std::string> kinds;
  std::string instead;
};

const std::vector<KeyOf>& keys_of_kinds() {
  static const std::string ps = "parameter_server", workers = "multi_worker_mirrored",
                           hybrid = "hybrid";
  static const std::string none = "it starts no servers";
  static const std::vector<KeyOf> all = {
      {"cluster.ps", {ps, hybrid}, none},
      {"cluster.replicas", {ps, hybrid}, none},
      {"cluster.shards", {ps, hybrid}, none},
      {"cluster.memory_limit", {ps, hybrid}, none},
      {"cluster.row_log", {ps, hybrid}, none},
      {"cluster.lanes", {ps}, "its replicas take every step together, and lanes do not"},
      {"cluster.pipeline_depth", {ps, hybrid}, "its steps come one after another"},
      {"cluster.send_window", {ps, hybrid}, "its steps come one after another"},
      {"cluster.steps_per_closure", {ps}, "every replica has one share of each step"},
      {"cluster.partition_min_bytes", {ps, hybrid}, "it does not split variables"},
      {"cluster.ps_wait_seconds", {ps, hybrid}, none},
      {"cluster.recovery", {ps, hybrid}, none},
      {"cluster.restore_on_demand", {ps, hybrid}, none},
      {"cluster.workers", {ps, hybrid, workers}, "it starts no workers"},
      {"cluster.transport", {ps, hybrid, workers}, "it is one process"},
      {"cluster.wire", {ps, hybrid, workers}, "it is one process"},
      {"cluster.device_cache",
       {"one_device"},
       "its variables do not lie on a GPU, or whole for each replica"},
      {"strategy.consistency", {ps}, "its replicas are in step, or there is only one"},
      {"strategy.max_staleness", {ps}, "its replicas are in step, or there is only one"},
      {"strategy.replicas", {"mirrored", workers, "central_storage"}, ""}};
  return all;
}

std::string listed(const std::vector<std::string>& names, const char* last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? last : ", ") + names[i];
  return text;
}

// For a kind that does not read `replicas`: the setting that takes its place.
std::string instead_of_replicas(const std::string& kind) {
  if (kind == "parameter_server")
    return "its workers compute steps each at its own pace: cluster.workers and cluster.lanes say "
           "how many at once, and cluster.replicas on how many ps each row lies";
  if (kind == "hybrid")
    return "each worker is one replica: cluster.workers says how many, and cluster.replicas on how "
           "many ps each row lies";
  return "it has one replica";
}

void refuse_unread(const JobStrategy& strategy, const GivenKeys& given, const PlaceOf& place) {
  for (const KeyOf& one : keys_of_kinds()) {
    const bool read =
        std::find(one.kinds.begin(), one.kinds.end(), strategy.kind) != one.kinds.end();
    if (read || !given.contains(one.key)) continue;
    const std::string instead =
        one.key == "strategy.replicas" ? instead_of_replicas(strategy.kind) : one.instead;
    throw InvalidArgumentError(str(place(one.key), " is not read under strategy.kind = \"",
                                   strategy.kind, "\": ", instead, "; remove it, or train under ",
                                   listed(one.kinds, " or ")));
  }
}

struct NamedConsistency {
  std::string name;
  Consistency (*make)(const JobStrategy&);
};

// The values of strategy.consistency.
const std::vector<NamedConsistency>& consistencies() {
  static const std::vector<NamedConsistency> all = {
      {"asynchronous", [](const JobStrategy&) { return Consistency::asynchronous(); }},
      {"bounded", [](const JobStrategy& job) { return Consistency::bounded(job.max_staleness); }},
      {"synchronous", [](const JobStrategy&) { return Consistency::synchronous(); }}};
  return all;
}

void verify_whole(const std::string& place, std::int64_t value, std::int64_t most) {
  if (value < 1 || value > most)
    throw InvalidArgumentError(
        str(place, " is ", value, ": a whole number from 1 to ", most, " is wanted"));
}

}  // namespace

const std::vector<std::string>& strategy_kinds() {
  static const std::vector<std::string> all = {"parameter_server", "hybrid",
                                               "mirrored",         "multi_worker_mirrored",
                                               "central_storage",  "one_device"};
  return all;
}

JobStrategy read_strategy(TomlTable table) {
  JobStrategy strategy;
  table.read("kind", strategy.kind);
  table.read("consistency", strategy.consistency);
  table.read("max_staleness", strategy.max_staleness);
  table.read("replicas", strategy.replicas);
  table.refuse_unknown();
  return strategy;
}

Consistency consistency_of(const JobStrategy& strategy) {
  for (const NamedConsistency& one : consistencies())
    if (one.name == strategy.consistency) return one.make(strategy);
  return {};
}

// As the coordinator does (Checkpointer::verify_chain), but before anything is started.
void verify_consolidation(const JobCheckpoint& checkpoint, const PlaceOf& place) {
  if (checkpoint.consolidate_after == 0) return;
  const std::string given =
      str(place("checkpoint.consolidate_after"), " is ", checkpoint.consolidate_after);
  if (checkpoint.full_every <= checkpoint.consolidate_after)
    throw InvalidArgumentError(str(given, " and checkpoint.full_every ", checkpoint.full_every,
                                   ": no chain becomes so long; raise full_every above it"));
  if (checkpoint.rows == "int8" || checkpoint.slots == "dropped")
    throw InvalidArgumentError(str(given,
                                   ", which is for rows that lose nothing by being written "
                                   "again: not for int8, nor for dropped slots"));
}

// As the coordinator does (Checkpointer::verify_local_folder), but before anything is started.
void verify_local_folder(const Job& job, const PlaceOf& place) {
  const std::string& folder = job.checkpoint.local_folder;
  if (folder.empty()) return;
  const std::string given = str(place("checkpoint.local_folder"), " is \"", folder, "\"");
  if (!job.strategy.on_servers())
    throw InvalidArgumentError(str(given, ": it is for the rows of parameter servers, and under ",
                                   "strategy.kind = \"", job.strategy.kind,
                                   "\" one process writes all of them; remove it"));
  if (!folder.starts_with('/') || folder.ends_with('/'))
    throw InvalidArgumentError(str(given,
                                   ": give an absolute path without a slash at its end, as "
                                   "\"/data/cairn\", which every ps has on its machine"));
  if (job.checkpoint.consolidate_after > 0)
    throw InvalidArgumentError(str(given, " and checkpoint.consolidate_after ",
                                   job.checkpoint.consolidate_after,
                                   ": the coordinator makes chains full of what it has on its "
                                   "disk, and the rows are on those of the ps; remove one"));
}

// The kind first: what else may be given depends on it.
void verify_strategy(const Job& job, const GivenKeys& given, const PlaceOf& place) {
  const JobStrategy& strategy = job.strategy;
  verify_known(place("strategy.kind"), strategy.kind, strategy_kinds());
  refuse_unread(strategy, given, place);
  if (given.contains("strategy.replicas"))
    verify_whole(place("strategy.replicas"), strategy.replicas, kReplicasMax);
  if (!strategy.on_servers() && job.checkpoint.full_every > 1)
    throw InvalidArgumentError(
        str(place("checkpoint.full_every"), " is ", job.checkpoint.full_every,
            ": deltas are made by parameter servers, and under strategy.kind = \"", strategy.kind,
            "\" every checkpoint holds all rows; remove it"));
  verify_local_folder(job, place);
  verify_consolidation(job.checkpoint, place);
  if (strategy.kind != "parameter_server") return;
  std::vector<std::string> names;
  for (const NamedConsistency& one : consistencies()) names.push_back(one.name);
  verify_known(place("strategy.consistency"), strategy.consistency, names);
  if (strategy.consistency == "synchronous" && job.cluster.steps_per_closure != 1)
    throw InvalidArgumentError(
        str(place("cluster.steps_per_closure"), " is ", job.cluster.steps_per_closure,
            ": under strategy.consistency = \"synchronous\" every lane has one share of each step, "
            "so that a closure takes 1; remove it"));
  const bool bounded = strategy.consistency == "bounded";
  if (!bounded && given.contains("strategy.max_staleness"))
    throw InvalidArgumentError(
        str(place("strategy.max_staleness"), " bounds nothing while strategy.consistency is \"",
            strategy.consistency, "\": make that \"bounded\", or remove it"));
  if (bounded && strategy.max_staleness == 0 && !given.contains("strategy.max_staleness"))
    throw InvalidArgumentError(
        str(place("strategy.consistency"),
            " is \"bounded\", and nothing says by how many steps: add strategy.max_staleness"));
  if (bounded) verify_whole(place("strategy.max_staleness"), strategy.max_staleness, kStalenessMax);
}

std::string strategy_text(const Job& job) {
  const JobStrategy& strategy = job.strategy;
  if (strategy.kind == "one_device") return "one_device: this process";
  const int replicas = strategy.replicas_of_process();
  if (!strategy.on_workers())
    return str(strategy.kind, ": ", replicas, " replicas in this process");
  const std::string workers = str(job.cluster.workers, " workers");
  if (!strategy.on_servers())
    return str(strategy.kind, ": ", workers,
               replicas > 1 ? str(" of ", replicas, " replicas") : "");
  return str(strategy.kind == "hybrid" ? "hybrid: " : "", job.cluster.ps, " ps and ", workers);
}

}  // namespace cairn::tools
