#include "coordinator/cluster/cluster_spec.h"

#include "core/base/error.h"

namespace cairn {

ClusterSpec::ClusterSpec(
    std::initializer_list<std::pair<std::string, std::vector<std::string>>> jobs) {
  for (const auto& [job, addresses] : jobs) {
    set_job(job, {});
    for (const auto& address : addresses) add_task(job, address);
  }
}

// A list and not a map: jobs keep the order in which they were given, also when one of them is
// replaced. There are a handful of them, so that a search from the front is as fast as any.
void ClusterSpec::set_job(const std::string& job, Tasks tasks) {
  for (auto& [name, known] : jobs_)
    if (name == job) {
      known = std::move(tasks);
      return;
    }
  jobs_.emplace_back(job, std::move(tasks));
}

void ClusterSpec::add_task(const std::string& job, std::string address) {
  Tasks all = tasks(job);
  // A gap in the numbers is a task that is not in use, and is not filled.
  std::int64_t next = all.empty() ? 0 : all.rbegin()->first + 1;
  all.emplace(next, std::move(address));
  set_job(job, std::move(all));
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& [name, tasks] : jobs_) names.push_back(name);
  return names;
}

const ClusterSpec::Tasks* ClusterSpec::find(const std::string& job) const {
  for (const auto& [name, tasks] : jobs_)
    if (name == job) return &tasks;
  return nullptr;
}

const ClusterSpec::Tasks& ClusterSpec::tasks(const std::string& job) const {
  static const Tasks none;
  const Tasks* found = find(job);
  return found == nullptr ? none : *found;
}

const ClusterSpec::Tasks& ClusterSpec::at(const std::string& job) const {
  const Tasks* found = find(job);
  if (found == nullptr) throw InvalidArgumentError(str("the cluster has no job \"", job, "\""));
  return *found;
}

std::vector<std::int64_t> ClusterSpec::task_indices(const std::string& job) const {
  std::vector<std::int64_t> indices;
  for (const auto& [index, address] : at(job)) indices.push_back(index);
  return indices;
}

const std::string& ClusterSpec::task_address(const std::string& job, std::int64_t index) const {
  const Tasks& tasks = at(job);
  auto found = tasks.find(index);
  if (found == tasks.end())
    throw InvalidArgumentError(str("the cluster's job \"", job, "\" has no task ", index));
  return found->second;
}

std::vector<std::string> ClusterSpec::job_tasks(const std::string& job) const {
  const Tasks& tasks = at(job);
  if (tasks.empty()) throw InvalidArgumentError(str("the cluster's job \"", job, "\" has no task"));
  std::vector<std::string> all(static_cast<std::size_t>(tasks.rbegin()->first + 1));
  for (const auto& [index, address] : tasks) all[static_cast<std::size_t>(index)] = address;
  return all;
}

}  // namespace cairn
