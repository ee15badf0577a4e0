// Outcomes: what became of closures, written into every book in one go, and which closures are
// torn.
//
// A closure that ends is noted in several places: its elements and its step in the progress book,
// its update in the ledger of losses and in the figures, its result in the queue. All of them are
// written without a wait in between, so that a cut finds a closure committed in each of them or in
// none.
//
// A closure is torn while some shards may have its updates and others not: from the moment at which
// its failure is known until it is settled. No cut is made meanwhile.
//   Thread  the engine's.
//   Errors  those of closures go to the queue, which raises them in the program.
//   Calls   `save_is_due`, as an update is committed, for as long as the progress book says so.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>

#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/loss_ledger.h"
#include "coordinator/cluster/session.h"
#include "coordinator/journal/recorder.h"
#include "coordinator/progress/progress_book.h"
#include "rpc/loop/task.h"

namespace cairn {

class Outcomes {
 public:
  // All outlive it.
  Outcomes(Session& session, const ClusterMembers& members, ProgressBook& progress,
           LossLedger& losses, Recorder& recorder, std::function<void()> save_is_due);

  struct Result {
    std::shared_ptr<Closure> closure;
    LaneState* lane = nullptr;  // that has answered
    LaneReply reply;
  };
  // The closure ended well.
  void commit(Closure& closure, LaneState& lane, LaneReply& reply);
  // These did, as one step.
  void commit(std::span<Result> results);
  // The closure fails with its own error. Its elements are not taken again.
  void fail(Closure& closure, std::exception_ptr error);
  // The queue has cancelled the closure, which had been sent before.
  void cancelled(Closure& closure);

  // A closure that is aborted again and again is our bug or the user's, not a recovery.
  static bool tried_too_often(const Closure& closure) { return closure.attempts >= kAttemptsMax; }
  // Queues the closure after a pause, in which the engine sees the loss that a worker saw first.
  void run_again_later(std::shared_ptr<Closure> closure);
  static constexpr Duration kRetryPause = std::chrono::milliseconds(20);

  // ---- torn closures, and the cut that waits for them ----
  void torn(Closure& closure);
  bool any_torn() const { return torn_ > 0; }
  // A cut waits for torn closures, from now on or no more. False: that is not news.
  bool cut_waits(bool waits);
  bool cut_waits_for_torn() const { return cut_waits_ && any_torn(); }

 private:
  static constexpr std::uint32_t kAttemptsMax = 1000;

  void finish(Closure& closure, LaneState& lane, LaneReply& reply, std::int64_t steps);
  void save_if_due();
  void commit_elements(const Closure& closure, LaneReply& reply);
  void count_update(const Closure& closure, Worker& worker, std::uint64_t staleness);
  void not_torn(Closure& closure);
  rpc::Task<void> put_back_later(std::shared_ptr<Closure> closure);

  Session& session_;
  const ClusterMembers& members_;
  ProgressBook& progress_;
  LossLedger& losses_;
  Recorder& recorder_;
  std::function<void()> save_is_due_;
  std::size_t torn_ = 0;  // closures that some shards may have and others not
  bool cut_waits_ = false;
};

}  // namespace cairn
