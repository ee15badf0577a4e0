// The requests of a step to the place where its variables live, whatever place that is: rows to
// read, changes to make, and the step that asks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/incarnation.h"
#include "core/graph/reduce_op.h"
#include "core/graph/update_rule.h"
#include "core/tensor/tensor.h"

namespace cairn {

using VariableId = std::uint32_t;  // a variable's number in its strategy, in order of creation

// Travels with every request.
struct StepContext {
  // The asking session: a store refuses requests of another one, and of a worker that was replaced.
  std::uint64_t session = 0;
  std::uint64_t sent_layout = 0;  // the version of the layout by which it was sent
  std::uint64_t closure = 0;      // sequence number
  LaneIncarnation incarnation;    // a fenced one is refused
  std::int64_t global_step = 0;
  std::int32_t replica = 0;  // i of n in sync
  std::int32_t replicas = 1;
  // A ps knows a push that is repeated by the closure and this number.
  std::uint32_t push_number = 0;  // which push of this closure
  // 0: a push is applied when it comes. Else it is a share of this round, which a ps keeps until
  // the coordinator has the round applied (ps/shard/rounds.h).
  std::uint64_t round = 0;
  Epoch epoch;  // of the shard that is asked
};

// A variable, or rows of it. The store fills `value`.
struct Read {
  VariableId variable = 0;
  Tensor ids;  // int64 [n], ascending and distinct; undefined: the whole variable
  // out: [n, row shape] in the order of ids, or the variable's shape. The reader only reads it
  Tensor value;
};

// A change of a variable, or of rows of it.
struct Update {
  VariableId variable = 0;
  UpdateRule rule;
  float learning_rate = 0;
  Tensor ids;    // int64 [n], ascending and distinct; undefined: dense
  Tensor value;  // [n, row shape], or the variable's shape
  // Replicas in sync each bring a share, and these become one update, in this way, before a store
  // applies it (collective/local/shared_updates.h). kNone: it stands for itself.
  Aggregation shares = Aggregation::kNone;
};

class RowLender;  // core/rows/lending.h

// Where the values of a step's updates had best be computed.
class StepMemory {
 public:
  virtual ~StepMemory() = default;
  // Lends whole variables to the memory of the device that computes; null: they stay here.
  virtual RowLender* lender() { return nullptr; }
  // Whether updates that the device makes in its own memory must be announced first
  // (VariableStore::announce()): where others make the same ones, all of them do or none.
  virtual bool wants_announced() const { return false; }
  // Memory from which a push of an update of this variable, of `bytes` bytes of values, would need
  // no copy; null: any is as good. The caller fills it before that push and lets go of it after.
  virtual std::shared_ptr<std::byte> update_place(VariableId, std::size_t) { return nullptr; }
};

// Variables that are at hand: in this process, or made up by a test. Every call answers before it
// returns. (A worker's variables are on ps: worker/rows/remote_store.h.)
//   Errors  Unavailable: repeat the whole step later. Aborted: run the step again from its reads.
//           InvalidArgument, OutOfRange: the request itself is wrong.
//   Thread  all calls from one.
class VariableStore : public StepMemory {
 public:
  // Fills the values of all reads; what they refer to may be the store's own memory.
  virtual void pull(const StepContext& step, std::span<Read> reads) = 0;
  // Applies the updates in their order.
  virtual void push(const StepContext& step, std::span<Update> updates) = 0;
  // Called before the push, if wants_announced(), with all updates that are about to be made, in
  // order: those that will be pushed, and, without ids and value, those that the device will make.
  //   Result  beside `updates`: which of them are left out. The next push, which is skipped if it
  //           would be empty, has all others that have a value.
  virtual std::vector<bool> announce(const StepContext& /*step*/, std::span<const Update> updates) {
    return std::vector<bool>(updates.size(), false);
  }
};

}  // namespace cairn
