#include "rpc/loop/asio_reactor.h"

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>

#include "core/base/error.h"

namespace cairn::rpc {
namespace {

const kj::MonotonicClock& kj_clock() { return kj::systemPreciseMonotonicClock(); }
Duration to_std(kj::Duration duration) { return Duration(duration / kj::NANOSECONDS); }

// While events are queued, KJ polls I/O only if it has a bound on how many events may run between
// two looks.
constexpr kj::uint kEventsBetweenPolls = 256;

// Asio keeps a signal that arrives while no wait is pending, so none is lost between two waits. The
// handler holds a weak pointer, because Asio may still run it after the watch was dropped.
class SignalWatch : public std::enable_shared_from_this<SignalWatch> {
 public:
  SignalWatch(asio::io_context& io, std::function<void(int)> handler)
      : signals_(io), handler_(std::move(handler)) {}
  void start(const std::vector<int>& signals) {
    for (int signal : signals) signals_.add(signal);
    next();
  }

 private:
  void next() {
    signals_.async_wait([weak = weak_from_this()](boost::system::error_code error, int signal) {
      auto self = weak.lock();
      if (error || !self) return;
      self->handler_(signal);
      self->next();
    });
  }
  asio::signal_set signals_;
  std::function<void(int)> handler_;
};

// As SignalWatch. Reads the descriptor's duplicate, which Asio closes.
class ReadableWatch : public std::enable_shared_from_this<ReadableWatch> {
 public:
  ReadableWatch(asio::io_context& io, int descriptor, std::function<void()> handler)
      : descriptor_(io, ::dup(descriptor)), handler_(std::move(handler)) {}
  void next() {
    descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                           [weak = weak_from_this()](boost::system::error_code error) {
                             auto self = weak.lock();
                             if (error || !self) return;
                             self->handler_();
                             self->next();
                           });
  }

 private:
  asio::posix::stream_descriptor descriptor_;
  std::function<void()> handler_;
};

}  // namespace

// The work guard keeps run_one() from returning at once while no operation is pending: a loop
// without sockets still waits, for work that other threads post.
AsioReactor::AsioReactor(ReactorOptions options)
    : spin_(options.spin), guard_(asio::make_work_guard(io_)), timer_(kj_clock().now()) {
  loop_ = std::make_unique<kj::EventLoop>(static_cast<kj::EventPort&>(*this));
  scope_ = std::make_unique<kj::WaitScope>(*loop_);
  scope_->setBusyPollInterval(kEventsBetweenPolls);
}

AsioReactor::~AsioReactor() noexcept(false) { close(); }

void AsioReactor::post(Work work) { asio::post(io_, guarded(std::move(work))); }

Duration AsioReactor::now() const { return to_std(kj_clock().now() - kj::origin<kj::TimePoint>()); }

void AsioReactor::stay_awake(Duration duration) {
  awake_until_.store(now() + duration, std::memory_order_relaxed);
}

bool AsioReactor::wait() {  // one handler is enough: KJ comes back when its queue is empty again
  io_.restart();
  if (io_.poll_one() == 0) {
    const Duration since = now();
    await_io();
    idle_ += now() - since;
  }
  return after_io();
}

// KJ's timers are not in Asio's queue, so the wait is bounded by the earliest of them. The loop
// polls until the later of the two reasons to stay awake has passed, but never beyond a timer.
void AsioReactor::await_io() {
  Duration next_timer = Duration::max();
  KJ_IF_MAYBE (next, timer_.nextEvent()) {
    next_timer = to_std(*next - kj::origin<kj::TimePoint>());
  }
  const Duration spun = spin_.count() > 0 ? now() + spin_ : Duration::min();
  while (now() < std::min(next_timer, std::max(spun, awake_until_.load(std::memory_order_relaxed))))
    if (io_.poll_one() > 0) return;
  if (next_timer == Duration::max()) {
    io_.run_one();
  } else {
    io_.run_one_for(next_timer - now());
  }
}

bool AsioReactor::poll() {
  io_.restart();
  io_.poll();
  return after_io();
}

// KJ calls this on another thread when that has fulfilled a promise of this loop. The empty handler
// ends the wait, and wait() or poll() must then answer true, so the flag is set first.
void AsioReactor::wake() const {
  woken_.store(true, std::memory_order_release);
  asio::post(io_, [] {});
}

// Timers are advanced after the wait, so that they fire by the time at which it ended.
bool AsioReactor::after_io() {
  timer_.advanceTo(kj_clock().now());
  return woken_.exchange(false, std::memory_order_acq_rel);
}

kj::Promise<void> AsioReactor::yield() {
  // The first post runs before the sockets are looked at, the second after, the third behind what
  // they brought.
  constexpr int kHops = 3;
  return kj::evalLast([this] {
    auto pair = kj::newPromiseAndFulfiller<void>();
    auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(pair.fulfiller));
    struct Hop {
      void operator()() {
        if (--left == 0) return (*fulfiller)->fulfill();
        asio::post(*io, *this);
      }
      asio::io_context* io;
      int left;
      std::shared_ptr<kj::Own<kj::PromiseFulfiller<void>>> fulfiller;
    };
    asio::post(io_, Hop{&io_, kHops, kj::mv(fulfiller)});
    return kj::mv(pair.promise);
  });
}

std::unique_ptr<Reactor> make_reactor(ReactorOptions options) {
  return std::make_unique<AsioReactor>(options);
}

AsioReactor& require_asio(Reactor& reactor, const char* what) {
  auto* real = dynamic_cast<AsioReactor*>(&reactor);
  if (real == nullptr)
    throw FailedPreconditionError(str(what, " need a real reactor; this one is simulated"));
  return *real;
}

std::shared_ptr<void> on_signal(Reactor& reactor, const std::vector<int>& signals,
                                std::function<void(int)> handler) {
  auto watch =
      std::make_shared<SignalWatch>(require_asio(reactor, "signals").io(), std::move(handler));
  watch->start(signals);
  return watch;
}

void on_readable(Reactor& reactor, int descriptor, std::function<void()> handler) {
  auto watch = std::make_shared<ReadableWatch>(require_asio(reactor, "files").io(), descriptor,
                                               std::move(handler));
  watch->next();
  reactor.keep(std::move(watch));
}

}  // namespace cairn::rpc
