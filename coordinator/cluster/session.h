// Session: what all parts of one engine share, for the life of one coordinator.
//
// It decides nothing and knows none of the parts. It holds the seams that they talk through, their
// options, the queue from which closures come, the signal by which they wake one another, and the
// group that owns their coroutines.
//   Thread  the reactor's, but for `queue`, `stats`, and what never changes.
//   Order   a Session outlives the parts that refer to it; `tasks` are cancelled before any part
//           goes, since their coroutines refer to the parts (Engine::stop).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "coordinator/cluster/closure_queue.h"
#include "coordinator/cluster/engine_options.h"
#include "coordinator/cluster/stats_book.h"
#include "core/base/clock.h"
#include "core/base/incarnation.h"
#include "core/base/offload.h"
#include "core/disk/disk.h"
#include "rpc/loop/reactor.h"
#include "rpc/loop/task_group.h"
#include "rpc/net/network.h"
#include "rpc/server/signal.h"

namespace cairn {

namespace storage {
class RowStore;
}

// The seams of an engine. All references outlive it.
struct EngineParts {
  rpc::Reactor& reactor;
  rpc::Network& network;
  Offload& offload;
  Disk& disk;
  const Clock& clock;
  // Where checkpoints' rows are, to compare them before a restore; null: that is not done.
  std::shared_ptr<storage::RowStore> rows = nullptr;
};

struct Session {
  // `wake` is called, on any thread, when the queue has something to send.
  Session(EngineParts parts, EngineOptions options, std::shared_ptr<Waiting> waiting,
          std::function<void()> wake);

  double seconds_since(TimePoint then) const;
  double uptime() const { return seconds_since(born); }
  // Numbers that tasks and folders know for as long as the session lasts (of lanes' connections, of
  // marks, of rounds and groups) begin above this one, and so above all that earlier terms have
  // given.
  std::uint64_t below_this_term() const;
  // Another coordinator has taken the cluster. Fails the queue with an error that says `why`, so
  // that the program does not wait for tasks that it has lost, and throws the same error.
  [[noreturn]] void give_way(const std::string& why);

  const EngineParts parts;
  const EngineOptions options;
  const TimePoint born;
  // The session's number: every call to a task names it, so that no task takes an earlier
  // coordinator's word for this one's.
  const std::uint64_t number;
  // The term in which this coordinator leads the session; known before the first task is dialled.
  Term term = 1;
  // All tasks were connected once. From then on they are watched, and a lost one is brought back.
  bool started = false;
  ClosureQueue queue;
  StatsBook stats;
  // "Something changed, look again": notified whenever a condition that a part waits for may have
  // come true.
  rpc::Signal changed;
  // The parts' coroutines that nothing awaits; the last field, so that they are cancelled first.
  rpc::TaskGroup tasks;
};

}  // namespace cairn
