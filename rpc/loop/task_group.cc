#include "rpc/loop/task_group.h"

#include <time.h>

#include <algorithm>
#include <map>

#include "core/base/log.h"
#include "rpc/loop/error_wire.h"

namespace cairn::rpc {
namespace {

void log_failure(const std::string& what, const ErrorParts& error) {
  log_error(what, ": ", describe(error));
}

// To a few milliseconds, for a fifth of what the exact time costs: every task is stamped.
Duration coarse_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

// The groups that spawn on a thread. A group may go after the thread has ended, hence the shared
// ownership; it never spawns on one thread and goes on another while both run.
struct TasksOfThread {
  static const std::shared_ptr<TasksOfThread>& here() {
    static thread_local const auto tasks = std::make_shared<TasksOfThread>();
    return tasks;
  }
  static std::vector<WaitingTasks> collect();
  TaskGroup* newest = nullptr;
};

// One task: in its group's list until it has ended or was cancelled.
struct TaskGroup::Named {
  Named(TaskGroup& owner, std::string name)
      : group(owner), what(std::move(name)), since(coarse_now()), older(owner.newest_) {
    if (older != nullptr) older->newer = this;
    group.newest_ = this;
  }
  ~Named() {
    (newer != nullptr ? newer->older : group.newest_) = older;
    if (older != nullptr) older->newer = newer;
  }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;

  TaskGroup& group;
  const std::string what;
  const Duration since;
  Named *older, *newer = nullptr;
};

TaskGroup::TaskGroup(OnError on_error)
    : on_error_(on_error ? std::move(on_error) : log_failure),
      tasks_(kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this))) {}

// The tasks go first: each leaves this group's list, and then the group leaves that of its thread.
TaskGroup::~TaskGroup() noexcept {
  tasks_ = nullptr;
  if (!home_) return;
  (after_ != nullptr ? after_->before_ : home_->newest) = before_;
  if (before_ != nullptr) before_->after_ = after_;
}

void TaskGroup::enlist() {
  home_ = TasksOfThread::here();
  before_ = home_->newest;
  if (before_ != nullptr) before_->after_ = this;
  home_->newest = this;
}

void TaskGroup::spawn(std::string what, Task<void> task) { spawn(std::move(what), task.start()); }

void TaskGroup::spawn(std::string what, kj::Promise<void> promise) {
  if (!home_) enlist();
  // The handler owns the entry, so it leaves the list when the task ends and when it is cancelled.
  tasks_->add(promise.catch_(
      [this, named = kj::heap<Named>(*this, std::move(what))](kj::Exception&& exception) {
        auto error = from_kj(exception);
        if (error.code != Code::kCancelled) on_error_(named->what, error);
      }));
}

void TaskGroup::cancel_all() {
  tasks_ = kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this));
}

void TaskGroup::taskFailed(kj::Exception&& exception) {  // an error of a handler itself
  log_error("an error handler failed: ", describe(from_kj(exception)));
}

std::vector<WaitingTasks> TasksOfThread::collect() {
  const Duration now = coarse_now();
  // Sorted by name, and stably by age below, so that equal ages always come in one order.
  std::map<std::string, WaitingTasks> by_name;
  for (const TaskGroup* group = here()->newest; group != nullptr; group = group->before_)
    for (const TaskGroup::Named* task = group->newest_; task != nullptr; task = task->older) {
      WaitingTasks& all = by_name[task->what];
      all.what = task->what;
      ++all.count;
      all.oldest = std::max(all.oldest, now - task->since);
    }
  std::vector<WaitingTasks> sorted;
  for (auto& [what, all] : by_name) sorted.push_back(std::move(all));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.oldest > b.oldest; });
  return sorted;
}

std::vector<WaitingTasks> tasks_of_this_thread() { return TasksOfThread::collect(); }

Task<void> all_ended(std::vector<kj::Promise<void>> all) {
  std::exception_ptr error;
  for (kj::Promise<void>& one : all) {
    try {
      co_await kj::mv(one);
    } catch (...) {
      if (error == nullptr) error = std::current_exception();
    }
  }
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace cairn::rpc
