// Strategy: where variables live and how a step runs. The model's code does not change with it.
//
//   OneDeviceStrategy        one process (one_device_strategy.h)
//   MirroredStrategy         several replicas in one process, each with a copy of every variable
//                            (mirrored_strategy.h)
//   CentralStorageStrategy   the same, with the variables in one place
//                            (central_storage_strategy.h)
//   ParameterServerStrategy  variables on ps, steps on workers (parameter_server_strategy.h)
//   default_strategy()       what a program without a strategy has (replica_context.h)
//
// A program trains by running a function once per replica and reducing what comes back, in any of
// two ways:
//
//   auto scope = strategy.scope();
//   Function step = strategy.function([&](Iterator batches) { ...; return loss; });
//   auto batches = strategy.iterate(strategy.experimental_distribute_dataset(dataset));
//   RunResult losses = strategy.run(step, {batches});
//   float loss = strategy.reduce(ReduceOp::kMean, losses[0]).item<float>();
//
// or, so that all of it is one function, which a ClusterCoordinator can schedule:
//
//   Function train = strategy.function([&](Iterator batches) {
//     return strategy.reduce(ReduceOp::kMean, strategy.run(step, {batches})[0]);
//   });
//   strategy.call(train, {batches});
//
//   Errors  FailedPrecondition stands for the reference's RuntimeError, InvalidArgument for its
//           ValueError.
//   Thread  one at a time, unless a strategy says more.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cluster/engine_options.h"
#include "coordinator/cluster/restore_status.h"
#include "core/graph/function.h"
#include "core/graph/variable.h"
#include "data/dataset/dataset.h"
#include "data/dataset/input_context.h"
#include "strategy/base/distributed_dataset.h"
#include "strategy/base/replica_context.h"
#include "strategy/base/run_values.h"
#include "strategy/base/strategy_extended.h"

namespace cairn {

class EagerRuntime;
class ReplicaRecording;

class Strategy : public VariableCreator {
 public:
  Strategy();
  ~Strategy() override;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  // ---- scope ----

  // Variables that layers make while the scope lives are this strategy's, and the thread is in
  // cross-replica context. The same strategy's scope may be opened again within it.
  //   Errors  FailedPrecondition: another strategy's scope is open, or a replica runs here.
  virtual Scope scope();
  // How many replicas a global batch is dealt out to: a gradient is the mean over their batches.
  virtual int num_replicas_in_sync() const { return 1; }

  // ---- workers ----

  // How many run functions side by side; replicas of one process are one worker.
  virtual int num_workers() const { return 1; }
  // Whether they run each function together, so that a variable is one for all of them.
  virtual bool workers_in_step() const { return false; }
  // The number of the worker that runs what is recorded here, [0, num_workers()): an int64 scalar.
  //   Errors  as of current_worker_index() (strategy/base/per_worker_variable.h), which asks here.
  virtual Array worker_index() { return Tensor::scalar(std::int64_t{0}); }

  // ---- functions ----

  // Wraps a callable; it is traced at its first use for each signature, in this strategy's scope.
  template <typename F>
  Function function(F callable, std::string name = "function") {
    return Function(std::move(callable), std::move(name));
  }
  // Runs `function` once on every replica, in replica context, with its arguments, and returns what
  // the replicas returned: a value per replica, or, with one replica, the value itself.
  //   Within a function that is being traced it records: the function's operations and effects
  //   become part of that one, each time that run() is called there, and happen whenever that
  //   function runs. The results are then Arrays without a value yet, and datasets are passed as
  //   Iterators of the function being traced.
  //   Errors  those of tracing and of the step; OutOfRange at the end of the data.
  //           FailedPrecondition: called in replica context (so by a function that run() runs), or
  //           in the scope of another strategy, or in a traced function of another strategy.
  //           InvalidArgument: in a traced function a dataset that is none of its arguments; a
  //           `function` that would run itself; replicas that return different numbers of values.
  RunResult run(Function& function, const std::vector<RunArgument>& arguments = {});
  // Calls `function` once, as a program in the scope calls a tf.function: in cross-replica context,
  // so that it may itself run() others on the replicas and reduce() what they return. Within a
  // function that is being traced it becomes part of that, in whatever context is there.
  //   Errors  as of run(), but for the context. InvalidArgument: a per-replica value is passed.
  RunResult call(Function& function, const std::vector<RunArgument>& arguments = {});

  // ---- values: in cross-replica context, or without a scope ----

  // One value of the values of all replicas, of the same shape each: their sum or their mean. The
  // mean of a bare value is that value; its sum with several replicas is refused (unless it is all
  // zeros), since it is not clear which sum was meant.
  //   Errors  FailedPrecondition: called in replica context, or in another strategy's scope.
  //           InvalidArgument: shapes that differ, or a sum of a bare value.
  RunValue reduce(ReduceOp op, const PerReplica& value);
  // The same over the axis too (from the end, if negative), or over several: of the elements of all
  // replicas together, so that the sizes of `axis` may differ and a replica may have no element.
  //   Errors  InvalidArgument: no such axis.
  RunValue reduce(ReduceOp op, const PerReplica& value, int axis);
  RunValue reduce(ReduceOp op, const PerReplica& value, const std::vector<int>& axes);
  // The values of all replicas behind one another along `axis`, in the order of replicas; only its
  // size may differ.
  //   Errors  as of reduce(). InvalidArgument: a scalar, or no such axis.
  RunValue gather(const PerReplica& value, int axis);
  // The values of this process's replicas, in their order; one element for a bare value.
  virtual std::vector<RunValue> experimental_local_results(const PerReplica& value) const;
  // A per-replica value of what `value_fn` returns for each replica of this process.
  PerReplica experimental_distribute_values_from_function(
      const std::function<Array(const ValueContext&)>& value_fn);

  // For code that must know how it is distributed (strategy/base/strategy_extended.h).
  StrategyExtended extended() { return StrategyExtended(*this); }

  // ---- data ----

  // Distributes a dataset of global batches to this strategy's replicas
  // (strategy/base/distributed_dataset.h). With one replica in sync the dataset stays as it is.
  //   Errors  InvalidArgument: several replicas, and elements that are single examples; options
  //           that contradict each other; those of auto_shard(). Unimplemented: kPerReplica.
  DistributedDataset experimental_distribute_dataset(const Dataset& dataset,
                                                     const InputOptions& options = {});
  // The same for a function that makes the dataset of one input pipeline, in batches for one
  // replica each: they take them in turn. It is called here, once in each process; under parameter
  // servers once for each lane, when the dataset becomes a source.
  //   Errors  what the function throws. InvalidArgument: it returned no dataset.
  using DatasetFunction = cairn::DatasetFunction;
  DistributedDataset distribute_datasets_from_function(const DatasetFunction& dataset_fn,
                                                       const InputOptions& options = {});
  // Its old name.
  DistributedDataset experimental_distribute_datasets_from_function(
      const DatasetFunction& dataset_fn, const InputOptions& options = {}) {
    return distribute_datasets_from_function(dataset_fn, options);
  }
  // One pass over it, to be passed to run() and call(): each element goes to one run. A dataset, or
  // a dataset function, is distributed first.
  //   Errors  those of the dataset, and of distributing it.
  DistributedIterator iterate(const DistributedDataset& dataset);
  DistributedIterator iterate(const Dataset& dataset);
  DistributedIterator iterate(const DatasetFunction& dataset_fn);

  // ---- checkpoints ----

  // Saves a checkpoint below `policy.folder`, as `Checkpoint` asks: all variables with their slots,
  // the step, and the positions of iterate()'s iterators in their data. Returns the checkpoint's
  // own folder. The format is the same for all strategies.
  //   Errors  InvalidArgument: no folder, or metadata that is no JSON. The disk's.
  virtual std::string save(const CheckpointPolicy& policy, const std::string& metadata = "{}") = 0;
  // Variables that are made later take their rows when they are made, and iterators their places;
  // the status says what fits.
  //   Errors  NotFound, DataLoss: the checkpoint is not there, or damaged. FailedPrecondition: a
  //           variable made so far has another dtype or shape there. Then nothing has changed.
  virtual RestoreStatus restore(const std::string& checkpoint,
                                const RestoreOptions& options = {}) = 0;

  const ScopePlace* scope_place() const override { return &cross_; }

 protected:
  friend class DistributedIterator;
  // The context with which this process calls a dataset function, for its pipeline; none where
  // there are several pipelines here.
  virtual std::optional<InputContext> input_context() const;
  // The spec of what a replica gets: of a dataset of global batches; of the dataset that the
  // dataset function of this process gave.
  //   Errors  InvalidArgument: it cannot be dealt out.
  virtual ElementSpec distributed_spec(const Dataset& dataset, const InputOptions& options) const;
  virtual ElementSpec in_turn_spec(const Dataset& dataset) const;
  virtual std::shared_ptr<const IteratorSource> iterator_of(const DistributedDataset& dataset) = 0;
  // Takes the next element of each replica here.
  //   Errors  OutOfRange: the data has ended. FailedPrecondition: only steps take elements.
  virtual std::vector<Element> next_elements(const IteratorSource& source) = 0;
  // The outputs of one run.
  struct StepOutputs {
    std::vector<Array> values;
    OutputNames names;
  };
  // Under which creator this strategy's functions are traced and its layers find their variables.
  virtual VariableCreator& variable_creator() { return *this; }
  // One run now, outside of any trace; the place of the open scope says for which replica, if any.
  virtual StepOutputs run_step(Function& function, const std::vector<Argument>& arguments) = 0;
  // run(), in this strategy's cross-replica scope: one replica after another, each in its context.
  virtual RunResult call_for_each_replica(Function& function,
                                          const std::vector<RunArgument>& arguments);
  // The sum or the mean of what all replicas have, of one shape: values[i] is what the i-th of this
  // process has.
  virtual Array reduce_replicas(ReduceOp op, const std::vector<Array>& values) const;
  // The values of all replicas behind one another; they fit.
  virtual Array gather_replicas(const std::vector<Array>& values, int axis) const;
  // ReplicaContext::all_reduce() and merge_call(), of a replica that runs here.
  //   Errors  Unimplemented: there are several replicas, which run one after another here.
  virtual std::vector<Array> all_reduce(const ReplicaContext& replica, ReduceOp op,
                                        const std::vector<Array>& values) const;
  virtual PerReplica merge(const ReplicaContext& replica, const ReplicaContext::MergeBody& body,
                           const std::vector<Array>& arguments);

  // One run, or a call (replica kNoReplica), recorded into the function being traced.
  static constexpr int kNoReplica = -1;
  static StepOutputs recorded(Function& function, const std::vector<RunArgument>& arguments,
                              int replica);
  // A run within the trace of one of several replicas: its own part of it.
  RunResult recorded_part(const ReplicaRecording& recording, Function& function,
                          const std::vector<RunArgument>& arguments);
  // The arguments of a run that happens now.
  static std::vector<Argument> arguments_now(const std::vector<RunArgument>& arguments,
                                             int replica);
  // Which of the replicas in sync run in this process: `count` of them, from number `first` on.
  struct ReplicasHere {
    int first = 0;
    int count = 1;
  };
  virtual ReplicasHere replicas_of_process() const { return {0, num_replicas_in_sync()}; }
  // The values of a per-replica value that are at hand: those of this process's replicas, or, where
  // each replica records its own part, the recording replica's alone.
  virtual std::vector<Array> replicas_here(const PerReplica& value) const;
  // The place of a cross-replica scope that is opened here: that of the open one, if there is one.
  const ScopePlace* cross_place() const;
  // Opens the context of one replica. 0 <= id < num_replicas_in_sync().
  Scope replica_scope(int id) { return Scope(variable_creator(), &replica(id)); }
  const ReplicaContext& replica(int id);
  // FailedPrecondition naming `what`, unless this is this strategy's cross-replica context or no
  // scope is open.
  void require_cross_replica(const std::string& what) const;
  // The outputs of all replicas, each a per-replica value. InvalidArgument: their numbers differ.
  static RunResult regrouped(std::vector<StepOutputs> of_replicas);

  // For StrategyExtended: the devices of this process's replicas, the devices that have variables,
  // and the runtime that keeps these (nullptr: the strategy makes none).
  virtual std::vector<std::string> worker_devices() const { return {"cpu:0"}; }
  virtual std::vector<std::string> parameter_devices() const { return worker_devices(); }
  virtual const EagerRuntime* eager_runtime() const { return nullptr; }
  // The variables beside which others are to lie that are made now, by name; the innermost last.
  std::vector<std::string> colocated_;

 private:
  friend class ReplicaContext;
  friend class StrategyExtended;
  bool bare_is_own_value() const;
  friend const ReplicaContext& get_replica_context();
  // One replica's run, or a call, in the scope that is open: recorded or now.
  StepOutputs run_here(Function& function, const std::vector<RunArgument>& arguments, int replica);
  void require_own_trace(const std::string& what, const Function& function);

  StrategyPlace cross_{*this, nullptr};
  std::once_flag replicas_made_;
  std::deque<ReplicaContext> replicas_;
};

}  // namespace cairn
