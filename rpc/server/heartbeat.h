// Heartbeat: is the other side still there?
#pragma once
#include <kj/async.h>

#include <functional>
#include <string>

#include "rpc/loop/reactor.h"

namespace cairn::rpc {

struct HeartbeatOptions {
  Duration interval = std::chrono::milliseconds(200);
  int missed_max = 5;
};

struct Silence {
  std::string who;
  Duration silent_for{0};  // since the last answer
  std::string reason;      // "missed 5 heartbeats", "connection ended: ..."
};

// Calls `ping` every interval, one at a time, and resolves when `who` counts as dead: missed_max
// intervals in a row ended without an answer, or a ping failed with Unavailable or DeadlineExceeded
// (at once). Other errors of `ping` count as an answer: a living peer raised them. A loop that was
// itself held up reads its pending answers before it judges.
Task<Silence> watch_heartbeat(Reactor& reactor, std::string who,
                              std::function<kj::Promise<void>()> ping,
                              HeartbeatOptions options = {});

}  // namespace cairn::rpc
