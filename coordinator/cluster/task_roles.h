// A task's role in its cluster: whether it is the chief, its number, which task leads. The rules
// and names are the reference's.
//
// `task_type` absent: no task in particular, as for a program that only looks at the cluster. An
// evaluator need not be listed: it is a cluster of its own.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "coordinator/cluster/cluster_resolver.h"

namespace cairn {

using TaskType = std::optional<std::string>;
using TaskIndex = std::optional<std::int64_t>;

// InvalidArgument: a job or a task type other than chief, worker, ps and evaluator; more than one
// chief or evaluator; a task that the cluster does not have. All below check this first.
void validate_cluster_spec(const ClusterSpec& spec, const TaskType& task_type,
                           const TaskIndex& task_id);

// Does what only one does: the chief, without one worker 0; an evaluator is its own.
bool is_chief(const ClusterSpec& spec, const TaskType& task_type, const TaskIndex& task_id);
// Chief and workers together; for an evaluator, the evaluators listed. InvalidArgument also: for a
// ps, or no task.
std::int64_t worker_count(const ClusterSpec& spec, const TaskType& task_type);
// The chief is 0 and workers come after it; an evaluator has its own number, if it has one.
// InvalidArgument also: for a ps, or no task.
TaskIndex id_in_cluster(const ClusterSpec& spec, const TaskType& task_type,
                        const TaskIndex& task_id);
// The task that starts a collective operation: "/job:chief/replica:0/task:0"; "" for an empty
// cluster or an evaluator.
std::string collective_leader(const ClusterSpec& spec, const TaskType& task_type,
                              const TaskIndex& task_id);
// The same for coordination: the first ps, else the chief, else worker 0. Does not check the
// cluster.
std::string coordination_leader(const ClusterSpec& spec);

// Refuses two tasks at one address, which the reference's rules above do not look at. Everything
// that joins a cluster asks this first: it would take one process for two tasks.
//   Errors  InvalidArgument: two tasks share an address. Names the address and both tasks.
void verify_distinct_addresses(const ClusterSpec& spec);

// Verifies that ParameterServerStrategy can use this cluster and task: they are valid, and there is
// at least one ps and one worker.
//   Errors  InvalidArgument naming what is wrong.
void verify_parameter_server_cluster(const ClusterResolver& resolver);
void verify_parameter_server_cluster(const ClusterSpec& spec);

}  // namespace cairn
