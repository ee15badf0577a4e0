// Where this thread stands: in which strategy's scope, and there in cross-replica or in replica
// context.
//
//   no scope is open            the replica context of the default strategy
//   within strategy.scope()     cross-replica context: one view of all replicas, so that run(),
//                               reduce() and gather() may be called
//   a function that run() runs  replica context: the code of one replica, which meets the others in
//                               all_reduce() and merge_call()
//   a function that schedule()  cross-replica context, as in the scope
//   or call() runs
//   a function of merge_call()  cross-replica context
//
// A function is traced in the context in which it will run, once for each: what it asks here is
// answered then, and is fixed in its graph.
//   Thread  each has its own; scopes are the thread's.
#pragma once
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/graph/variable.h"
#include "strategy/base/distributed_values.h"

namespace cairn {

class ReplicaContext;
class Strategy;

// The place of a strategy's scope, as core's scopes carry it.
class StrategyPlace : public ScopePlace {
 public:
  static constexpr int kNoPart = -1;
  // `replica`: its context; nullptr: cross-replica context.
  StrategyPlace(Strategy& strategy, const ReplicaContext* replica, int part = kNoPart)
      : strategy_(strategy), replica_(replica), part_(part) {}
  Strategy& strategy() const { return strategy_; }
  const ReplicaContext* replica() const { return replica_; }
  // The replica that runs the code recorded here: where several run one function in step, each has
  // a graph of its own, for cross-replica code too. kNoPart: no particular replica.
  int part() const { return part_; }
  // On a replica, or where there is only one.
  bool takes_elements() const override;

 private:
  Strategy& strategy_;
  const ReplicaContext* replica_;
  const int part_;
};

// One replica's view, while its function runs (or is traced). Lives as long as its strategy.
class ReplicaContext final : public StrategyPlace {
 public:
  ReplicaContext(Strategy& strategy, int id) : StrategyPlace(strategy, this, id), id_(id) {}
  ReplicaContext(const ReplicaContext&) = delete;
  ReplicaContext& operator=(const ReplicaContext&) = delete;
  // merge_call()'s function with its arguments in a list, as strategies pass it on.
  using MergeBody = std::function<PerReplica(Strategy&, const std::vector<PerReplica>&)>;

  int replica_id_in_sync_group() const { return id_; }  // [0, num_replicas_in_sync)
  int num_replicas_in_sync() const;

  // The sum or the mean of what all replicas pass, on every one of them; each must call it, in the
  // same order as the others, with a value of the same dtype and shape, which is the result's too.
  // While a function is traced it is recorded as an effect, and takes place whenever that runs.
  //   Errors  FailedPrecondition: this replica is not the one that runs here.
  Array all_reduce(ReduceOp op, const Array& value) const;
  // The same for each of several values, which may go together.
  std::vector<Array> all_reduce(ReduceOp op, const std::vector<Array>& values) const;

  // Calls `merge_fn(Strategy&, arguments...)` once for all replicas, in cross-replica context,
  // where the arguments are the per-replica values of what each replica passed; each must call it.
  // Returns this replica's part of what it returned: a PerReplica's own value, else the same for
  // all; nothing, if it returns nothing.
  //   Errors  FailedPrecondition: this replica is not the one that runs here, so also within
  //           another merge_call. Else those of merge_fn.
  template <typename F, typename... A>
  auto merge_call(F&& merge_fn, const A&... arguments) const;

 private:
  void require_here() const;
  Array merge(const MergeBody& body, const std::vector<Array>& arguments) const;
  const int id_;
};

// The strategy of the innermost open scope; without one, the default strategy.
Strategy& get_strategy();
// The strategy of programs that open no scope: one process, one device, one replica. Its scope()
// changes nothing. Lives as long as the process.
Strategy& default_strategy();
// Is it another than the default strategy?
bool has_strategy();
// Whether this is cross-replica context. Not without a scope: that is the default strategy's
// replica context.
bool in_cross_replica_context();
// The context of the replica that runs here.
//   Errors  FailedPrecondition: this is cross-replica context. (The reference returns None there.)
const ReplicaContext& get_replica_context();

// ---- templates ----
template <typename F, typename... A>
auto ReplicaContext::merge_call(F&& merge_fn, const A&... arguments) const {
  const std::vector<Array> passed{Array(arguments)...};
  auto call = [&]<std::size_t... I>(Strategy & strategy, const std::vector<PerReplica>& values,
                                    std::index_sequence<I...>) {
    return merge_fn(strategy, values[I]...);
  };
  using Result = decltype(call(std::declval<Strategy&>(), std::declval<std::vector<PerReplica>&>(),
                               std::index_sequence_for<A...>{}));
  if constexpr (std::is_void_v<Result>) {
    merge(
        [&](Strategy& strategy, const std::vector<PerReplica>& values) {
          call(strategy, values, std::index_sequence_for<A...>{});
          return PerReplica(Array());
        },
        passed);
  } else {
    return merge(
        [&](Strategy& strategy, const std::vector<PerReplica>& values) {
          return PerReplica(call(strategy, values, std::index_sequence_for<A...>{}));
        },
        passed);
  }
}

}  // namespace cairn
