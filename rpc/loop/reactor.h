// Reactor: one thread's event loop, on which promises, capabilities, timers and sockets live.
//
// make_reactor() gives the real one (Asio under Cap'n Proto's loop); SimReactor (sim_reactor.h) one
// with virtual time.
//   Thread  build, use and destroy on one thread, at most one a thread; post(), stop() and a
//           Mailbox from anywhere.
//   Order   a reactor outlives the connections, tasks and capabilities that belong to it.
#pragma once
#include <kj/async.h>
#include <kj/timer.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "rpc/loop/buffer_pool.h"
#include "rpc/loop/error_wire.h"
#include "rpc/loop/task.h"

namespace cairn::rpc {

using Work = std::function<void()>;
class Reactor;

// The handle by which other threads reach a reactor: may outlive it.
class Mailbox {
 public:
  // Runs `work` on the reactor's thread, in the order posted. False: the reactor is gone, `work`
  // was dropped here.
  bool post(Work work);
  // Something is about to come: for `duration` from now (at most; a simulated reactor: not at all)
  // the loop polls instead of sleeping in the kernel. It costs a core meanwhile and saves the
  // wake-up, some 20 to 50 us.
  void stay_awake(Duration duration);

 private:
  friend class Reactor;
  std::mutex mutex_;  // guards reactor_
  Reactor* reactor_ = nullptr;
};

class Reactor {
 public:
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  virtual ~Reactor() noexcept(false);

  // Serves until stop(). What escapes from posted work is logged, and the loop goes on.
  void run();
  void stop();  // any thread; a stop() before run() makes run() return at once
  virtual void stay_awake(Duration) {}  // any thread; see Mailbox
  // Runs `work` on the loop, soon; any thread (a simulated reactor: its own thread only).
  virtual void post(Work work) = 0;
  std::shared_ptr<Mailbox> mailbox() const { return mailbox_; }

  virtual kj::Timer& timer() = 0;
  virtual kj::WaitScope& scope() = 0;
  // Monotonic; virtual time in simulation.
  virtual Duration now() const = 0;
  // For how long, in all, the loop has waited with nothing to do. In simulation work takes no time
  // and all of it is waiting.
  virtual Duration idle() const = 0;
  // The same time as a Clock; in simulation wall time moves with it.
  const Clock& clock() const { return *clock_; }
  virtual bool simulated() const { return false; }
  // by how much a simulated wall clock is off its course
  virtual Duration wall_jump() const { return Duration(0); }
  kj::Promise<void> sleep(Duration duration);
  // Resumes after ready I/O was handled and corked writes went out: for long work done in pieces on
  // the loop. Of several that wait at once, any may resume first.
  virtual kj::Promise<void> yield() = 0;

  // The value of `task`, running the loop meanwhile: for main programs and tests, never from inside
  // the loop. Errors what the task throws.
  template <typename T>
  T wait(Task<T> task) {
    return wait(task.start());
  }
  template <typename T>
  T wait(kj::Promise<T> promise);

  // `task`, or DeadlineExceededError naming `what` once `limit` has passed; the task is then
  // cancelled. Whether its effects happened remotely is unknown.
  template <typename T>
  kj::Promise<T> with_deadline(Task<T> task, Duration limit, std::string what) {
    return with_deadline(task.start(), limit, std::move(what));
  }
  template <typename T>
  kj::Promise<T> with_deadline(kj::Promise<T> promise, Duration limit, std::string what);

  // The pool that received bulk data lands in.
  BufferPool& buffers() { return buffers_; }
  // Keeps `thing` until release() or the end of the reactor, which destroys it on the reactor's
  // thread, loop still alive.
  void keep(std::shared_ptr<void> thing);
  void release(const void* thing);

 protected:
  Reactor();
  // Derived destructors call this first: no more mail, kept things go while the loop still stands.
  void close();
  // `work`, with what it throws logged.
  static Work guarded(Work work);

 private:
  kj::Promise<void> expiry(Duration limit, std::string what);

  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::unique_ptr<Clock> clock_;
  BufferPool buffers_;
  std::vector<std::shared_ptr<void>> kept_;
  bool stopping_ = false;
  kj::Own<kj::PromiseFulfiller<void>> stop_;
};

struct ReactorOptions {
  Duration spin{0};  // poll this long before sleeping in the kernel: latency 48 -> 16 us for a core
};
std::unique_ptr<Reactor> make_reactor(ReactorOptions options = {});

// Calls `handler(signal)` on the loop for each of `signals` until the returned object is dropped.
// Real reactors only.
std::shared_ptr<void> on_signal(Reactor& reactor, const std::vector<int>& signals,
                                std::function<void(int)> handler);

// Calls `handler` on the loop each time that `descriptor`, which the caller keeps open, has become
// readable, until the end of the reactor. Real reactors only; its own thread.
void on_readable(Reactor& reactor, int descriptor, std::function<void()> handler);

template <typename T>
T Reactor::wait(kj::Promise<T> promise) {
  try {
    return promise.wait(scope());
  } catch (const kj::Exception& error) {
    throw_from_kj(error);
  }
}

template <typename T>
kj::Promise<T> Reactor::with_deadline(kj::Promise<T> promise, Duration limit, std::string what) {
  auto late = expiry(limit, std::move(what));
  if constexpr (std::is_void_v<T>) {
    return promise.exclusiveJoin(kj::mv(late));
  } else {
    return promise.exclusiveJoin(late.then([]() -> T { KJ_UNREACHABLE; }));
  }
}

}  // namespace cairn::rpc
