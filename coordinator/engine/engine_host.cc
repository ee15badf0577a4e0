#include "coordinator/engine/engine_host.h"

#include <csignal>
#include <future>
#include <utility>

#include "coordinator/engine/control_server.h"
#include "coordinator/engine/engine.h"
#include "coordinator/journal/journal.h"
#include "core/base/log.h"
#include "core/base/look_up.h"
#include "rpc/loop/reactor_thread.h"
#include "storage/any_disk.h"
#include "storage/row_store.h"

namespace cairn {
namespace {

// A chief's address in the cluster is where `cairn status` asks. Without one, or where it is taken,
// the run goes on unasked.
std::unique_ptr<ControlServer> serve_control(Engine& engine, rpc::Reactor& reactor,
                                             rpc::Network& network) {
  const EngineOptions& options = engine.options();
  const auto& chief = options.cluster.tasks("chief");
  if (chief.empty()) return nullptr;
  const std::string& address = chief.begin()->second;
  try {
    return std::make_unique<ControlServer>(
        engine, reactor, network,
        ControlServerOptions{address, options.cluster_id, options.token, options.insecure});
  } catch (const Error& e) {
    log_warning("the status service cannot listen at ", address, ": ", e.what());
    return nullptr;
  }
}

void open_journal(EngineOptions& options, Disk& disk) {
  if (options.journal.folder.empty()) return;
  const auto in_use =
      options.take_over ? journal::FolderInUse::kTakeOver : journal::FolderInUse::kRefuse;
  options.session =
      journal::session_of(journal::Journal::open(disk, options.journal, options.cluster_id, in_use),
                          options.session.number);
}

class ThreadHost final : public EngineHost {
 public:
  ThreadHost(EngineOptions options, rpc::Transport transport)
      : network_(rpc::make_socket_network(transport)),
        offload_(make_thread_offload(2)),  // checkpoints, and the journal
        thread_("cairn-engine") {
    try {
      thread_.run([&] {
        Engine::Parts parts{thread_.reactor(),   *network_,      *offload_,
                            storage::any_disk(), system_clock(), storage::make_rocks_row_store()};
        auto busy = [mailbox = thread_.reactor().mailbox()](Duration soon) {
          mailbox->stay_awake(soon);
        };
        engine_ = std::make_unique<Engine>(parts, std::move(options),
                                           make_thread_waiting(std::move(busy)));
        tasks_ = std::make_unique<rpc::TaskGroup>();
        answer_signal(engine_->options().waits.signal);
      });
      thread_.run([this] { control_ = serve_control(*engine_, thread_.reactor(), *network_); });
      auto started = begin([](Engine& engine) { return engine.start(); });
      const auto& on_wait = engine_->options().start.on_wait;
      while (started.wait_for(kLookUpEvery) != std::future_status::ready) {
        look_up();
        if (on_wait) on_wait(engine_->missing());
      }
      started.get();
    } catch (...) {
      // A constructor that throws runs no destructor, and the engine has to go on its own thread
      // before that thread is ended.
      close();
      throw;
    }
  }
  ~ThreadHost() override { close(); }
  Engine& engine() override { return *engine_; }

  void run(std::function<rpc::Task<void>(Engine&)> work) override {
    std::future<void> ended = begin(std::move(work));
    wait_looking_up(
        kForever, [&](Duration some) { return ended.wait_for(some) == std::future_status::ready; });
    ended.get();
  }

 private:
  std::future<void> begin(std::function<rpc::Task<void>(Engine&)> work) {
    // Shared with the task, which the loop may end after the caller has gone.
    auto outcome = std::make_shared<std::promise<void>>();
    auto future = outcome->get_future();
    bool posted = thread_.post([this, work = std::move(work), outcome] {
      tasks_->spawn("a user's call", wrap(work, engine_.get(), outcome));
    });
    if (!posted) throw UnavailableError("the engine has stopped");
    return future;
  }

  // A function with parameters and not a lambda with captures: parameters live in the coroutine's
  // frame, while captures end with the lambda, which does not outlast the post.
  static rpc::Task<void> wrap(std::function<rpc::Task<void>(Engine&)> work, Engine* engine,
                              std::shared_ptr<std::promise<void>> outcome) {
    try {
      co_await work(*engine);
      outcome->set_value();
    } catch (...) {
      outcome->set_exception(std::current_exception());
    }
  }
  void answer_signal(int signal) {
    if (signal != 0)
      questions_ =
          rpc::on_signal(thread_.reactor(), {signal}, [this](int) { engine_->log_waits(); });
  }
  void close() {
    try {
      thread_.run([this] {
        // By default the signal would end the process. One that arrives late is to do nothing.
        if (std::exchange(questions_, nullptr))
          std::signal(engine_->options().waits.signal, SIG_IGN);
        // Users of the engine go before it: first those who ask over the network, then users' calls
        // that wait on the loop.
        control_.reset();
        tasks_.reset();
        engine_.reset();
      });
    } catch (const Error& e) {
      log_warning("stopping the engine: ", e.what());
    }
    thread_.stop();
  }

  std::unique_ptr<rpc::Network> network_;
  std::unique_ptr<Offload> offload_;
  rpc::ReactorThread thread_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<rpc::TaskGroup> tasks_;
  std::unique_ptr<ControlServer> control_;
  std::shared_ptr<void> questions_;
};

// Waiting in a simulation is letting its time pass.
class SimulatedWaiting final : public Waiting {
 public:
  explicit SimulatedWaiting(rpc::Reactor& reactor) : reactor_(reactor) {}
  bool wait(std::unique_lock<std::mutex>& hold, std::condition_variable&, Duration limit,
            const std::function<bool()>& ready) override {
    const auto deadline = reactor_.now() + limit;
    // The engine runs on this very thread while time passes, and takes the mutex for its own calls.
    while (!ready() && reactor_.now() < deadline) {
      hold.unlock();
      reactor_.wait(reactor_.sleep(std::chrono::microseconds(100)));
      hold.lock();
    }
    return ready();
  }

 private:
  rpc::Reactor& reactor_;
};

class SimulatedHost final : public EngineHost {
 public:
  SimulatedHost(EngineOptions options, SimulatedParts parts)
      : reactor_(parts.reactor),
        engine_(Engine::Parts{parts.reactor, parts.network, parts.offload, parts.disk,
                              parts.reactor.clock(), storage::make_memory_row_store(parts.disk)},
                std::move(options), std::make_shared<SimulatedWaiting>(parts.reactor)),
        control_(serve_control(engine_, parts.reactor, parts.network)) {
    reactor_.wait(engine_.start());
  }
  Engine& engine() override { return engine_; }
  void run(std::function<rpc::Task<void>(Engine&)> work) override { reactor_.wait(work(engine_)); }

 private:
  rpc::Reactor& reactor_;
  Engine engine_;
  std::unique_ptr<ControlServer> control_;
};

}  // namespace

std::unique_ptr<EngineHost> start_engine_thread(EngineOptions options, rpc::Transport transport) {
  open_journal(options, storage::any_disk());
  return std::make_unique<ThreadHost>(std::move(options), transport);
}

std::unique_ptr<EngineHost> start_simulated_engine(EngineOptions options, SimulatedParts parts) {
  open_journal(options, parts.disk);
  return std::make_unique<SimulatedHost>(std::move(options), parts);
}

}  // namespace cairn
