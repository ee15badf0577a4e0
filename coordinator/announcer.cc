#include "coordinator/announcer.h"

#include <vector>

#include "core/base/log.h"

namespace cairn {
namespace {
constexpr std::uint64_t kNumbersAhead = std::uint64_t{1} << 16;
constexpr std::uint64_t kSettledTogether = 1024;
constexpr Duration kAnnounceDeadline = std::chrono::seconds(10);
}  // namespace

bool Announcer::due() const {
  return wanted_below_ + kNumbersAhead / 2 > word_.closures_below ||
         session_.queue.low_watermark() >= word_.settled_below + kSettledTogether;
}

Announcer::Word Announcer::next() {
  const std::uint64_t settled = session_.queue.low_watermark();
  word_.closures_below =
      std::max(word_.closures_below, std::max(wanted_below_, settled) + kNumbersAhead);
  word_.settled_below = settled;
  return word_;
}

rpc::Task<void> Announcer::tell(Ps* ps, Word word) {
  for (std::size_t s = 0; s < ps->shards.size(); ++s)
    co_await ps->shards[s]->announce(session_.number, word.closures_below, word.settled_below);
  ps->closures_below = std::max(ps->closures_below, word.closures_below);
  closures_below_ = ps->closures_below;
  for (const auto& other : members_.ps)
    closures_below_ = std::min(closures_below_, other->closures_below);
}

rpc::Task<void> Announcer::tell_in_time(Ps* ps, Word word) {
  try {
    std::string what = str("announcing closures to ", ps->name);
    co_await session_.parts.reactor.with_deadline(tell(ps, word), kAnnounceDeadline, what);
  } catch (const Error& e) {
    if (!ps->ready || !ps->control) co_return;
    log_warning(ps->name, " could not be told which closures there are (", e.what(),
                "); its connection is ended");
    ps->control->connection().close();
  }
}

rpc::Task<void> Announcer::run() {
  for (;;) {
    if (!due()) {
      auto pause = session_.parts.reactor.sleep(session_.options.heartbeats.interval)
                       .exclusiveJoin(due_.wait());
      co_await kj::mv(pause);
    }
    if (!due() && session_.queue.low_watermark() == word_.settled_below) continue;
    const Word word = next();
    std::vector<kj::Promise<void>> told;
    for (auto& ps : members_.ps)
      if (ps->ready) told.push_back(tell_in_time(ps.get(), word).start());
    // All at once: a ps that is slow to answer does not keep the word from the others.
    for (auto& one : told) co_await kj::mv(one);
    pump_();
  }
}

}  // namespace cairn
