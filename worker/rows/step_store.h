// StepStore: where one closure's variables live, as the lane's coroutine drives its step against
// it.
//
//   // `stores` is of the kind that the function was registered with
//   plan = make_plan(graph, stores.resolve(graph, sent_layout));
//   const auto store = stores.open(slot);  // for one closure
//   Step step(plan, workspace, *store, context, inputs);  // then co_await store->pull(...)
//
// The closure's strategy decides, not the lane: closures of a parameter-server strategy and of one
// that keeps its variables in the worker can be at work in one lane at once.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/rows/variable_store.h"
#include "rpc/loop/task.h"

namespace cairn::worker {

class ActivitySlot;

// A function is registered with one of these. What travels names none so far, which means the
// first.
enum class StoreKind : std::uint8_t {
  kParameterServers = 0,  // rows on ps: RemoteStore
  kLocal = 1,             // rows in this process
};

// One closure's.
//   Errors   Unavailable: repeat the whole step later. Aborted: run it again from its reads.
//            InvalidArgument, OutOfRange: the request itself is wrong. Others: the store's own.
//   Cancel   dropping a call drops what is under way; drop it before the store goes.
//   Thread   the lane's.   Cost  one virtual call per wave, none per row.
class StepStore : public StepMemory {
 public:
  // One wave: fills every `value`, or applies every update in order. What the spans point to stays
  // valid until the task has ended.
  virtual rpc::Task<void> pull(StepContext step, std::span<Read> reads) = 0;
  virtual rpc::Task<void> push(StepContext step, std::span<Update> updates) = 0;

  // For the closure's result: the largest staleness over its pushes, and whether it has pushed.
  virtual std::uint64_t staleness() const { return 0; }
  virtual bool updated() const = 0;
  // A hash of the copies that the step has updated here, if copies are compared; 0: there are none.
  virtual std::uint64_t fingerprint_of_copies() const { return 0; }
};

// All of one kind in a lane.
class StepStores {
 public:
  virtual ~StepStores() = default;
  // The numbers of the graph's variables in this store, in their order; a closure was sent by
  // layout version `sent_layout`.
  //   Errors  FailedPrecondition: the layout or a variable is not here yet. InvalidArgument: a
  //   variable
  //           is of another type.
  virtual std::vector<VariableId> resolve(const Graph& graph, std::uint64_t sent_layout) const = 0;
  // For one closure. `slot` receives what it waits for; null: it is not recorded.
  virtual std::unique_ptr<StepStore> open(ActivitySlot* slot) = 0;
};

}  // namespace cairn::worker
