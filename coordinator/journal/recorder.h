// Recorder: writes into the journal what the engine's parts do, if there is a journal.
//
// Closures that update, or take elements, are recorded before they are sent, and when they have
// ended; functions, variables and datasets before the first closure that needs them; the members of
// a round before a shard is asked to apply it. What shards are told of closures and of each other's
// processes is recorded, and kept, before they hear of it.
//   Thread  the engine's.
//   Errors  of the waits: those of the journal. After one nothing is recorded any more.
//   Cost    without a journal a comparison a call.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "coordinator/cluster/closure.h"
#include "coordinator/cluster/lane_client.h"
#include "coordinator/cluster/loss_ledger.h"
#include "coordinator/cluster/session.h"
#include "coordinator/journal/journal_event.h"
#include "coordinator/progress/progress_book.h"
#include "core/base/incarnation.h"
#include "core/rows/layout.h"
#include "rpc/loop/task.h"

namespace cairn {

namespace journal {
class Journal;
class JournalState;
}  // namespace journal

class Recorder {
 public:
  explicit Recorder(Session& session);

  bool on() const { return journal_ != nullptr; }
  // How the run stood that this coordinator goes on with; null: it begins one.
  const journal::JournalState* found() const;
  // Begins this coordinator's files; its term is known, and whoever had the journal before can do
  // nothing any more.
  rpc::Task<void> begin(std::size_t ps);

  // These closures, which an earlier coordinator had sent, are run to their end.
  void resume(ResumedRun run, const std::vector<std::shared_ptr<Closure>>& open);
  // Ends when they have ended.   Errors  those of the journal, if it cannot be written.
  rpc::Task<void> resumed_ended();
  // The program takes over. Nothing that the earlier coordinator had sent is open any more.
  // `unrecorded`: closures that are in the books now, and of which the journal did not know.
  void hand_over(const ProgressBook& progress, const LossLedger& losses,
                 const std::vector<std::uint64_t>& unrecorded);
  // Until then shards are to be asked which closures they have.
  bool handed_over() const { return !resuming_; }
  // Throws what the waits would.
  void verify_written() const;
  const std::optional<ResumedRun>& resumed() const { return run_; }

  // ---- what is made ----
  void dataset(const PerWorkerDataset& dataset, const ProgressBook& progress);
  // Ends once the layout is kept: then shards may hear of it.
  rpc::Task<void> keep_layout(std::shared_ptr<const Layout> layout);

  // ---- closures ----
  // The closure has its step and its elements, and is sent once written() has ended.
  void sent(const Closure& closure);
  // With so many steps, if its update is committed; `states` are the iterators', if they are known.
  void ended(const Closure& closure, bool updated, std::int64_t steps,
             const std::vector<LaneReply::State>& states);
  // Some shards may apply the round, and others not: they are asked once kept() has ended.
  void round(journal::RoundNamed event);
  rpc::Task<void> written();
  // Nor does a loss of power take it back.
  rpc::Task<void> kept();
  // Ends once a successor will know that shards may have heard of closures below this number.
  rpc::Task<void> keep_announced(std::uint64_t closures_below);
  // All closures below `low_watermark` have ended. Below which of them a successor will know that,
  // whatever happens: shards may forget those. It follows some milliseconds behind.
  std::uint64_t settled(std::uint64_t low_watermark);

  // ---- what was lost, and where rows come from ----
  // Ends once it is kept that these processes have rows of the ps's shards, by shard; none: that
  // one had them before.
  rpc::Task<void> keep_rebuilt(std::size_t ps, std::vector<ProcessIncarnation> processes,
                               LossLedger::Rebuilt how);
  void sources(journal::SourcesAre sources);
  // The program has gone back to a state of its own choice.
  void standing(std::int64_t global_step, const LossLedger& losses, const ProgressBook& progress);
  // The program wants a successor to know this text.
  void note(const std::string& name, const std::string& text);
  // All that is not needed any more may go.
  void cut();

 private:
  Session& session_;
  const std::shared_ptr<journal::Journal> journal_;
  std::optional<ResumedRun> run_;  // that is gone on with
  std::unordered_set<std::uint64_t>
      open_;                              // closures that the journal has, and that have not ended
  std::set<std::uint64_t> resumed_;       // those of them that an earlier coordinator had sent
  std::set<std::uint32_t> functions_;     // that the journal has
  std::shared_ptr<const Layout> layout_;  // the newest that it has
  std::uint64_t closures_below_ = 0;      // that was recorded
  std::uint64_t kept_below_ = 0;          // that was kept
  bool resuming_ = false;
  struct Settled {
    std::uint64_t kept = 0;      // a successor will know that those below have ended
    std::uint64_t recorded = 0;  // and those below this number, once
    std::uint64_t events = 0;    // so many events are kept
  };
  Settled settled_;
};

}  // namespace cairn
