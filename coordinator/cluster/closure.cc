#include "coordinator/cluster/closure.h"

#include <algorithm>

#include "core/base/look_up.h"

namespace cairn {
namespace {

// For so long the engine's loop polls instead of sleeping: for the answer once a fetch waits, and
// for the next closure once the fetch has ended, as it comes from a caller who fetches one by one.
// The time covers a closure that costs little more than its way there and back. One that takes
// longer does not suffer from the wake-up.
constexpr Duration kAnswerSoon = std::chrono::microseconds(200);
constexpr Duration kNextSoon = std::chrono::microseconds(50);

class ThreadWaiting final : public Waiting {
 public:
  explicit ThreadWaiting(std::function<void(Duration)> busy) : busy_(std::move(busy)) {}
  bool wait(std::unique_lock<std::mutex>& hold, std::condition_variable& changed, Duration limit,
            const std::function<bool()>& ready) override {
    return wait_looking_up(hold, limit,
                           [&](Duration some) { return changed.wait_for(hold, some, ready); });
  }
  void fetch_begins() override {
    if (busy_) busy_(kAnswerSoon);
  }
  void fetch_ended() override {
    if (busy_) busy_(kNextSoon);
  }

 private:
  std::function<void(Duration)> busy_;
};

}  // namespace

std::unique_ptr<Waiting> make_thread_waiting(std::function<void(Duration)> busy) {
  return std::make_unique<ThreadWaiting>(std::move(busy));
}

std::vector<Tensor> RemoteValue::get_all(Duration limit) const {
  CAIRN_CHECK(defined(), "an empty RemoteValue has nothing to fetch");
  std::unique_lock hold(board_->mutex);
  // A closure that ends wakes those who wait only if it is awaited, or is the last one: a program
  // that schedules many and fetches few is not woken for each.
  closure_->awaited = true;
  auto settled = [this] { return closure_->outcome != Closure::Outcome::kPending; };
  if (!settled()) {
    if (board_->waiting_begins) {
      hold.unlock();
      board_->waiting_begins();
      hold.lock();
    }
    waiting_->fetch_begins();
    waiting_->wait(hold, board_->changed, limit, settled);
    waiting_->fetch_ended();
  }
  if (!settled())
    throw DeadlineExceededError(
        str("closure ", closure_->sequence, " was not done in ",
            std::chrono::duration_cast<std::chrono::milliseconds>(limit).count(), " ms"));
  if (closure_->error) std::rethrow_exception(closure_->error);
  return closure_->outputs;
}

Tensor RemoteValue::get(Duration limit) const {
  auto all = get_all(limit);
  if (all.empty())
    throw InvalidArgumentError("the function returns nothing: there is no value to fetch");
  return all.front();
}

Tensor RemoteValue::get(const std::string& name, Duration limit) const {
  auto all = get_all(limit);
  const auto& names = closure_->function->concrete->graph.output_names;
  auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    std::string near = nearest_name(name, names);
    throw InvalidArgumentError(str("the function has no output \"", name, "\"",
                                   near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  return all.at(static_cast<std::size_t>(found - names.begin()));
}

// The names lie in the graph: the pointer that is given out shares the ownership of the whole
// function, so that nothing is copied.
std::shared_ptr<const std::vector<std::string>> RemoteValue::output_names() const {
  const auto& concrete = closure_->function->concrete;
  return {concrete, &concrete->graph.output_names};
}

bool RemoteValue::ready() const {
  {
    std::lock_guard hold(board_->mutex);
    if (closure_->outcome != Closure::Outcome::kPending) return true;
    closure_->awaited = true;
  }
  if (board_->waiting_begins) board_->waiting_begins();
  return false;
}

std::exception_ptr RemoteValue::cause() const {
  std::lock_guard hold(board_->mutex);
  return closure_->cause;
}

}  // namespace cairn
