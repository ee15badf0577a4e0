// ClusterSpec: the jobs of a cluster and the addresses of their tasks, with the queries of
// tf.train.ClusterSpec. It does not check that a cluster is valid, with a chief and workers, say:
// coordinator/cluster/task_roles.h does.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cairn {

// Jobs ("chief", "worker", "ps", "evaluator", or what else a caller names) in the order given. A
// job's tasks are numbered, and the numbers may have gaps: then some tasks are not in use.
class ClusterSpec {
 public:
  using Tasks = std::map<std::int64_t, std::string>;  // index -> address

  ClusterSpec() = default;
  // {{"ps", {"host1:port", "host2:port"}}, {"worker", {"host3:port"}}}: tasks 0, 1, ... of each
  // job.
  ClusterSpec(std::initializer_list<std::pair<std::string, std::vector<std::string>>> jobs);

  // Replaces a job of that name in its place, or adds it behind the others.
  void set_job(const std::string& job, Tasks tasks);
  // Adds a task behind the job's last one, and makes the job if there is none.
  void add_task(const std::string& job, std::string address);

  // The jobs' names, in the order in which the jobs were given.
  std::vector<std::string> jobs() const;
  bool has_job(const std::string& job) const { return find(job) != nullptr; }
  // There is no job at all. A cluster whose jobs have no tasks is not empty.
  bool empty() const { return jobs_.empty(); }
  // None, and 0, also where there is no such job.
  const Tasks& tasks(const std::string& job) const;
  std::size_t task_count(const std::string& job) const { return tasks(job).size(); }

  // As in the reference: InvalidArgument where there is no such job, or no such task.
  std::size_t num_tasks(const std::string& job) const { return at(job).size(); }
  std::vector<std::int64_t> task_indices(const std::string& job) const;
  const std::string& task_address(const std::string& job, std::int64_t index) const;
  // By index, "" where a number is not in use. InvalidArgument also: the job has no task.
  std::vector<std::string> job_tasks(const std::string& job) const;

  bool operator==(const ClusterSpec&) const = default;

 private:
  const Tasks* find(const std::string& job) const;
  const Tasks& at(const std::string& job) const;
  std::vector<std::pair<std::string, Tasks>> jobs_;
};

}  // namespace cairn
