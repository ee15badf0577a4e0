// The real reactor: Cap'n Proto's event loop, whose port is an Asio io_context. For this room's .cc
// files.
#pragma once
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>

#include "rpc/loop/reactor.h"

namespace cairn::rpc {

namespace asio = boost::asio;

class AsioReactor final : public Reactor, private kj::EventPort {
 public:
  explicit AsioReactor(ReactorOptions options);
  ~AsioReactor() noexcept(false) override;

  asio::io_context& io() { return io_; }

  void post(Work work) override;
  void stay_awake(Duration duration) override;
  kj::Timer& timer() override { return timer_; }
  kj::WaitScope& scope() override { return *scope_; }
  Duration now() const override;
  Duration idle() const override { return idle_; }
  kj::Promise<void> yield() override;

 private:
  bool wait() override;
  void await_io();
  bool poll() override;
  void wake() const override;
  bool after_io();

  const Duration spin_;
  std::atomic<Duration> awake_until_{Duration::min()};
  mutable asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  mutable std::atomic<bool> woken_{false};
  kj::TimerImpl timer_;
  Duration idle_{0};
  std::unique_ptr<kj::EventLoop> loop_;
  std::unique_ptr<kj::WaitScope> scope_;
};

// `reactor` as the real one. Errors FailedPrecondition: it is simulated, which `what` cannot work
// on.
AsioReactor& require_asio(Reactor& reactor, const char* what);

}  // namespace cairn::rpc
