// WorkerReplicas: the replicas in sync of each worker of a cluster. A function is traced once for
// each of them, and the graphs become one (core/graph/join_replicas.h), which a closure runs as any
// other: the replicas' changes are one push, and a closure that runs again repeats all of them.
//   Thread  any; a Function is traced under one caller at a time.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "core/graph/function.h"
#include "core/graph/join_replicas.h"
#include "strategy/base/replica_recording.h"

namespace cairn {

class WorkerReplicas {
 public:
  // `strategy` makes the variables.
  WorkerReplicas(Strategy& strategy, int count);

  int count() const { return count_; }
  const ReplicaRecording& recording() const { return recording_; }

  // The scope and the arguments that one replica is traced with.
  struct Call {
    const ScopePlace* place = nullptr;
    std::vector<Argument> arguments;
    std::vector<std::size_t> places;  // of its tensors among the joined function's arguments
  };
  //   Errors  those of tracing and of join_replicas().
  std::shared_ptr<const ConcreteFunction> joined(Function& function, const std::vector<Call>& calls,
                                                 JoinedOutputs outputs);
  // As joined(), for a function that all replicas run alike, in cross-replica context.
  std::shared_ptr<const ConcreteFunction> called(Function& function,
                                                 const std::vector<Argument>& arguments);

  // As EagerRuntime has it.
  VariableChange change_here(const Variable& variable, VariableChange change) const;
  int gradients_here() const { return gradients_of(context_here(&strategy_), count_); }
  // A variable that is made while a function is traced for each replica, or outside of any.
  template <typename Create>
  Variable make(VariableSpec spec, const Create& create) {
    return traced_.make(std::move(spec), create);
  }

 private:
  using Parts = std::vector<std::shared_ptr<const ConcreteFunction>>;
  using Key = std::tuple<Parts, std::vector<std::vector<std::size_t>>, JoinedOutputs>;

  Strategy& strategy_;
  const int count_;
  const ReplicaRecording recording_;
  std::mutex mutex_;  // one traces at a time; guards what is below
  TracedVariables traced_;
  std::map<Key, std::shared_ptr<const ConcreteFunction>> joined_;
};

}  // namespace cairn
