// TaskGroup: the owner of coroutines that no other coroutine awaits. Every spawned task is in one.
#pragma once
#include <kj/async.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "rpc/loop/task.h"

namespace cairn::rpc {

class TaskGroup final : private kj::TaskSet::ErrorHandler {
 public:
  // Called on the loop with the name of a task that failed and its error. The default logs it;
  // Cancelled is never reported.
  using OnError = std::function<void(const std::string& what, const ErrorParts& error)>;

  explicit TaskGroup(OnError on_error = {});
  ~TaskGroup() noexcept;  // cancels what still runs; never from inside one of its own tasks

  // Starts `task` at once. `what` names it in error reports and among what the loop waits for.
  void spawn(std::string what, Task<void> task);
  void spawn(std::string what, kj::Promise<void> promise);
  void cancel_all();
  bool empty() { return tasks_->isEmpty(); }
  // Resolves once empty. One waiter at a time.
  kj::Promise<void> on_empty() { return tasks_->onEmpty(); }

 private:
  friend struct TasksOfThread;
  struct Named;
  void taskFailed(kj::Exception&& error) override;
  void enlist();
  OnError on_error_;
  // of the thread that spawns; this group is in its list
  std::shared_ptr<struct TasksOfThread> home_;
  TaskGroup *before_ = nullptr, *after_ = nullptr;
  Named* newest_ = nullptr;
  kj::Own<kj::TaskSet> tasks_;  // last: its tasks leave the list above
};

// Resolves when all have ended, with the error of the first of them that failed: until then what
// they use must stay.
Task<void> all_ended(std::vector<kj::Promise<void>> all);

// Tasks of one name that have not ended.
struct WaitingTasks {
  std::string what;
  std::size_t count = 0;
  Duration oldest{0};  // since it was spawned
};
// Those of all groups of this thread, the oldest first.
std::vector<WaitingTasks> tasks_of_this_thread();

}  // namespace cairn::rpc
