// ParameterServerStrategy: variables on parameter servers, steps on workers.
//
//   ParameterServerStrategy strategy(TFConfigClusterResolver{});
//   ClusterCoordinator coordinator(strategy);              // schedules steps
//
// A worker is as many replicas as it has devices, which num_replicas_in_sync() says: by default
// one. Several run each closure together, each with its piece of the batch, read what it reads
// once, and push once: the sum of their gradients. How far workers may drift apart, or whether they
// take steps together, is ParameterServerOptions::consistency. Whatever is done outside of a
// scheduled function (run, call, a read or an assignment) is one closure among the others, on any
// worker, and is waited for.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/cluster/cluster_resolver.h"
#include "coordinator/cluster/engine_options.h"
#include "core/graph/eager.h"
#include "core/rows/layout.h"
#include "rpc/net/transport.h"
#include "strategy/base/strategy.h"

namespace cairn {

class EngineHost;
class WorkerReplicas;
class RemoteValue;
struct ScheduleArgument;

struct ParameterServerOptions {
  // none: variables are not split, as in the reference
  std::shared_ptr<const Partitioner> partitioner = nullptr;
  Placement placement = Placement::kSizeAware;
  std::uint64_t seed = 0;  // of initial values
  rpc::Transport transport = rpc::Transport::kAuto;
  // How far workers may run ahead of one another: asynchronous(), bounded(k), or synchronous(b).
  Consistency consistency = {};
  // The devices of each worker: logical CPUs as for MirroredStrategy; none: one. A lane computes
  // the replicas of a closure one after another, so that the processors of a worker are used by its
  // lanes. The worker chooses the device they compute on, a GPU perhaps: cairn-worker --device.
  std::vector<std::string> devices = {};
  // The copies of each shard's rows, each on another ps; at most 8. With 2 or more, an update that
  // was answered is on as many ps, one of which goes on with the rows if another one is lost. 1: a
  // ps that was lost has the rows of the newest checkpoint, and later updates are gone.
  std::uint32_t replicas = 1;
  // Its cluster, variables, consistency and replicas come from the resolver and the fields
  // above.
  EngineOptions engine = {};
};

//   Data    iterate() of a dataset is as ClusterCoordinator::create_shared_dataset: each element
//           goes to one closure, whichever worker runs it. A dataset function is called once per
//           lane, as create_per_worker_dataset does, and deals the data out itself. Positions are
//           part of checkpoints, under names by the order of these calls.
//   Thread  scheduling: any; all else one at a time.
class ParameterServerStrategy : public Strategy, protected EagerRuntime {
 public:
  // Connects to every task of the cluster. Where options leave them open, the cluster's id, the
  // token and the journal are those of the environment (CAIRN_CLUSTER_ID, CAIRN_TOKEN or
  // CAIRN_TOKEN_FILE, CAIRN_JOURNAL), as `cairn up` sets them.
  //   Errors  InvalidArgument: not such a cluster; more replicas than it has ps, before it connects
  //           to any. Unavailable: a task could not be reached in time; names it.
  explicit ParameterServerStrategy(const ClusterResolver& resolver,
                                   ParameterServerOptions options = {});
  // On an engine that runs already (the simulation's).
  explicit ParameterServerStrategy(std::unique_ptr<EngineHost> host,
                                   const std::vector<std::string>& devices = {});
  ~ParameterServerStrategy() override;

  // Cut by the partitioner and placed; its rows are made before the first closure that needs them.
  Variable create_variable(VariableSpec spec) override;
  void add_slots(const Variable& variable, const UpdateRule& rule) override;
  // As extended() has it.
  // auto beside = strategy.colocate_vars_with(table);
  //   Errors  when a variable is made: `variable` is in several parts.
  Colocation colocate_vars_with(const Variable& variable) {
    return Colocation(colocated_, variable.name());
  }

  int num_replicas_in_sync() const override;
  int num_workers() const override;
  Array worker_index() override;

  // In a traced function.
  //   Errors  Unimplemented: the value is one per replica.
  std::vector<RunValue> experimental_local_results(const PerReplica& value) const override;

  // One consistent cut of variables, step and dataset positions, while closures go on.
  std::string save(const CheckpointPolicy& policy, const std::string& metadata = "{}") override;
  RestoreStatus restore(const std::string& checkpoint, const RestoreOptions& options = {}) override;

  EngineHost& host() { return *host_; }

 protected:
  std::optional<InputContext> input_context() const override { return std::nullopt; }
  ElementSpec distributed_spec(const Dataset& dataset, const InputOptions& options) const override;
  std::shared_ptr<const IteratorSource> iterator_of(const DistributedDataset& dataset) override;
  [[noreturn]] std::vector<Element> next_elements(const IteratorSource& source) override;
  VariableChange change_here(const Variable& variable, VariableChange change) override;
  int gradients_here() const override;

 private:
  friend class ClusterCoordinator;
  // Queues a closure of `function`, traced in the scope that is open.
  //   Errors  as of ClusterCoordinator::schedule().
  RemoteValue enqueue(Function& function, const std::vector<ScheduleArgument>& arguments);
  RemoteValue enqueue(std::shared_ptr<const ConcreteFunction> concrete, const std::string& name,
                      const std::vector<ScheduleArgument>& arguments);
  // As the replicas of a closure take its elements: pieces of global batches, or batches in turn.
  Dataset cut(const Dataset& dataset, const InputOptions& options) const;
  Dataset in_turn(const Dataset& dataset) const;
  RunResult call_for_each_replica(Function& function,
                                  const std::vector<RunArgument>& arguments) override;
  // Is this a trace of one of several replicas?
  bool records_replicas() const;
  RunResult run_replicas(Function& function, const std::vector<RunArgument>& arguments);
  Array reduce_replicas(ReduceOp op, const std::vector<Array>& values) const override;
  Array gather_replicas(const std::vector<Array>& values, int axis) const override;
  std::vector<Array> replicas_here(const PerReplica& value) const override;
  std::vector<Array> all_reduce(const ReplicaContext& replica, ReduceOp op,
                                const std::vector<Array>& values) const override;
  PerReplica merge(const ReplicaContext& replica, const ReplicaContext::MergeBody& body,
                   const std::vector<Array>& arguments) override;
  static ScheduleArgument scheduled_argument(const Argument& argument);
  // Errors  the closure's.
  std::vector<Tensor> outputs_of(const RemoteValue& value);
  // Errors  those of enqueue() and of the closure.
  StepOutputs run_step(Function& function, const std::vector<Argument>& arguments) override;
  std::vector<Tensor> run_now(const ConcreteFunction& function) override;
  std::vector<std::string> worker_devices() const override;
  std::vector<std::string> parameter_devices() const override;
  const EagerRuntime* eager_runtime() const override { return this; }
  std::string next_dataset_name();

  std::unique_ptr<EngineHost> host_;
  std::unique_ptr<WorkerReplicas> replicas_;                   // null: a worker is one
  std::shared_ptr<const std::vector<Tensor>> worker_of_lane_;  // the number of each lane's worker
  int datasets_ = 0;                                           // made by iterate()
};

}  // namespace cairn
