// Parameter servers: the coordinator that schedules closures.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "coordinator_html.h"
#include "functions.h"
#include "lazily_released.h"
#include "options.h"
#include "own_datasets.h"
#include "strategy/servers/cluster_coordinator.h"
#include "strategy/strategies.h"
#include "tables_folder.h"
#include "values.h"

namespace cairn::python {
namespace {

// ---- what closures give ----

struct Remote {
  RemoteValue value;
  std::shared_ptr<const Results> results;

  nb::object get(std::optional<double> timeout) const {
    const Duration limit =
        timeout ? std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*timeout))
                : kForever;
    const std::vector<Tensor> values = released([&] { return value.get_all(limit); });
    std::vector<nb::object> leaves;
    for (const Tensor& each : values) leaves.push_back(numpy_of(each));
    return results->around(*value.output_names(), leaves);
  }
};

struct PerWorker {
  PerWorkerDatasetHandle dataset;
  SharedOwner owner;
};

nb::object fetched(nb::handle nest, std::optional<double> timeout) {
  std::vector<nb::object> leaves;
  const Nest shape = Nest::of(nest, leaves, true);
  for (nb::object& leaf : leaves)
    if (nb::isinstance<Remote>(leaf)) leaf = nb::cast<const Remote&>(leaf).get(timeout);
  return shape.around(leaves);
}

// ---- the coordinator ----

class Coordinator {
 public:
  explicit Coordinator(const StrategyObject& strategy)
      : owner_(strategy), coordinator_(servers(*strategy)) {}
  ClusterCoordinator& get() {
    owner_->strategy();
    return coordinator_;
  }
  const SharedOwner& owner() const { return owner_; }
  // Whether the queue takes one more closure at once. It is asked for its length only when all the
  // room that it had then is used. With the GIL.
  bool has_room() {
    if (room_ == 0) {
      const std::uint64_t queued = coordinator_.counts().queued;
      room_ = kRoom - std::min(kRoom, queued);
    }
    return room_ > 0 && --room_ > 0;
  }

 private:
  static ParameterServerStrategy& servers(const Owner& owner) {
    auto* found = dynamic_cast<ParameterServerStrategy*>(&owner.strategy());
    if (found == nullptr)
      type_error(
          "ClusterCoordinator() is of a ParameterServerStrategy: other strategies run a function "
          "by strategy.run()");
    return *found;
  }

  static constexpr std::uint64_t kRoom = 200'000;  // the queue holds 262,144
  SharedOwner owner_;
  ClusterCoordinator coordinator_;
  std::uint64_t room_ = 0;
};

ScheduleArgument schedule_argument(const nb::object& leaf) {
  if (nb::isinstance<PerWorker>(leaf)) return nb::cast<const PerWorker&>(leaf).dataset;
  if (nb::isinstance<PerWorkerValues>(leaf)) return nb::cast<const PerWorkerValues&>(leaf);
  if (nb::isinstance<Remote>(leaf))
    throw nb::type_error(
        "a RemoteValue is no argument of schedule(), since its closure may not have run "
        "yet: pass value.get(), or do both steps in one function");
  if (nb::isinstance<Dataset>(leaf))
    type_error(
        "a dataset is read by workers: pass what coordinator.create_shared_dataset() or "
        "create_per_worker_dataset() makes of it");
  return tensor_of(leaf);
}

// The arguments as schedule() takes them: a tuple and a dict.
nb::object tuple_of_arguments(nb::handle args) {
  if (args.is_none()) return nb::tuple();
  if (!nb::isinstance<nb::tuple>(args) && !nb::isinstance<nb::list>(args))
    type_error(
        str("schedule(): args is a tuple of the arguments, such as (x,), not ", described(args)));
  return nb::tuple(args);
}
nb::object dict_of_arguments(nb::handle kwargs) {
  nb::dict named;
  if (kwargs.is_none()) return named;
  if (!nb::isinstance<nb::dict>(kwargs))
    type_error(str("schedule(): kwargs is a dict of arguments by name, not ", described(kwargs)));
  for (auto [name, value] : nb::borrow<nb::dict>(kwargs)) {
    if (!nb::isinstance<nb::str>(name))
      type_error(str("schedule(): kwargs is keyed by names, not by ", described(name)));
    named[name] = value;
  }
  return named;
}

Remote schedule(Coordinator& coordinator, nb::handle function, nb::handle args, nb::handle kwargs) {
  TracedFunction* traced = nullptr;
  if (!nb::try_cast(function, traced) || traced == nullptr)
    type_error(str("what is scheduled is a function that was made by @strategy.function, not ",
                   described(function)));
  drop_references();
  static const nb::handle no_names = nb::dict().release();  // most closures have none
  const nb::object names = kwargs.is_none() ? nb::borrow(no_names) : dict_of_arguments(kwargs);
  const auto given = nb::borrow<nb::args>(tuple_of_arguments(args));
  const auto named = nb::borrow<nb::kwargs>(names);
  TracedFunction::Call call = traced->call(given, named);
  const auto arguments = traced->arguments<ScheduleArgument>(call, given, named, schedule_argument);
  ClusterCoordinator& to = coordinator.get();
  const auto act = [&] { return to.schedule(*call.function, arguments); };
  // schedule() waits only if the queue is full, or for what still runs once a closure has failed.
  // If the GIL were released for each call, another thread that computes in Python would take it,
  // and keep it for 5 ms.
  if (!coordinator.has_room()) return {recorded_or_run(act), call.results};
  const LazilyReleased seldom;
  return {act(), call.results};
}

void bind_coordinator(nb::module_& m) {
  nb::class_<Remote>(m, "RemoteValue", R"(What a closure will have returned.

>>> with cairn.LocalCluster(ps=1, workers=1) as cluster:
...     strategy = cluster.strategy()
...     double = strategy.function(lambda x: 2.0 * x)
...     value = cairn.ClusterCoordinator(strategy).schedule(double, (3.0,))
...     print(value.get())
6.0)")
      .def("get", &Remote::get, "timeout"_a = nb::none(),
           nb::sig("def get(self, timeout: float | None = None) -> typing.Any"),
           "Waits for the closure, and gives what the function returned, as NumPy arrays.")
      .def("fetch", &Remote::get, "timeout"_a = nb::none(),
           nb::sig("def fetch(self, timeout: float | None = None) -> typing.Any"))
      .def(
          "ready", [](const Remote& remote) { return remote.value.ready(); },
          "Whether get() returns at once.");
  nb::class_<PerWorker>(m, "PerWorkerDataset",
                        R"(A dataset that each worker reads, as an argument of schedule().

>>> with cairn.LocalCluster(ps=1, workers=1) as cluster:
...     strategy = cluster.strategy()
...     coordinator = cairn.ClusterCoordinator(strategy)
...     count = strategy.function(lambda batches: cairn.sum(batches.get_next()["value"]))
...     data = coordinator.create_per_worker_dataset(cairn.Dataset.range(4).batch(4))
...     print(coordinator.schedule(count, (data,)).get())
6)")
      .def_prop_ro(
          "element_spec", [](const PerWorker& of) { return of.dataset->element_spec(); },
          "The columns of an element.")
      .def_prop_ro(
          "name", [](const PerWorker& of) { return of.dataset->name(); },
          "The name that checkpoints have for its positions.")
      .def_prop_ro(
          "pipelines", [](const PerWorker& of) { return of.dataset->pipelines(); },
          "How many input pipelines it has.")
      .def_prop_ro(
          "first_pipeline", [](const PerWorker& of) { return of.dataset->first_pipeline(); },
          "The number of the first, among all datasets.")
      .def(
          "pipeline",
          [](const PerWorker& of, std::size_t lane) { return of.dataset->pipeline(lane); },
          "lane"_a, "The number of the pipeline that a lane draws from.");
  nb::class_<PerWorkerValues>(m, "PerWorkerValues",
                              "A value for each worker, as an argument of schedule().")
      .def_prop_ro(
          "values",
          [](const PerWorkerValues& of) {
            nb::list all;
            for (const Tensor& each : *of.values()) all.append(numpy_of(each));
            return all;
          },
          nb::sig("def values(self) -> list[cairn.typing.NDArray]"), "By lane.");
  nb::class_<InputContext>(m, "InputContext",
                           R"(For which input pipeline a dataset function makes a dataset.

>>> def make(context):
...     data = cairn.Dataset.range(1000)
...     return data.shard(context.num_input_pipelines, context.input_pipeline_id).batch(64))")
      .def_ro("num_input_pipelines", &InputContext::num_input_pipelines)
      .def_ro("input_pipeline_id", &InputContext::input_pipeline_id)
      .def_ro("num_replicas_in_sync", &InputContext::num_replicas_in_sync)
      .def("get_per_replica_batch_size", &InputContext::get_per_replica_batch_size,
           "global_batch_size"_a);
  nb::class_<Coordinator>(m, "ClusterCoordinator",
                          R"(Schedules functions on the workers of a cluster.

>>> with cairn.LocalCluster(ps=1, workers=2) as cluster:
...     strategy = cluster.strategy()
...     coordinator = cairn.ClusterCoordinator(strategy)
...     square = strategy.function(lambda x: x * x)
...     values = [coordinator.schedule(square, (float(i),)) for i in range(4)]
...     coordinator.join()
...     print([float(value) for value in coordinator.fetch(values)])
[0.0, 1.0, 4.0, 9.0])")
      .def(nb::init<const StrategyObject&>(), "strategy"_a)
      .def(
          "schedule", &schedule, "fn"_a, "args"_a = nb::none(), "kwargs"_a = nb::none(),
          nb::sig("def schedule(self, fn: Function, args: collections.abc.Sequence[typing.Any] | "
                  "None = None, "
                  "kwargs: collections.abc.Mapping[str, typing.Any] | None = None) -> RemoteValue"),
          "Queues one run on any worker, and returns at once.")
      .def(
          "join",
          [](Coordinator& coordinator, std::optional<double> timeout) {
            ClusterCoordinator& to = coordinator.get();
            const Duration limit =
                timeout
                    ? std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*timeout))
                    : kForever;
            released([&] { to.join(limit); });
          },
          "timeout"_a = nb::none(), "Until every closure is done; raises the first error of one.")
      .def(
          "done",
          [](Coordinator& coordinator) {
            ClusterCoordinator& to = coordinator.get();
            const LazilyReleased seldom;  // waits for what still runs once a closure has failed
            return to.done();
          },
          "Whether join() returns at once.")
      .def(
          "cancel", [](Coordinator& coordinator) { coordinator.get().cancel(); },
          "What is queued is not run; what runs goes on to its end.")
      .def(
          "fetch",
          [](Coordinator&, nb::handle nest, std::optional<double> timeout) {
            return fetched(nest, timeout);
          },
          "nest"_a, "timeout"_a = nb::none(),
          nb::sig("def fetch(self, nest: typing.Any, timeout: float | None = None) -> typing.Any"),
          "The values of all RemoteValues in a nest.")
      .def(
          "create_per_worker_dataset",
          [](Coordinator& coordinator, nb::object dataset, const std::string& name) {
            ClusterCoordinator& to = coordinator.get();
            if (nb::isinstance<Dataset>(dataset)) {
              const Dataset data =
                  travelling(nb::cast<const Dataset&>(dataset), coordinator.owner());
              return PerWorker{released([&] { return to.create_per_worker_dataset(data, name); }),
                               coordinator.owner()};
            }
            const OwnDatasets make(dataset, "create_per_worker_dataset(): the function",
                                   coordinator.owner());
            return PerWorker{make.run([&] {
                               return released([&] {
                                 return to.create_per_worker_dataset(make.function(), name);
                               });
                             }),
                             coordinator.owner()};
          },
          "dataset"_a, "name"_a = "dataset",
          nb::sig("def create_per_worker_dataset(self, dataset: Dataset | "
                  "collections.abc.Callable[[InputContext], "
                  "Dataset], name: str = 'dataset') -> PerWorkerDataset"),
          "A dataset that each worker reads on its own; of a function, one for each pipeline.")
      .def(
          "create_shared_dataset",
          [](Coordinator& coordinator, const Dataset& dataset, const std::string& name) {
            ClusterCoordinator& to = coordinator.get();
            const Dataset data = travelling(dataset, coordinator.owner());
            return PerWorker{released([&] { return to.create_shared_dataset(data, name); }),
                             coordinator.owner()};
          },
          "dataset"_a, "name"_a = "shared", "One stream of which each element goes to one closure.")
      .def(
          "save",
          [](Coordinator& coordinator, nb::handle policy, const std::string& metadata) {
            coordinator.get();
            return save_by(StrategyObject(coordinator.owner()), policy, metadata);
          },
          "folder"_a, "metadata"_a = "{}", nb::sig(kSaveSignature),
          "Saves a checkpoint while training goes on; its own folder.")
      .def(
          "restore",
          [](Coordinator& coordinator, const std::string& checkpoint, nb::handle options) {
            coordinator.get();
            return restore_by(StrategyObject(coordinator.owner()), checkpoint, options);
          },
          "checkpoint"_a, "options"_a = nb::none(), nb::sig(kRestoreSignature),
          "Takes variables, slots and positions from a checkpoint.")
      .def(
          "save_automatically",
          [](Coordinator& coordinator, const CheckpointPolicy& policy,
             const std::string& metadata) {
            ClusterCoordinator& to = coordinator.get();
            released([&] { to.save_automatically(policy, metadata); });
          },
          "policy"_a, "metadata"_a = "{}",
          "Saves by itself from now on; a save that fails is logged and counted.")
      .def(
          "set_save_metadata",
          [](Coordinator& coordinator, const std::string& metadata) {
            coordinator.get().set_save_metadata(metadata);
          },
          "metadata"_a, "Of the automatic checkpoints that begin from now on.")
      .def(
          "note",
          [](Coordinator& coordinator, const std::string& name, const std::string& text) {
            ClusterCoordinator& to = coordinator.get();
            released([&] { to.note(name, text); });
          },
          "name"_a, "text"_a,
          "Keeps a text for the program that goes on with the run (resumed.notes).")
      .def(
          "create_per_worker_values",
          [](Coordinator& coordinator, nb::object function) {
            ClusterCoordinator& to = coordinator.get();
            const auto make = [function = share(function)](const InputContext& context) {
              const Acquired here;
              return tensor_of(nb::borrow(function->get())(context));
            };
            return released([&] { return to.create_per_worker_values(make); });
          },
          "value_fn"_a,
          nb::sig("def create_per_worker_values(self, value_fn: "
                  "collections.abc.Callable[[InputContext], cairn.typing.ArrayLike]) -> "
                  "PerWorkerValues"),
          "A value for each lane of each worker, as an argument of schedule().")
      .def(
          "counts", [](Coordinator& coordinator) { return coordinator.get().counts(); },
          "How many closures wait, run, and ran.")
      .def(
          "stats", [](Coordinator& coordinator) { return coordinator.get().stats(); },
          "Figures of the run.")
      .def(
          "status_json", [](Coordinator& coordinator) { return coordinator.get().status_json(); },
          "What `cairn status --json` shows.")
      .def(
          "set_program_status",
          [](Coordinator& coordinator, const std::string& json) {
            coordinator.get().set_program_status(json);
          },
          "json"_a, "The `program` of that status, a JSON value.")
      .def_prop_ro(
          "resumed", [](Coordinator& coordinator) { return coordinator.get().resumed(); },
          "The run that it goes on with (EngineOptions.journal), or None.")
      .def(
          "stop_requested",
          [](Coordinator& coordinator) { return coordinator.get().stop_requested(); },
          "Whether `cairn stop` has asked the program to end.")
      .def_prop_ro(
          "status",
          [](Coordinator& coordinator) {
            return nb::module_::import_("json").attr("loads")(coordinator.get().status_json());
          },
          nb::sig("def status(self) -> dict[str, typing.Any]"), "What `cairn status` shows.")
      .def("__repr__",
           [](Coordinator& coordinator) -> std::string {
             if (coordinator.owner()->closed()) return "<cairn.ClusterCoordinator, closed>";
             const auto stats = coordinator.get().stats();
             return str("<cairn.ClusterCoordinator: ", stats.ps_ready, " of ", stats.ps, " ps, ",
                        stats.workers_ready, " of ", stats.workers, " workers, step ",
                        stats.global_step, ">");
           })
      .def("_repr_html_",
           [](Coordinator& coordinator) { return coordinator_html(coordinator.get()); });
}

}  // namespace

void bind_cluster(nb::module_& m) {
  bind_coordinator(m);
  bind_local_cluster(m);
  bind_row_stream(m);
}

}  // namespace cairn::python
