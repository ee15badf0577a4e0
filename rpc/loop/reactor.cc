#include "rpc/loop/reactor.h"

#include "core/base/log.h"

#include <algorithm>

namespace cairn::rpc {
namespace {

constexpr int kClosingPolls = 4;
// The same in every simulation, so that times in logs and files are equal for equal runs.
constexpr std::int64_t kSimulatedEpochUs = 1'700'000'000'000'000;

class ReactorClock final : public Clock {
 public:
  explicit ReactorClock(const Reactor& reactor) : reactor_(reactor) {}
  TimePoint now() const override { return TimePoint(reactor_.now()); }
  std::int64_t wall_microseconds() const override {
    if (!reactor_.simulated()) return system_clock().wall_microseconds();
    return kSimulatedEpochUs + std::chrono::duration_cast<std::chrono::microseconds>(
                                   reactor_.now() + reactor_.wall_jump())
                                   .count();
  }

 private:
  const Reactor& reactor_;
};

kj::Duration to_kj_duration(Duration duration) {
  return std::max<std::int64_t>(duration.count(), 0) * kj::NANOSECONDS;
}

// Posted work runs inside the loop's wait; what it throws must not tear the loop down.
void run_guarded(const Work& work) {
  try {
    work();
  } catch (...) {
    auto error = from_kj(to_kj(std::current_exception()));
    log_error("work posted to a reactor failed: ", describe(error));
  }
}

}  // namespace

// The lock is held while posting: otherwise the reactor could end between the question and the
// post.
bool Mailbox::post(Work work) {
  std::lock_guard hold(mutex_);
  if (reactor_ == nullptr) return false;
  reactor_->post(std::move(work));
  return true;
}

void Mailbox::stay_awake(Duration duration) {
  std::lock_guard hold(mutex_);
  if (reactor_ != nullptr) reactor_->stay_awake(duration);
}

Reactor::Reactor() : clock_(std::make_unique<ReactorClock>(*this)) { mailbox_->reactor_ = this; }

Reactor::~Reactor() noexcept(false) {}

void Reactor::close() {
  {
    std::lock_guard hold(mailbox_->mutex_);
    mailbox_->reactor_ = nullptr;
  }
  while (!kept_.empty()) {  // last in, first out; one thing's end may release another
    auto last = std::move(kept_.back());
    kept_.pop_back();
  }
  // Cancelled tasks let go of their memory in the loop's next turns; they may not wait for anything
  // any more.
  for (int i = 0; i < kClosingPolls; ++i) scope().poll();
}

Work Reactor::guarded(Work work) {
  return [work = std::move(work)] { run_guarded(work); };
}

void Reactor::run() {
  auto pair = kj::newPromiseAndFulfiller<void>();
  stop_ = kj::mv(pair.fulfiller);
  if (!stopping_) pair.promise.wait(scope());
  stopping_ = false;
  stop_ = nullptr;
}

// Through the mailbox, so that only the loop's own thread touches what run() waits for.
void Reactor::stop() {
  mailbox_->post([this] {
    stopping_ = true;
    if (stop_.get() != nullptr) stop_->fulfill();
  });
}

// KJ's timer knows only the time it was last advanced to, which is long ago where the loop was
// busy; delays count from the present.
kj::Promise<void> Reactor::sleep(Duration duration) {
  return timer().atTime(kj::origin<kj::TimePoint>() + to_kj_duration(now() + duration));
}

kj::Promise<void> Reactor::expiry(Duration limit, std::string what) {
  return sleep(limit).then([limit, what = std::move(what)]() -> kj::Promise<void> {
    auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
    return to_kj(Code::kDeadlineExceeded, str(what, " took longer than ", ms, " ms"));
  });
}

void Reactor::keep(std::shared_ptr<void> thing) { kept_.push_back(std::move(thing)); }

void Reactor::release(const void* thing) {
  auto at =
      std::find_if(kept_.begin(), kept_.end(), [thing](auto& kept) { return kept.get() == thing; });
  if (at == kept_.end()) return;
  auto last = std::move(*at);  // ends after the list is whole again
  kept_.erase(at);
}

}  // namespace cairn::rpc
