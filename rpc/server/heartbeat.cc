#include "rpc/server/heartbeat.h"

#include "core/base/error.h"

namespace cairn::rpc {
namespace {

// A ping under way, and how it ended.
struct Ping {
  bool answered = false;
  std::string lost;  // why the other side is gone
};

kj::Promise<void> observe(kj::Promise<void> ping, std::shared_ptr<Ping> state) {
  return ping.then([state] { state->answered = true; },
                   [state](kj::Exception&& exception) {
                     auto error = from_kj(exception);
                     bool gone =
                         error.code == Code::kUnavailable || error.code == Code::kDeadlineExceeded;
                     if (gone)
                       state->lost = error.message;
                     else
                       state->answered = true;
                   });
}

// Resolves when the ping has shown that the peer is gone; never otherwise.
kj::Promise<void> when_lost(kj::ForkedPromise<void>& answer, std::shared_ptr<Ping> state) {
  return answer.addBranch().then([state]() -> kj::Promise<void> {
    if (state->lost.empty()) return kj::NEVER_DONE;
    return kj::READY_NOW;
  });
}

}  // namespace

Task<Silence> watch_heartbeat(Reactor& reactor, std::string who,
                              std::function<kj::Promise<void>()> ping, HeartbeatOptions options) {
  auto last_answer = reactor.now();
  for (;;) {
    auto state = std::make_shared<Ping>();
    // evalNow: what ping() throws itself counts like a ping that failed.
    auto answer = observe(kj::evalNow([&ping] { return ping(); }), state).fork();
    int missed = 0;
    for (;; ++missed) {
      bool over = missed >= options.missed_max;
      if (over)
        co_return Silence{who, reactor.now() - last_answer, str("missed ", missed, " heartbeats")};
      // The whole interval passes after an answer, however early that came; only a loss ends it
      // sooner.
      co_await reactor.sleep(options.interval).exclusiveJoin(when_lost(answer, state));
      co_await reactor.yield();  // answers that came while this loop was busy
      if (!state->lost.empty())
        co_return Silence{who, reactor.now() - last_answer, str("connection ended: ", state->lost)};
      if (state->answered) break;
    }
    last_answer = reactor.now();
  }
}

}  // namespace cairn::rpc
