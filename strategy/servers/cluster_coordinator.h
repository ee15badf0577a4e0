// ClusterCoordinator: schedules closures on workers and gives their results back.
//
//   ClusterCoordinator coordinator(strategy);
//   auto batches = coordinator.create_per_worker_dataset([](const InputContext& context) { ... });
//   RemoteValue loss = coordinator.schedule(step, {batches});
//   coordinator.join();
//
//   Thread  any; a Function is traced under one caller at a time.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "coordinator/cluster/closure.h"
#include "coordinator/cluster/closure_queue.h"
#include "coordinator/cluster/engine_options.h"
#include "coordinator/cluster/restore_status.h"
#include "coordinator/progress/pipelines.h"
#include "data/dataset/dataset.h"
#include "strategy/servers/checkpoint.h"
#include "strategy/servers/fetch.h"
#include "strategy/servers/parameter_server_strategy.h"

namespace cairn {

// A value of its own for every lane: a closure gets that of the lane which runs it, also when it
// runs again on another one. Copies share the values.
class PerWorkerValues {
 public:
  explicit PerWorkerValues(std::vector<Tensor> values)
      : values_(std::make_shared<const std::vector<Tensor>>(std::move(values))) {}
  const std::shared_ptr<const std::vector<Tensor>>& values() const { return values_; }

 private:
  std::shared_ptr<const std::vector<Tensor>> values_;
};

using PerWorkerDatasetHandle = std::shared_ptr<const PerWorkerDataset>;

// An argument of schedule(): a Tensor, an Array or a number (its value now), a per-worker dataset,
// per-worker values.
struct ScheduleArgument : std::variant<Tensor, PerWorkerDatasetHandle, PerWorkerValues> {
  using Value = std::variant<Tensor, PerWorkerDatasetHandle, PerWorkerValues>;
  template <typename T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, ScheduleArgument>)
      ScheduleArgument(T&& value)  // NOLINT(google-explicit-constructor)
      : Value(converted(std::forward<T>(value))) {}

 private:
  template <typename T>
  static Value converted(T&& value);
};

class ClusterCoordinator {
 public:
  explicit ClusterCoordinator(ParameterServerStrategy& strategy);

  // Queues one run of `function` on any worker; it is traced in the strategy's cross-replica
  // context. Never waits for a worker, only while the queue (262,144) is full.
  //   Errors  tracing's own, at once; the first error of a closure that failed before (then this
  //           one is not queued). FailedPrecondition: called while a function is being traced,
  //           where Strategy::run records, or in the scope of another strategy.
  RemoteValue schedule(Function& function, const std::vector<ScheduleArgument>& arguments = {});
  // Not usable: they say what is wrong with a call that does not fit.
  template <typename F>
  requires(!std::is_same_v<F, Function&>) RemoteValue
      schedule(F&& function, const std::vector<ScheduleArgument>& arguments = {});
  template <typename A, typename... More>
  requires(sizeof...(More) > 0 ||
           !std::is_convertible_v<A&&, const std::vector<ScheduleArgument>&>) RemoteValue
      schedule(Function& function, A&& argument, More&&... more);
  // Until every closure is done. Errors: the first that a closure raised, once; DeadlineExceeded.
  void join(Duration limit = kForever);
  // Would join() return at once? It raises an error as join() does.
  bool done();
  // Cancels what is queued, without an error; what runs goes on to its end.
  void cancel();
  // The outputs of a RemoteValue, or of all in a nest of vectors, maps, pairs and tuples:
  // strategy/servers/fetch.h. It clears no error.
  template <typename Structure>
  auto fetch(const Structure& structure, Duration limit = kForever) const {
    return Fetcher{limit}(structure);
  }

  // `dataset_fn` is called once per lane of each worker, with the pipeline's true number. Its
  // position is kept over a worker's death; files must be visible to the workers under the same
  // names. Each pipeline shuffles in an order of its own (Dataset::for_pipeline), whether or not
  // dataset_fn shards. Where a worker is several replicas, its batches are made for one of them
  // each, and they take them in turn.
  //   Errors  ClosureInput: the function threw, or returned nothing; with the code of its error. A
  //           dataset that can be described and not read is a ClosureInput of the closures that
  //           take from it. InvalidArgument: pipelines with other columns.
  PerWorkerDatasetHandle create_per_worker_dataset(
      const std::function<Dataset(const InputContext&)>& dataset_fn, std::string name = "dataset");
  // The same dataset for each: every worker reads all of it, or, if it was distributed with another
  // AutoShardPolicy than kAuto and kOff or with Visitation::kExactlyOnce, its part. A worker's
  // replicas share each batch.
  //   Errors  as of auto_shard(), with lanes for workers.
  PerWorkerDatasetHandle create_per_worker_dataset(const Dataset& dataset,
                                                   std::string name = "dataset");
  PerWorkerDatasetHandle create_per_worker_dataset(const DistributedDataset& dataset,
                                                   std::string name = "dataset");
  // One stream that all workers draw from: each element goes to one closure.
  //   Errors  InvalidArgument: of a dataset function, which makes a stream for each.
  PerWorkerDatasetHandle create_shared_dataset(const Dataset& dataset, std::string name = "shared");
  PerWorkerDatasetHandle create_shared_dataset(const DistributedDataset& dataset,
                                               std::string name = "shared");
  // `value_fn` is called once per lane, as a dataset function is; a closure gets what it returned
  // for the lane that runs it.
  //   Errors  InvalidArgument: values of different types.
  PerWorkerValues create_per_worker_values(
      const std::function<Tensor(const InputContext&)>& value_fn);

  // Strategy::save() and restore(): one consistent cut of variables, step and positions, while
  // training goes on; returns the checkpoint's folder.
  std::string save(const CheckpointPolicy& policy, const std::string& metadata = "{}");
  // Saves by itself from now on, every so many steps or seconds. A save that fails is logged and
  // counted (EngineStats), and does not end the run.
  void save_automatically(const CheckpointPolicy& policy, const std::string& metadata = "{}");
  // Replaces the metadata of the automatic checkpoints that begin after this call.
  void set_save_metadata(const std::string& metadata);
  // The program has taken that folder already (storage/folder_lock.h): saves into it go by this
  // lock from now on. Other folders are locked at the first save.
  void hold_folder(std::shared_ptr<const storage::FolderLock> lock);
  // From a checkpoint's folder. Variables that are made later get their rows when they are made;
  // the status lists what matches.
  //   Errors  FailedPrecondition: a variable made so far has another dtype or shape there.
  RestoreStatus restore(const std::string& checkpoint, const RestoreOptions& options = {});

  // The run that this coordinator goes on with, because its journal told of one
  // (EngineOptions::journal): rows, step and data stand where an earlier program's stood, and what
  // that one had sent has ended. The program makes the same variables, in the same order, and
  // datasets of the same names; it restores no checkpoint, unless it wants to go back.
  std::optional<ResumedRun> resumed() const;

  // Keeps a text for the program that goes on with the run, which finds it in resumed()->notes. It
  // replaces what was noted under `name` before; an empty text takes that back. A successor that
  // sees what a closure has done which was scheduled later sees the note as well. Without a journal
  // nothing is kept.
  //   Errors  InvalidArgument: a name and text of more than 64 MB. Those of the journal.
  //   Cost    a write to the disk, which is waited for.
  void note(const std::string& name, const std::string& text);

  // Has `cairn stop` asked the program to end? A loop that schedules looks at it now and then,
  // saves, and ends.
  bool stop_requested();

  // As of now; each is consistent in itself, and two calls may differ by what happened in between.
  QueueCounts counts() const;
  EngineStats stats() const;
  // The status that `cairn status` shows, as one JSON object, refreshed a few times a second.
  std::string status_json() const;
  // A JSON value that the program says of itself: `program` in that status from now on, instead of
  // what it said before. `cairn status` shows the fields that docs/running.md lists.
  //   Errors  InvalidArgument: it is not JSON.
  void set_program_status(const std::string& json);
  // The strategy must outlive the coordinator, which holds no state of the cluster itself.
  ParameterServerStrategy& strategy() { return strategy_; }

 private:
  InputContext context(std::size_t pipeline) const;
  using Dealt = std::function<Dataset(const Dataset& dataset, std::size_t pipeline)>;
  PerWorkerDatasetHandle create_per_worker_dataset(const DatasetFunction& dataset_fn,
                                                   std::string name, const Dealt& dealt);
  PerWorkerDatasetHandle add_dataset(std::string name,
                                     std::vector<std::vector<std::byte>> descriptions,
                                     ElementSpec spec, bool shared);
  [[noreturn]] static RemoteValue schedule_nothing();  // behind calls that do not compile
  ParameterServerStrategy& strategy_;
};

// ---- templates ----
template <typename T>
ScheduleArgument::Value ScheduleArgument::converted(T&& value) {
  using Plain = std::remove_cvref_t<T>;
  constexpr bool kFits = std::is_constructible_v<Value, T&&>,
                 kRemote = std::is_same_v<Plain, RemoteValue>;
  constexpr bool kIsArray = std::is_convertible_v<T&&, Array>;
  static_assert(!kRemote,
                "A RemoteValue cannot be an argument of schedule: its closure may not have run "
                "yet. Pass value.get(), which "
                "waits for it, or do both steps in one function");
  static_assert(kFits || kIsArray || kRemote,
                "An argument of schedule is a Tensor, an Array, a number, or a per-worker dataset "
                "or per-worker values of "
                "this ClusterCoordinator; anything else is captured by the function");
  if constexpr (kFits)
    return Value(std::forward<T>(value));
  else if constexpr (kIsArray)
    return Array(std::forward<T>(value)).eval();
  else
    return Tensor();
}

template <typename F>
requires(!std::is_same_v<F, Function&>)
    RemoteValue ClusterCoordinator::schedule(F&&, const std::vector<ScheduleArgument>&) {
  static_assert(
      std::is_void_v<F>,
      "schedule takes a Function that has a name, so that it is traced once: Function step = "
      "strategy.function([...](...) {...}); coordinator.schedule(step, {...})");
  return schedule_nothing();
}

template <typename A, typename... More>
requires(sizeof...(More) > 0 || !std::is_convertible_v<A&&, const std::vector<ScheduleArgument>&>)
    RemoteValue ClusterCoordinator::schedule(Function&, A&&, More&&...) {
  static_assert(
      std::is_void_v<A>,
      "The arguments of schedule stand in braces: coordinator.schedule(step, {x, batches})");
  return schedule_nothing();
}

}  // namespace cairn
