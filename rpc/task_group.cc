#include "rpc/task_group.h"

#include "core/log.h"
#include "rpc/error_wire.h"

namespace cairn::rpc {
namespace {

void log_failure(const std::string& what, const ErrorParts& error) { log_error(what, ": ", describe(error)); }

}  // namespace

TaskGroup::TaskGroup(OnError on_error)
    : on_error_(on_error ? std::move(on_error) : log_failure),
      tasks_(kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this))) {}

TaskGroup::~TaskGroup() noexcept {}

void TaskGroup::spawn(std::string what, Task<void> task) { spawn(std::move(what), task.start()); }

void TaskGroup::spawn(std::string what, kj::Promise<void> promise) {
  tasks_->add(promise.catch_([this, what = std::move(what)](kj::Exception&& exception) {
    auto error = from_kj(exception);
    if (error.code != Code::kCancelled) on_error_(what, error);
  }));
}

void TaskGroup::cancel_all() {
  tasks_ = kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this));
}

void TaskGroup::taskFailed(kj::Exception&& exception) {  // what a handler itself threw
  log_error("an error handler failed: ", describe(from_kj(exception)));
}

}  // namespace cairn::rpc
