// Mirror: this lane's copies of the variables that a group of lanes keeps in step.
//
// The ps stay the home of every variable. A copy is fetched from them once, with the slots and the
// number of updates, and from then on changes as they do, by the same updates in the same order:
// the bits stay equal, and reading costs a copy within this process.
//
//   if (mirror.round() != before) mirror.forget();      // stale
//   co_await mirror.fetch(store, step, variables);
//   mirror.read(reads);                                 // ... compute, reduce among the lanes ...
//   mirror.apply(sums, round);                          // as the ps do when the round is applied
//
// No number of a round comes with what is fetched: while a group is at work, the ps change at the
// end of a round only, and its lanes know which one that was (stands_at()).
//   Thread  the lane's. A copy takes as much memory as the variable and its slots do on the ps.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "core/rows/variable_store.h"
#include "rpc/loop/task.h"
#include "worker/rows/remote_store.h"
#include "worker/rows/variable_copy.h"

namespace cairn::worker {

class Mirror {
 public:
  // The round that the copies are of: they are as the ps are once that round is applied. 0: there
  // are no copies that count.
  std::uint64_t round() const { return round_; }
  // The caller knows that the copies, which it has just fetched, are of this round.
  void stands_at(std::uint64_t round) { round_ = round; }
  // All copies go: for another session, another layout of these variables, a group that broke.
  void forget();
  bool has(VariableId variable) const { return copies_.contains(variable); }

  // Fetches those of `variables` that it lacks, from the shards that hold their parts: all of them
  // or none. The parts at the same time, each in calls of at most
  // ShardLinkOptions::piece_bytes_max.
  //   Errors  Unavailable: a shard is away, or closed. Aborted: a shard was replaced, restored or
  //           written to, or the layout or this mirror changed, while the parts were read.
  //           InvalidArgument: a hashed variable, or a row that with its slots is larger than an
  //           answer may be. NotFound, FailedPrecondition: no such variable, no layout, another
  //           session. ResourceExhausted: no memory.
  //   Cancel  dropping the task; drop it before the mirror and the store go.
  rpc::Task<void> fetch(RemoteStore& store, StepContext step, std::vector<VariableId> variables);

  // Fills the value of each read, of the whole variable or by ids, with memory of its own.
  //   Errors  FailedPrecondition: it has no copy. InvalidArgument: ids that the variable has not.
  void read(std::span<Read> reads);

  // Applies the updates to the copies, in their order and as a ps does; then they are of `round`.
  // `encoding` is the one in which the updates travel to the ps: what that rounds is rounded here
  // as well.
  //   Errors  as a ps refuses a push, and FailedPrecondition: it has no copy. Nothing is applied
  //           then.
  void apply(std::span<const Update> updates, std::uint64_t round,
             RowEncoding encoding = RowEncoding::kRaw);

  // A hash of all parameters and slots of these variables, or of all variables, in the order of
  // their ids. Equal copies have equal hashes, however the variables are cut into parts. Cost  one
  // pass over them.
  std::uint64_t fingerprint(const std::set<VariableId>& variables) const;
  std::uint64_t fingerprint() const;

 private:
  struct Fetching;
  static rpc::Task<void> fetch_part(Fetching& fetching, VariableId variable, std::uint32_t part);
  VariableCopy& copy(VariableId variable);

  std::map<VariableId, VariableCopy> copies_;
  std::uint64_t round_ = 0;
  // How often copies went or changed: what was fetched meanwhile does not fit them.
  std::uint64_t changes_ = 0;
};

}  // namespace cairn::worker
