// VariableStore: the seam that makes the modes one system.
//
// The executor asks for what a step reads and hands over what it updates, one call a wave, and
// never knows where the variables live: on ps shards over a wire, in this process, or mirrored.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/graph/update_rule.h"
#include "core/tensor/tensor.h"

namespace cairn {

using VariableId = std::uint32_t;  // a variable's number in its strategy, in order of creation

// Travels with every request.
struct StepContext {
  std::uint64_t session = 0;
  std::uint64_t layout_version = 0;
  std::uint64_t closure = 0;      // sequence number
  std::uint64_t incarnation = 0;  // the worker's; a fenced one is refused
  std::int64_t global_step = 0;
  std::int32_t replica = 0;  // i of n in sync
  std::int32_t replicas = 1;
  std::uint32_t push_number = 0;  // which push of this closure
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
};

// Called once, on the caller's own thread, inside the call or later; a null pointer means success.
//   Unavailable  a shard is away: repeat the whole step later.
//   Aborted  the step must be run again from its reads.
//   Cancelled  this worker was fenced.   InvalidArgument, OutOfRange  the request itself is wrong.
using Done = std::function<void(std::exception_ptr)>;

// Thread: all calls from one thread, the lane's. What spans point to stays valid until done is
// called.
class VariableStore {
 public:
  virtual ~VariableStore() = default;
  virtual void pull(const StepContext& step, std::span<Read> reads, Done done) = 0;
  virtual void push(const StepContext& step, std::span<Update> updates, Done done) = 0;
  // Memory from which a push of an update of this variable, of `bytes` bytes of values, would need
  // no copy; null: any is as good. The caller fills it before that push and lets go of it after.
  virtual std::shared_ptr<std::byte> update_place(VariableId variable, std::size_t bytes);
  // Sums (or averages, by the caller's division) over the replicas of the step. The default is one
  // replica: nothing to do.
  virtual void all_reduce(const StepContext& step, std::span<Tensor> arrays, Done done);
};

}  // namespace cairn
