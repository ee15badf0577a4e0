#include "coordinator/dispatch/announcer.h"

#include <vector>

#include "core/base/log.h"

namespace cairn {
namespace {
constexpr std::uint64_t kNumbersAhead = std::uint64_t{1} << 16;
constexpr std::uint64_t kSettledTogether = 1024;
constexpr Duration kAnnounceDeadline = std::chrono::seconds(10);
}  // namespace

// Half a block is kept in reserve, so that the next announcement travels while closures are still
// sent under the last one. Settled closures are announced in groups, which bounds what every shard
// has to remember above the watermark.
bool Announcer::due() const {
  return wanted_below_ + kNumbersAhead / 2 > word_.closures_below ||
         settled() >= word_.settled_below + kSettledTogether;
}

Announcer::Word Announcer::next() {
  // The block is counted from the furthest number that was wanted or settled, and never falls
  // behind an earlier word: a shard that gets a word twice, or words in another order, ends with
  // the same knowledge.
  const std::uint64_t ended_below = session_.queue.low_watermark();
  word_.closures_below =
      std::max(word_.closures_below, std::max(wanted_below_, ended_below) + kNumbersAhead);
  word_.settled_below = settled();
  return word_;
}

rpc::Task<void> Announcer::tell(Ps* ps, Word word) {
  // The list of shards is looked at afresh after each wait, since it is emptied when the ps is
  // lost.
  for (std::size_t s = 0; s < ps->shards.size(); ++s)
    co_await ps->shards[s]->announce(session_.number, word.closures_below, word.settled_below);
  ps->closures_below = std::max(ps->closures_below, word.closures_below);
  // A closure may push to any shard, and a shard refuses a closure that was not announced to it. So
  // the ps that knows least counts, even while it is away: it gets the newest word as it is
  // attached, before it opens.
  closures_below_ = ps->closures_below;
  for (const auto& other : members_.ps)
    closures_below_ = std::min(closures_below_, other->closures_below);
}

// A ps that does not take the word in time would hold up all closures beyond the old one. Once cut
// off, it is attached anew, and hears the newest word on that way. If it was lost during the call,
// PsGroup is at work on it already.
rpc::Task<void> Announcer::tell_in_time(Ps* ps, Word word) {
  try {
    std::string what = str("announcing closures to ", ps->name);
    co_await session_.parts.reactor.with_deadline(tell(ps, word), kAnnounceDeadline, what);
  } catch (const Error& e) {
    if (!ps->ready) co_return;
    log_warning(ps->name, " could not be told which closures there are (", e.what(),
                "); its connection is ended");
    members_.cut_off(*ps);
  }
}

rpc::Task<void> Announcer::run() {
  for (;;) {
    if (!due()) {
      auto pause = session_.parts.reactor.sleep(session_.options.heartbeats.interval)
                       .exclusiveJoin(due_.wait());
      co_await kj::mv(pause);
    }
    // An idle run has nothing to tell, and sends nothing.
    if (!due() && settled() == word_.settled_below) continue;
    const Word word = next();
    try {
      if (recorder_.on()) co_await recorder_.keep_announced(word.closures_below);
    } catch (const CancelledError&) {
      throw;
    } catch (...) {  // the journal cannot be written
      session_.queue.fail_all(std::current_exception());
      co_return;
    }
    std::vector<kj::Promise<void>> told;
    for (auto& ps : members_.ps)
      if (ps->ready) told.push_back(tell_in_time(ps.get(), word).start());
    // All at once: a ps that is slow to answer does not keep the word from the others.
    for (auto& one : told) co_await kj::mv(one);
    pump_();
  }
}

}  // namespace cairn
