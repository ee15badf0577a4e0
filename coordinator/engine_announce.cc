// What the shards are told of closures: how far their numbers go, and below which all have ended.
// They believe no worker about either.
//
// Numbers are announced in blocks, ahead of need: a closure waits for an announcement only if 2^15
// others were sent while one was on its way. What has ended is told each heartbeat and after every
// 1,024 closures, so that a shard remembers few.

#include <algorithm>

#include "coordinator/engine.h"
#include "core/base/log.h"

namespace cairn {
namespace {
constexpr std::uint64_t kAhead = std::uint64_t{1} << 16;
constexpr std::uint64_t kSettledTogether = 1024;
constexpr Duration kAnnounceDeadline = std::chrono::seconds(10);
}  // namespace

bool Engine::announcement_due() const {
  return wanted_below_ + kAhead / 2 > announced_.closures_below ||
         queue_->low_watermark() >= announced_.settled_below + kSettledTogether;
}

// The newest word. A later one never says less, in whatever order the calls end.
Engine::Announced Engine::next_announcement() {
  const std::uint64_t settled = queue_->low_watermark();
  announced_.closures_below =
      std::max(announced_.closures_below, std::max(wanted_below_, settled) + kAhead);
  announced_.settled_below = settled;
  return announced_;
}

rpc::Task<void> Engine::announce_to(Ps* ps, Announced word) {
  for (std::size_t s = 0; s < ps->shards.size(); ++s)
    co_await ps->shards[s]->announce(session_, word.closures_below, word.settled_below);
  ps->closures_below = std::max(ps->closures_below, word.closures_below);
  closures_below_ = ps->closures_below;
  for (const auto& other : ps_) closures_below_ = std::min(closures_below_, other->closures_below);
}

// A ps that cannot be told is cut off: it hears the newest word before it opens again.
rpc::Task<void> Engine::announce_in_time(Ps* ps, Announced word) {
  try {
    std::string what = str("announcing closures to ", ps->name);
    co_await parts_.reactor.with_deadline(announce_to(ps, word), kAnnounceDeadline, what);
  } catch (const Error& e) {
    if (!ps->ready || !ps->control) co_return;
    log_warning(ps->name, " could not be told which closures there are (", e.what(),
                "); its connection is ended");
    ps->control->connection().close();
  }
}

rpc::Task<void> Engine::announce_loop() {
  for (;;) {
    if (!announcement_due()) {
      auto pause =
          parts_.reactor.sleep(options_.heartbeat_interval).exclusiveJoin(announce_due_.wait());
      co_await kj::mv(pause);
    }
    if (!announcement_due() && queue_->low_watermark() == announced_.settled_below) continue;
    const Announced word = next_announcement();
    std::vector<kj::Promise<void>> told;
    for (auto& ps : ps_)
      if (ps->ready) told.push_back(announce_in_time(ps.get(), word).start());
    for (auto& one : told) co_await kj::mv(one);
    pump();
  }
}

}  // namespace cairn
