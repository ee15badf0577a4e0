// How the functions of an InSyncStrategy run, chosen when the strategy is made: `Alone` takes the
// same way as OneDeviceStrategy, with the same graphs, and makes no thread; `InStep` has several
// replicas, each on a thread of its own, that meet.
//   Thread  one at a time, as the strategy.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/rows/variable_store.h"
#include "strategy/base/replica_recording.h"
#include "strategy/in_sync/in_sync_strategy.h"
#include "strategy/in_sync/replica_runner.h"

namespace cairn {

class InSyncStrategy::Path {
 public:
  virtual ~Path() = default;
  virtual std::string sums_text() const = 0;
  virtual std::vector<CollectiveCounts> counts() const = 0;
  virtual RunResult call_for_each_replica(Function& function,
                                          const std::vector<RunArgument>& arguments) = 0;
  virtual StepOutputs run_step(Function& function, const std::vector<Argument>& arguments) = 0;
  virtual std::vector<Array> replicas_here(const PerReplica& value) const = 0;
  virtual Array reduce_replicas(ReduceOp op, const std::vector<Array>& values) const = 0;
  virtual Array gather_replicas(const std::vector<Array>& values, int axis) const = 0;
  virtual std::vector<RunValue> local_results(const PerReplica& value) const = 0;
  virtual std::vector<Array> all_reduce(const ReplicaContext& replica, ReduceOp op,
                                        const std::vector<Array>& values) const = 0;
  virtual PerReplica merge(const ReplicaContext& replica, const ReplicaContext::MergeBody& body,
                           const std::vector<Array>& arguments) = 0;
  virtual ElementSpec distributed_spec(const Dataset& dataset,
                                       const InputOptions& options) const = 0;
  virtual std::shared_ptr<const IteratorSource> iterator_of(const DistributedDataset& dataset) = 0;
  virtual std::vector<Element> next_elements(const IteratorSource& source) = 0;
};

class InSyncStrategy::Alone final : public Path {
 public:
  explicit Alone(InSyncStrategy& strategy) : strategy_(strategy) {}
  std::string sums_text() const override { return {}; }
  std::vector<CollectiveCounts> counts() const override { return {}; }
  RunResult call_for_each_replica(Function& function,
                                  const std::vector<RunArgument>& arguments) override {
    return strategy_.LocalStrategy::call_for_each_replica(function, arguments);
  }
  StepOutputs run_step(Function& function, const std::vector<Argument>& arguments) override {
    return strategy_.LocalStrategy::run_step(function, arguments);
  }
  std::vector<Array> replicas_here(const PerReplica& value) const override {
    return strategy_.LocalStrategy::replicas_here(value);
  }
  Array reduce_replicas(ReduceOp op, const std::vector<Array>& values) const override {
    return strategy_.LocalStrategy::reduce_replicas(op, values);
  }
  Array gather_replicas(const std::vector<Array>& values, int axis) const override {
    return strategy_.LocalStrategy::gather_replicas(values, axis);
  }
  std::vector<RunValue> local_results(const PerReplica& value) const override {
    return strategy_.LocalStrategy::experimental_local_results(value);
  }
  std::vector<Array> all_reduce(const ReplicaContext& replica, ReduceOp op,
                                const std::vector<Array>& values) const override {
    return strategy_.LocalStrategy::all_reduce(replica, op, values);
  }
  PerReplica merge(const ReplicaContext& replica, const ReplicaContext::MergeBody& body,
                   const std::vector<Array>& arguments) override {
    return strategy_.LocalStrategy::merge(replica, body, arguments);
  }
  ElementSpec distributed_spec(const Dataset& dataset, const InputOptions&) const override {
    return dataset.element_spec();
  }
  std::shared_ptr<const IteratorSource> iterator_of(const DistributedDataset& dataset) override {
    return strategy_.LocalStrategy::iterator_of(dataset);
  }
  std::vector<Element> next_elements(const IteratorSource& source) override {
    return strategy_.LocalStrategy::next_elements(source);
  }

 private:
  InSyncStrategy& strategy_;
};

class InSyncStrategy::InStep final : public Path {
 public:
  // `rows`: the one place of the replicas' variables, kept for the runner; null: each has a copy.
  InStep(InSyncStrategy& strategy, std::unique_ptr<ReplicaRunner> runner, bool check_replicas,
         std::unique_ptr<VariableStore> rows = nullptr);
  std::string sums_text() const override { return group_->sums_text(); }
  std::vector<CollectiveCounts> counts() const override { return group_->counts(); }
  RunResult call_for_each_replica(Function& function,
                                  const std::vector<RunArgument>& arguments) override;
  StepOutputs run_step(Function& function, const std::vector<Argument>& arguments) override;
  std::vector<Array> replicas_here(const PerReplica& value) const override;
  Array reduce_replicas(ReduceOp op, const std::vector<Array>& values) const override;
  Array gather_replicas(const std::vector<Array>& values, int axis) const override;
  std::vector<RunValue> local_results(const PerReplica& value) const override;
  std::vector<Array> all_reduce(const ReplicaContext& replica, ReduceOp op,
                                const std::vector<Array>& values) const override;
  PerReplica merge(const ReplicaContext& replica, const ReplicaContext::MergeBody& body,
                   const std::vector<Array>& arguments) override;
  ElementSpec distributed_spec(const Dataset& dataset, const InputOptions& options) const override;
  std::shared_ptr<const IteratorSource> iterator_of(const DistributedDataset& dataset) override;
  std::vector<Element> next_elements(const IteratorSource& source) override;

 private:
  // By replica: what a function is traced and run with.
  struct Call {
    const StrategyPlace* place;
    std::vector<Argument> arguments;
    std::shared_ptr<const ConcreteFunction> function = nullptr;
  };
  void trace_all(Function& function, std::vector<Call>& calls);
  void require_meetings(const std::vector<Call>& calls);
  const Tensor* common_constant(const std::vector<Call>& calls, std::size_t output) const;
  std::vector<RunInputs> inputs_of(const std::vector<Call>& calls);
  std::vector<StepOutputs> run_together(const std::vector<Call>& calls);
  WorkerShare share() const;
  ReplicaPieces pieces_here(const Dataset& dataset, const InputOptions& options) const;

  InSyncStrategy& strategy_;
  const int replicas_, local_, first_;  // in all, of this process, and its first one
  const bool check_replicas_;
  const ReplicaRecording recording_;
  // Pairs of functions that were found to meet alike; kept, so that their addresses stay theirs.
  std::set<
      std::pair<std::shared_ptr<const ConcreteFunction>, std::shared_ptr<const ConcreteFunction>>>
      meet_;
  const std::unique_ptr<VariableStore> rows_;
  const std::unique_ptr<ReplicaRunner> group_;
};

}  // namespace cairn
