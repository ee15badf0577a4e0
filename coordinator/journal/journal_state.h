// JournalState: how a run stood when its coordinator ended, as the journal tells.
//
// The events of a journal, applied one after another, give the books that the coordinator had: the
// step, where the data stood, what was lost, and the closures that had been sent and not ended. A
// successor goes on from them. Closures that update nothing are no loss: their elements are given
// out again.
//   Thread  one; pure.
//   Errors  apply(): DataLoss: the event cannot follow those before it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cluster/loss_ledger.h"
#include "coordinator/cluster/shard_client.h"
#include "coordinator/journal/journal_event.h"
#include "coordinator/progress/pipelines.h"
#include "core/rows/layout.h"

namespace cairn::journal {

class JournalState {
 public:
  void apply(Event event);

  const Opened& opened() const { return opened_; }
  const std::map<std::uint32_t, FunctionMade>& functions() const { return functions_; }
  const std::vector<DatasetMade>& datasets() const { return datasets_; }
  // The newest; without variables that are made and not placed yet. A ps whose process has no rows
  // yet has none (ShardReplica::process).
  Layout layout() const;
  std::int64_t global_step() const { return global_step_; }
  std::uint64_t closures_below() const { return closures_below_; }
  const LossLedger& losses() const { return losses_; }
  const std::vector<Pipeline>& pipelines() const { return pipelines_; }
  const SourcesAre& sources() const { return sources_; }
  // The closures that the journal tells of, open or ended, and all numbers below those that have
  // ended.
  const AppliedClosures& known() const { return known_; }
  // The notes of programs, by name.
  const std::map<std::string, std::string>& notes() const { return notes_; }
  // By their numbers.
  const std::map<std::uint64_t, ClosureSent>& open() const { return open_; }
  // The round that some shards may have applied and others not, with those of its members that are
  // open; none: there is no such round.
  const std::optional<RoundNamed>& round() const { return round_; }

  // The events that make the same state again: first what is written once, then the rest.
  std::vector<Event> made() const;
  std::vector<Event> standing() const;

 private:
  void on(Opened&& event);
  void on(FunctionMade&& event);
  void on(VariableMade&& event);
  void on(DatasetMade&& event);
  void on(ShardsPlaced&& event);
  void on(ClosureSent&& event);
  void on(ClosureEnded&& event);
  void on(Announced&& event);
  void on(PsRebuilt&& event);
  void on(Standing&& event);
  void on(SourcesAre&& event) { sources_ = std::move(event); }
  void on(RoundNamed&& event);
  void on(Known&& event);
  void on(NoteMade&& event);
  Pipeline& pipeline(std::uint64_t number);
  // The elements that a closure had are not read again.
  void spend(const ClosureSent& closure, const ClosureEnded* how);

  Opened opened_;
  std::map<std::uint32_t, FunctionMade> functions_;
  std::vector<VariableLayout> variables_;
  std::vector<DatasetMade> datasets_;
  ShardsPlaced shards_;
  SourcesAre sources_;
  std::int64_t global_step_ = 0;
  std::uint64_t closures_below_ = 0;
  LossLedger losses_;
  std::vector<Pipeline> pipelines_;
  std::map<std::string, std::string> notes_;
  std::map<std::uint64_t, ClosureSent> open_;
  std::optional<RoundNamed> round_;
  AppliedClosures known_;
};

}  // namespace cairn::journal
