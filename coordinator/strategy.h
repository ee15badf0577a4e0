// Strategies: where variables live and how a step runs. The model's code does not change with them.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/cluster_resolver.h"
#include "coordinator/engine_options.h"
#include "coordinator/restore_status.h"
#include "coordinator/run_values.h"
#include "core/exec/executor.h"
#include "core/graph/eager.h"
#include "core/graph/function.h"
#include "core/graph/variable.h"
#include "core/rows/layout.h"
#include "data/dataset.h"
#include "data/input_context.h"
#include "rpc/transport.h"

namespace cairn {

class EngineHost;
class LocalStore;

class Strategy : public VariableCreator {
 public:
  // Variables that layers make while the scope lives are this strategy's.
  Scope scope() { return Scope(*this); }
  // Wraps a callable; it is traced at its first use for each signature, in this strategy's scope.
  template <typename F>
  Function function(F callable, std::string name = "function") {
    return Function(std::move(callable), std::move(name));
  }
  virtual int num_replicas_in_sync() const { return 1; }
  // Runs `function` once on every replica, with its arguments, and returns what the replicas
  // returned; there is one replica, so each is the value itself.
  //   Within a function that is being traced it records: the function's operations and effects
  //   become part of that one, each time that run() is called there, and happen whenever that
  //   function runs. The results are then Arrays without a value yet, and datasets are passed as
  //   Iterators of the function being traced.
  //   Errors  those of tracing and of the step; OutOfRange at the end of the data. In a traced
  //           function: FailedPrecondition, if it belongs to another strategy; InvalidArgument, if
  //           a dataset is passed that is none of its arguments, or if `function` would run itself.
  RunResult run(Function& function, const std::vector<RunArgument>& arguments = {});
  // What a dataset of global batches is for this strategy's replicas. With one replica in sync it
  // stays as it is.
  virtual Dataset experimental_distribute_dataset(const Dataset& dataset) const { return dataset; }
  // What `Checkpoint` asks for: all variables with their slots, and the step. One format for all
  // strategies.
  virtual std::string save(const CheckpointPolicy& policy, const std::string& metadata = "{}") = 0;
  virtual RestoreStatus restore(const std::string& checkpoint,
                                const RestoreOptions& options = {}) = 0;
  // The same for a function that makes the dataset of one input pipeline.
  using DatasetFunction = std::function<Dataset(const InputContext&)>;
  virtual DatasetFunction distribute_datasets_from_function(DatasetFunction dataset_fn) const {
    return dataset_fn;
  }

 private:
  // One run now, outside of any trace.
  virtual std::vector<Tensor> run_step(Function& function,
                                       const std::vector<Argument>& arguments) = 0;
  RunResult record_run(Function& function, const std::vector<RunArgument>& arguments);
};

// One process, one device, no server: the default, and the yardstick for what distribution costs.
//   Thread  one at a time.
class OneDeviceStrategy : public Strategy {
 public:
  explicit OneDeviceStrategy(std::uint64_t seed = 0);
  ~OneDeviceStrategy() override;

  Variable create_variable(VariableSpec spec) override;
  void add_slots(const Variable& variable, const UpdateRule& rule) override;

  // An iterator of this process over `dataset`, or over what `dataset_fn` makes for the only
  // pipeline: to be passed to run().
  std::shared_ptr<const IteratorSource> iterate(const Dataset& dataset) const;
  std::shared_ptr<const IteratorSource> iterate(const DatasetFunction& dataset_fn) const;
  LocalStore& store();
  // Iterators have no names here: where they stand is not in a checkpoint, and positions that one
  // has are left alone.
  std::string save(const CheckpointPolicy& policy, const std::string& metadata = "{}") override;
  RestoreStatus restore(const std::string& checkpoint, const RestoreOptions& options = {}) override;

 private:
  std::vector<Tensor> run_step(Function& function, const std::vector<Argument>& arguments) override;
  struct State;
  std::unique_ptr<State> state_;
};

struct ParameterServerOptions {
  // none: variables are not split, as in the reference
  std::shared_ptr<const Partitioner> partitioner = nullptr;
  Placement placement = Placement::kSizeAware;
  std::uint64_t seed = 0;  // of initial values
  rpc::Transport transport = rpc::Transport::kAuto;
  // its cluster and variables come from the resolver and the fields above
  EngineOptions engine = {};
};

// While it lives, variables made by the strategy lie on the shard of another one, in one part; they
// take no turn of a round-robin placement. Nests; ends before its strategy.
class [[nodiscard]] Colocation {
 public:
  Colocation(std::vector<std::string>& names, const std::string& beside) : names_(names) {
    names_.push_back(beside);
  }
  ~Colocation() { names_.pop_back(); }
  Colocation(const Colocation&) = delete;
  Colocation& operator=(const Colocation&) = delete;

 private:
  std::vector<std::string>& names_;
};

// Variables on ps, steps on workers, sent by a ClusterCoordinator.
class ParameterServerStrategy : public Strategy, private EagerRuntime {
 public:
  // Connects to every task of the cluster. Where options leave them open, the cluster's id and
  // token are those of the environment (CAIRN_CLUSTER_ID, CAIRN_TOKEN or CAIRN_TOKEN_FILE), as
  // `cairn up` sets them.
  //   Errors  InvalidArgument: not such a cluster. Unavailable: a task could not be reached in
  //           time; names it.
  explicit ParameterServerStrategy(const ClusterResolver& resolver,
                                   ParameterServerOptions options = {});
  // On an engine that runs already (the simulation's).
  explicit ParameterServerStrategy(std::unique_ptr<EngineHost> host);
  ~ParameterServerStrategy() override;

  Variable create_variable(VariableSpec spec) override;
  void add_slots(const Variable& variable, const UpdateRule& rule) override;
  // auto beside = strategy.colocate_vars_with(table);
  //   Errors  when a variable is made: `variable` is in several parts.
  Colocation colocate_vars_with(const Variable& variable) {
    return Colocation(colocated_, variable.name());
  }
  std::string save(const CheckpointPolicy& policy, const std::string& metadata = "{}") override;
  RestoreStatus restore(const std::string& checkpoint, const RestoreOptions& options = {}) override;
  EngineHost& host() { return *host_; }

 private:
  // run(), outside of a traced function: one closure on any worker, waited for. For a value in
  // between; steps are for ClusterCoordinator::schedule().
  // Errors  those of schedule() and of the closure.
  std::vector<Tensor> run_step(Function& function, const std::vector<Argument>& arguments) override;
  std::vector<Tensor> run_now(const ConcreteFunction& function) override;
  std::unique_ptr<EngineHost> host_;
  std::vector<std::string> colocated_;  // the innermost last
};

}  // namespace cairn
