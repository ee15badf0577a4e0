// ReplicasHere: the shared part of one process's replicas in a HierarchicalGroup: where their calls
// meet, and the thread that makes one call of them among the processes. Replicas are numbered
// within the process, and named by their rank in the group.
//   Errors  as Collective has them.
//   Thread  a replica's own, for what it calls; fail() and abort() from any.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collective/base/call.h"
#include "collective/base/collective.h"
#include "collective/local/open_meetings.h"
#include "core/base/clock.h"
#include "core/base/error.h"

namespace cairn {

// One call of the replicas here. Guarded by the mutex until all have joined; then
// the group's thread alone writes to it, until it has ended.
struct HierarchicalCall : JoinedCalls {
  HierarchicalCall(std::int64_t its_number, int replicas)
      : JoinedCalls(replicas), number(its_number) {}

  const std::int64_t number;
  Collective::Ticket ticket = 0;  // of the processes' all-reduce
  std::vector<Tensor> results;
  TimePoint met{};     // when the processes' calls had met
  bool ended = false;  // guarded by the mutex
};
using HierarchicalCallPtr = std::shared_ptr<HierarchicalCall>;

class ReplicasHere {
 public:
  // `processes` outlives it.
  ReplicasHere(Collective& processes, int replicas, Duration timeout);
  ~ReplicasHere();
  ReplicasHere(const ReplicasHere&) = delete;
  ReplicasHere& operator=(const ReplicasHere&) = delete;

  int rank_of(int replica) const { return processes_.rank() * replicas_ + replica; }
  int size() const { return processes_.size() * replicas_; }

  // Takes part in the call of this number.
  HierarchicalCallPtr join(int replica, std::int64_t number, CollectiveCall call);
  // Returns when the call has ended; how long this thread waited for other replicas.
  Duration finish(int replica, const HierarchicalCall& meeting);
  // Every later call of every replica here, and those that wait, fail with this; the first counts.
  void fail(const ErrorParts& error);
  // The same on all processes.
  void abort(int replica, const ErrorParts& error);
  // `act` runs when the processes fail; the replica that finds a failure here passes it on to them.
  void when_failed(std::function<void()> act) { processes_.when_failed(std::move(act)); }
  // Raises what has failed here, or what the processes have failed with.
  void require_well();

 private:
  using Lock = std::unique_lock<std::mutex>;
  void fail(const ErrorParts& error, const Lock& held) { fail(error, error, held); }
  void fail(const ErrorParts& error, const ErrorParts& told, const Lock& held);
  [[noreturn]] void raise(Lock& lock);
  std::string late(int replica, const HierarchicalCall& meeting) const;

  // ---- the group's thread ----
  void work();
  void begin(const HierarchicalCallPtr& meeting);
  void settle(HierarchicalCall& meeting);
  void end(HierarchicalCall& meeting);
  void broadcast(HierarchicalCall& meeting);
  void all_gather(HierarchicalCall& meeting);
  void reduce(HierarchicalCall& meeting);
  void add_up(HierarchicalCall& meeting);
  void hand_out(HierarchicalCall& meeting);
  template <typename Calls>
  void among_processes(HierarchicalCall& meeting, const Calls& calls);

  Collective& processes_;
  const int replicas_;  // of this process
  const Duration timeout_;
  std::mutex mutex_;  // guards what is below, and the meetings
  std::condition_variable changed_;
  OpenMeetings<HierarchicalCall> open_;
  std::deque<HierarchicalCallPtr> complete_;  // those that the thread has not begun
  std::int64_t wanted_ = -1;  // a replica waits for this call, and for all before it
  std::optional<ErrorParts> error_;
  ErrorParts told_{};  // of it to the other processes
  bool stopped_ = false;
  std::deque<HierarchicalCallPtr> under_way_;  // all-reduces of the processes; the thread's alone
  std::thread thread_;
};

}  // namespace cairn
