#include "coordinator/checkpoint/auto_saver.h"

#include <utility>

#include "core/base/log.h"

namespace cairn {
namespace {
constexpr Duration kLookAgain = std::chrono::milliseconds(50);  // while another save is under way
}  // namespace

void AutoSaver::begin(CheckpointPolicy policy, std::string metadata) {
  const bool timed = policy.every_seconds > 0;
  progress_.save_every(policy.every_steps);
  policy_ = std::move(policy);
  metadata_ = std::move(metadata);
  saved_at_ = session_.parts.clock.now();
  if (timed) session_.tasks.spawn("timed checkpoints", timed_saves());
}

void AutoSaver::save_if_due() {
  if (!progress_.save_due() || saver_.busy()) return;
  // Noted before the save runs, so that the steps which are committed meanwhile count towards the
  // next save and do not ask for this one again.
  progress_.save_begins();
  session_.tasks.spawn("a checkpoint", save_and_forget());
}

kj::Promise<std::string> AutoSaver::save_now() {
  if (!policy_)
    throw FailedPreconditionError(
        "the program saves no checkpoints by itself: there is no folder to save to");
  auto answer = kj::newPromiseAndFulfiller<std::string>();
  askers_.push_back(kj::mv(answer.fulfiller));
  // The first who asks starts the task. Those who ask before its checkpoint begins share it.
  if (askers_.size() == 1)
    session_.tasks.spawn("a checkpoint that was asked for", save_for_askers());
  return kj::mv(answer.promise);
}

rpc::Task<void> AutoSaver::save_for_askers() {
  // Until it begins, more may join those who wait for it.
  while (saver_.busy()) co_await session_.changed.wait();
  // Callers from here on want a checkpoint that begins later: the first of them begins a new list,
  // and starts another task.
  auto askers = std::exchange(askers_, {});
  std::string name;
  std::exception_ptr error;
  try {
    name = co_await saver_.save(*policy_, metadata_);
  } catch (...) {
    error = std::current_exception();
  }
  for (auto& asker : askers) {
    if (error)
      asker->reject(rpc::to_kj(error));
    else
      asker->fulfill(std::string(name));
  }
}

// The time is noted at both ends: at the beginning so that the timer does not count a save under
// way as overdue, and at the end so that the pause is a pause, however long the save took. A failed
// save puts off the next one too: a full disk is not tried again in a busy loop.
rpc::Task<void> AutoSaver::save_and_forget() {
  saved_at_ = session_.parts.clock.now();
  try {
    co_await saver_.save(*policy_, metadata_);
  } catch (const Error& e) {
    log_error("a checkpoint failed: ", e.what());
    session_.stats.edit([&](EngineStats& stats) {
      ++stats.checkpoints_failed;
      stats.checkpoint_error = e.what();
    });
  }
  saved_at_ = session_.parts.clock.now();
}

rpc::Task<void> AutoSaver::timed_saves() {
  for (;;) {
    const auto pause =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(policy_->every_seconds));
    // A checkpoint that was saved for its steps meanwhile has moved `saved_at_`, and so puts this
    // one off.
    const TimePoint due = saved_at_ + pause;
    const TimePoint now = session_.parts.clock.now();
    if (now < due || saver_.busy()) {
      co_await session_.parts.reactor.sleep(now < due ? due - now : kLookAgain);
      continue;
    }
    co_await save_and_forget();
  }
}

}  // namespace cairn
