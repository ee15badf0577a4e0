#include "coordinator/cluster/task_roles.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "rpc/server/task_addresses.h"

namespace cairn {
namespace {

constexpr std::array<const char*, 4> kTypes = {"chief", "worker", "ps", "evaluator"};

bool known_type(const std::string& type) {
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

void at_most_one(const ClusterSpec& spec, const std::string& job) {
  if (spec.task_count(job) > 1)
    throw InvalidArgumentError(
        str("the cluster has ", spec.task_count(job), " ", job, "s: one at most"));
}

std::string first_task(const std::string& job) { return "/job:" + job + "/replica:0/task:0"; }

// The leader of those who are there; the last candidate must be.
std::string leader(const ClusterSpec& spec, std::initializer_list<const char*> candidates) {
  for (const char* job : candidates)
    if (spec.has_job(job)) return first_task(job);
  throw InvalidArgumentError("the cluster has no worker: nobody can lead it");
}

[[noreturn]] void not_for(const TaskType& type, const char* what) {
  throw InvalidArgumentError(type ? str("a ", *type, " has no ", what)
                                  : str("without a task type there is no ", what));
}

}  // namespace

void validate_cluster_spec(const ClusterSpec& spec, const TaskType& task_type,
                           const TaskIndex& task_id) {
  for (const auto& job : spec.jobs())
    if (!known_type(job))
      throw InvalidArgumentError(str("the cluster has a job \"", job,
                                     "\": only chief, worker, ps and evaluator are known"));
  if (task_type && !known_type(*task_type))
    throw InvalidArgumentError(str("the task type \"", *task_type,
                                   "\" is not known: it is chief, worker, ps or evaluator"));
  if (task_type && !spec.has_job(*task_type) && *task_type != "evaluator")
    throw InvalidArgumentError(str("this task is a ", *task_type,
                                   ", and the cluster has no such job; add it, or name no task"));
  at_most_one(spec, "chief");
  at_most_one(spec, "evaluator");
  if (!task_type || !spec.has_job(*task_type)) return;
  if (!task_id)
    throw InvalidArgumentError(
        str("this task is a ", *task_type, " without a number; name its index"));
  // By their number, as the reference: numbers with gaps are not looked at one by one.
  if (*task_id >= static_cast<std::int64_t>(spec.num_tasks(*task_type)))
    throw InvalidArgumentError(str("this task is ", *task_type, " ", *task_id,
                                   ", and the cluster has ", spec.num_tasks(*task_type),
                                   " of them"));
}

// Where no chief is listed, worker 0 takes its place. Evaluators are a cluster of their own, in
// which each is the chief.
bool is_chief(const ClusterSpec& spec, const TaskType& task_type, const TaskIndex& task_id) {
  validate_cluster_spec(spec, task_type, task_id);
  if (task_type == "chief" || task_type == "evaluator") return true;
  return !spec.has_job("chief") && task_type == "worker" && task_id == 0;
}

std::int64_t worker_count(const ClusterSpec& spec, const TaskType& task_type) {
  validate_cluster_spec(spec, task_type, 0);
  if (task_type == "evaluator") return static_cast<std::int64_t>(spec.num_tasks("evaluator"));
  if (task_type != "chief" && task_type != "worker") not_for(task_type, "number of workers");
  return static_cast<std::int64_t>(spec.task_count("chief") + spec.task_count("worker"));
}

TaskIndex id_in_cluster(const ClusterSpec& spec, const TaskType& task_type,
                        const TaskIndex& task_id) {
  validate_cluster_spec(spec, task_type, task_id);
  if (task_type == "chief") return 0;
  if (task_type == "worker")
    return task_id.value() + static_cast<std::int64_t>(spec.task_count("chief"));
  if (task_type != "evaluator") not_for(task_type, "id in the cluster");
  return task_id;
}

std::string collective_leader(const ClusterSpec& spec, const TaskType& task_type,
                              const TaskIndex& task_id) {
  if (spec.empty()) return "";
  validate_cluster_spec(spec, task_type, task_id);
  if (task_type == "evaluator") return "";
  return leader(spec, {"chief", "worker"});
}

std::string coordination_leader(const ClusterSpec& spec) {
  return spec.empty() ? "" : leader(spec, {"ps", "chief", "worker"});
}

void verify_distinct_addresses(const ClusterSpec& spec) {
  std::vector<rpc::TaskAddress> all;
  for (const std::string& job : spec.jobs())
    for (const auto& [index, address] : spec.tasks(job))
      all.push_back({str("/job:", job, "/task:", index), address});
  rpc::verify_distinct(all);
}

void verify_parameter_server_cluster(const ClusterSpec& spec) {
  if (spec.empty())
    throw InvalidArgumentError(
        "the cluster is empty: start the program under `cairn up`, or set TF_CONFIG as "
        "docs/running.md shows");
  validate_cluster_spec(spec, std::nullopt, std::nullopt);
  for (const char* job : {"ps", "worker"})
    if (spec.task_count(job) == 0)
      throw InvalidArgumentError(str("the cluster has no ", job, ": at least one is needed"));
}

void verify_parameter_server_cluster(const ClusterResolver& resolver) {
  const ClusterSpec spec = resolver.cluster_spec();
  if (!spec.empty()) validate_cluster_spec(spec, resolver.task_type(), resolver.task_id());
  verify_parameter_server_cluster(spec);
}

}  // namespace cairn
