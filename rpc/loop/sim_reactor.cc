#include "rpc/loop/sim_reactor.h"

#include <queue>

#include "core/base/error.h"

namespace cairn::rpc {
namespace {

Duration since_origin(kj::TimePoint time) {
  return Duration((time - kj::origin<kj::TimePoint>()) / kj::NANOSECONDS);
}
kj::TimePoint at(Duration time) {
  return kj::origin<kj::TimePoint>() + time.count() * kj::NANOSECONDS;
}

}  // namespace

class SimReactor::Port final : public kj::EventPort {
 public:
  bool wait() override {  // KJ has nothing to run: one event at the earliest time there is
    if (!run_one(Duration::max()))
      throw InternalError(
          "the simulation waits for something that can never happen: no timer, message or work is "
          "left");
    return false;
  }
  bool poll() override { return false; }
  void wake() const override {}

  void schedule(Duration delay, Work work) {
    events_.push(Event{now_ + std::max(delay, Duration(0)), next_order_++, std::move(work)});
  }

  // Runs the earliest event or timer up to `limit`; false: there is none.
  bool run_one(Duration limit) {
    Duration timer_time = Duration::max();
    KJ_IF_MAYBE (next, timer_.nextEvent()) timer_time = since_origin(*next);
    // At equal times deliveries go before timers, always, for a run must be a function of its
    // inputs.
    bool event_first = !events_.empty() && events_.top().time <= timer_time;
    if (!event_first && timer_time == Duration::max()) return false;
    Duration time = event_first ? events_.top().time : timer_time;
    if (time > limit) return false;
    now_ = std::max(now_, time);
    ++steps_;
    if (event_first) {
      // Taken off first, because the work may schedule more. A copy: the top of a queue cannot be
      // moved from.
      auto work = events_.top().work;
      events_.pop();
      work();
    } else {
      timer_.advanceTo(at(now_));
    }
    return true;
  }
  // Moves the timer's idea of now; nothing is due before it.
  void settle(Duration time) {
    now_ = std::max(now_, time);
    timer_.advanceTo(at(now_));
  }

  Duration now() const { return now_; }
  kj::Timer& timer() { return timer_; }
  std::uint64_t steps() const { return steps_; }

 private:
  struct Event {
    Duration time;
    std::uint64_t order;
    Work work;
    bool operator<(const Event& other) const {  // the queue's top is its largest
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  Duration now_{0};
  std::uint64_t next_order_ = 0;
  std::uint64_t steps_ = 0;
  std::priority_queue<Event> events_;
  kj::TimerImpl timer_{at(Duration(0))};
};

SimReactor::SimReactor() : port_(std::make_unique<Port>()) {
  loop_ = std::make_unique<kj::EventLoop>(*port_);
  scope_ = std::make_unique<kj::WaitScope>(*loop_);
}

SimReactor::~SimReactor() noexcept(false) {
  close();
  scope_.reset();
  loop_.reset();
}

void SimReactor::post(Work work) { port_->schedule(Duration(0), guarded(std::move(work))); }
kj::Timer& SimReactor::timer() { return port_->timer(); }
kj::WaitScope& SimReactor::scope() { return *scope_; }
Duration SimReactor::now() const { return port_->now(); }
std::uint64_t SimReactor::steps() const { return port_->steps(); }
void SimReactor::schedule(Duration delay, Work work) { port_->schedule(delay, std::move(work)); }

kj::Promise<void> SimReactor::yield() {
  return kj::evalLast([this] {
    auto pair = kj::newPromiseAndFulfiller<void>();
    auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(pair.fulfiller));
    port_->schedule(Duration(0), [fulfiller] { (*fulfiller)->fulfill(); });
    return kj::mv(pair.promise);
  });
}

// Runnable work runs before time moves on, and after each event. At the end the clock goes to the
// end of the period even if nothing happens there.
void SimReactor::advance(Duration duration) {
  auto end = port_->now() + duration;
  do scope_->poll();
  while (port_->run_one(end));
  port_->settle(end);
  scope_->poll();
}

void SimReactor::run_ready() { advance(Duration(0)); }

}  // namespace cairn::rpc
