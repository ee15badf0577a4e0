#include "coordinator/dispatch/lane_fence.h"

#include <string>
#include <vector>

#include "core/base/log.h"

namespace cairn {
namespace {
constexpr Duration kFenceDeadline = std::chrono::seconds(10);
}  // namespace

LaneIncarnation LaneFence::newest() const { return session_.below_this_term() + given_; }

LaneIncarnation LaneFence::next_incarnation() {
  ++given_;
  return newest();
}

rpc::Task<void> LaneFence::raise() {
  // Counted first: a ps that is being attached compares the number before and after its own fence,
  // and fences again if a lane was lost in between. So it is either fenced here or there.
  ++raised_;
  for (auto& ps : members_.ps) {
    if (!ps->ready) continue;
    try {
      std::string what = str("fencing a lost worker on ", ps->name);
      co_await session_.parts.reactor.with_deadline(raise_on(ps.get()), kFenceDeadline, what);
    } catch (const Error& e) {
      // It is being lost, or it is stuck; cut off, it is fenced when it is attached again.
      log_warning(ps->name, " could not fence a lost worker (", e.what(),
                  "); its connection is ended");
      members_.cut_off(*ps);
      ps->ready = false;
    }
  }
}

rpc::Task<void> LaneFence::raise_on(Ps* ps) {
  for (std::size_t s = 0; s < ps->shards.size(); ++s) {
    // Gathered per shard: while one answers, another lane may be lost or come.
    std::vector<LaneIncarnation> alive;
    for (LaneState* lane : members_.lanes)
      if (lane->incarnation != 0) alive.push_back(lane->incarnation);
    co_await ps->shards[s]->fence(session_.number, newest(), alive);
  }
}

}  // namespace cairn
