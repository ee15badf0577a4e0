// Announcer: announces the closures' numbers to the shards: how far they go, and below which all
// have ended. Shards believe no worker about either.
//
// No closure is sent whose number has not been announced to every shard. Numbers are announced in
// blocks, ahead of need: a closure waits for an announcement only if 2^15 others were sent while
// one was on its way. Ends are announced with each heartbeat and after every 1,024 closures, so
// that a shard remembers few.
//   Thread  the engine's.
//   Errors  tell(): those of the shard. A ps that run() cannot tell in time is cut off, since it
//           hears the newest word before it opens again (PsGroup).
//   Calls   `pump` (of the scheduler) whenever numbers have been announced.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>

#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/session.h"
#include "coordinator/journal/recorder.h"
#include "rpc/loop/task.h"
#include "rpc/server/signal.h"

namespace cairn {

class Announcer {
 public:
  struct Word {
    std::uint64_t closures_below = 0, settled_below = 0;
  };

  Announcer(Session& session, ClusterMembers& members, Recorder& recorder,
            std::function<void()> pump)
      : session_(session), members_(members), recorder_(recorder), pump_(std::move(pump)) {}

  // An earlier coordinator has announced closures below this number.
  void resume(std::uint64_t closures_below) { want(closures_below); }
  // Does every ps know of this closure, so that it may be sent?
  bool announced(std::uint64_t sequence) const { return sequence < closures_below_; }
  // The closure is to be sent next: what is announced has to reach beyond it.
  void want(std::uint64_t sequence) { wanted_below_ = std::max(wanted_below_, sequence + 1); }

  // Is there news that should not wait for the next heartbeat?
  bool due() const;
  // Has run() look at once.
  void hurry() { due_.notify_all(); }

  // The newest word. A later one never says less, so that it does not matter in which order the
  // calls of two end.
  Word next();
  // The word must be recorded: a successor numbers its closures above all that a shard may have
  // heard of, and a shard forgets closures that have ended.
  rpc::Task<void> tell(Ps* ps, Word word);
  // Announces to every ps that is ready, for as long as the engine lives.
  rpc::Task<void> run();

 private:
  std::uint64_t settled() const { return recorder_.settled(session_.queue.low_watermark()); }
  rpc::Task<void> tell_in_time(Ps* ps, Word word);

  Session& session_;
  ClusterMembers& members_;
  Recorder& recorder_;
  std::function<void()> pump_;
  Word word_;                         // the newest
  std::uint64_t closures_below_ = 0;  // every ps knows of those
  std::uint64_t wanted_below_ = 0;    // above all that were sent, or are to be sent next
  rpc::Signal due_;
};

}  // namespace cairn
