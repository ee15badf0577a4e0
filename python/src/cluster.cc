// Parameter servers: the strategy, the coordinator that schedules closures, a cluster of this
// machine's own.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "forks.h"
#include "functions.h"
#include "lazily_released.h"
#include "own_datasets.h"
#include "strategy/servers/cluster_coordinator.h"
#include "strategy/strategies.h"
#include "tools/launch/local_cluster.h"
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

 private:
  static ParameterServerStrategy& servers(const Owner& owner) {
    auto* found = dynamic_cast<ParameterServerStrategy*>(&owner.strategy());
    if (found == nullptr)
      type_error(
          "ClusterCoordinator() is of a ParameterServerStrategy: other strategies run a function "
          "by strategy.run()");
    return *found;
  }
  SharedOwner owner_;
  ClusterCoordinator coordinator_;
};

// The queue holds 262,144 closures.
constexpr std::uint64_t kRoom = 200'000;

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
  const auto given = nb::borrow<nb::args>(tuple_of_arguments(args));
  const auto named = nb::borrow<nb::kwargs>(dict_of_arguments(kwargs));
  TracedFunction::Call call = traced->call(given, named);
  const auto arguments = traced->arguments<ScheduleArgument>(call, given, named, schedule_argument);
  ClusterCoordinator& to = coordinator.get();
  const auto act = [&] { return to.schedule(*call.function, arguments); };
  // schedule() waits only if the queue is full, or for what still runs once a closure has failed.
  // If the GIL were released for each call, another thread that computes in Python would take it,
  // and keep it for 5 ms.
  if (to.counts().queued >= kRoom) return {recorded_or_run(act), call.results};
  const LazilyReleased seldom;
  return {act(), call.results};
}

void bind_coordinator(nb::module_& m) {
  nb::class_<Remote>(m, "RemoteValue", "What a closure will have returned.")
      .def("get", &Remote::get, "timeout"_a = nb::none(),
           nb::sig("def get(self, timeout: float | None = None) -> typing.Any"),
           "Waits for the closure, and gives what the function returned, as NumPy arrays.")
      .def("fetch", &Remote::get, "timeout"_a = nb::none(),
           nb::sig("def fetch(self, timeout: float | None = None) -> typing.Any"))
      .def(
          "ready", [](const Remote& remote) { return remote.value.ready(); },
          "Whether get() returns at once.");
  nb::class_<PerWorker>(m, "PerWorkerDataset",
                        "A dataset that each worker reads, as an argument of schedule().");
  nb::class_<PerWorkerValues>(m, "PerWorkerValues",
                              "A value for each worker, as an argument of schedule().");
  nb::class_<InputContext>(m, "InputContext",
                           "For which input pipeline a dataset function makes a dataset.")
      .def_ro("num_input_pipelines", &InputContext::num_input_pipelines)
      .def_ro("input_pipeline_id", &InputContext::input_pipeline_id)
      .def_ro("num_replicas_in_sync", &InputContext::num_replicas_in_sync)
      .def("get_per_replica_batch_size", &InputContext::get_per_replica_batch_size,
           "global_batch_size"_a);
  nb::class_<Coordinator>(m, "ClusterCoordinator",
                          "Schedules functions on the workers of a cluster.")
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
              const Dataset& data = nb::cast<const Dataset&>(dataset);
              return PerWorker{released([&] { return to.create_per_worker_dataset(data, name); }),
                               coordinator.owner()};
            }
            const OwnDatasets make(dataset, "create_per_worker_dataset(): the function");
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
            return PerWorker{released([&] { return to.create_shared_dataset(dataset, name); }),
                             coordinator.owner()};
          },
          "dataset"_a, "name"_a = "shared", "One stream of which each element goes to one closure.")
      .def(
          "save",
          [](Coordinator& coordinator, const std::string& folder) {
            ClusterCoordinator& to = coordinator.get();
            return released([&] { return to.save({.folder = folder}); });
          },
          "folder"_a, "Saves a checkpoint while training goes on; its own folder.")
      .def(
          "restore",
          [](Coordinator& coordinator, const std::string& checkpoint) {
            ClusterCoordinator& to = coordinator.get();
            released([&] { to.restore(checkpoint).expect_partial(); });
          },
          "checkpoint"_a, "Takes variables, slots and positions from a checkpoint.")
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
      .def("__repr__", [](Coordinator& coordinator) -> std::string {
        if (coordinator.owner()->closed()) return "<cairn.ClusterCoordinator, closed>";
        const auto stats = coordinator.get().stats();
        return str("<cairn.ClusterCoordinator: ", stats.ps_ready, " of ", stats.ps, " ps, ",
                   stats.workers_ready, " of ", stats.workers, " workers, step ", stats.global_step,
                   ">");
      });
}

// ---- a cluster of this machine's own ----

class Local {
 public:
  Local(int ps, int workers, const std::string& folder, const std::string& programs)
      : cluster_(std::make_unique<tools::LocalCluster>(tools::LocalClusterOptions{
            .ps = ps, .workers = workers, .dir = folder, .programs = programs})) {
    count_living(1);
  }
  void start() {
    require_own_process();
    released([&] { cluster_->start(); });
  }
  ~Local() {
    end_here(cluster_);
    if (in_own_process()) count_living(-1);
  }
  Local(const Local&) = delete;
  Local& operator=(const Local&) = delete;
  void stop() {
    if (in_own_process()) released([&] { cluster_->stop(); });
  }
  tools::LocalCluster& get() { return *cluster_; }

 private:
  std::unique_ptr<tools::LocalCluster> cluster_;
};

struct Servers : StrategyObject {
  using StrategyObject::StrategyObject;
};

void bind_local_cluster(nb::module_& m) {
  nb::class_<Local>(m, "_LocalCluster")
      .def(nb::init<int, int, const std::string&, const std::string&>(), "ps"_a, "workers"_a,
           "folder"_a, "programs"_a)
      .def("start", &Local::start)
      .def("stop", &Local::stop)
      .def_prop_ro("folder", [](Local& local) { return local.get().dir(); })
      .def_prop_ro("tf_config", [](Local& local) { return local.get().tf_config("chief", 0); })
      .def_prop_ro("cluster_id", [](Local& local) { return local.get().cluster_id(); })
      .def_prop_ro("token", [](Local& local) { return local.get().token(); })
      .def_prop_ro("pids", [](Local& local) {
        std::map<std::string, int> pids;
        for (const auto& role : local.get().supervisor().roles())
          pids[str(role.role, ":", role.index)] = role.pid;
        return pids;
      });
}

}  // namespace

void bind_cluster(nb::module_& m) {
  bind_coordinator(m);
  bind_local_cluster(m);
  nb::class_<Servers, StrategyObject>(m, "ParameterServerStrategy",
                                      "Variables on parameter servers, steps on workers.")
      .def(
          "__init__",
          [](Servers* self, std::optional<std::string> tf_config,
             std::optional<std::string> cluster_id, std::optional<std::string> token,
             std::uint64_t seed, double timeout, nb::object beside) {
            ParameterServerOptions options;
            options.seed = seed;
            if (cluster_id) options.engine.cluster_id = *cluster_id;
            if (token) options.engine.token = *token;
            options.engine.start.timeout =
                std::chrono::duration_cast<Duration>(std::chrono::duration<double>(timeout));
            auto strategy = released([&] {
              const TFConfigClusterResolver resolver =
                  tf_config ? TFConfigClusterResolver(*tf_config) : TFConfigClusterResolver();
              return std::make_unique<ParameterServerStrategy>(resolver, std::move(options));
            });
            auto owner = std::make_shared<Owner>(std::move(strategy),
                                                 beside.is_none() ? nb::object() : beside);
            remember(owner);
            new (self) Servers(std::move(owner));
          },
          "tf_config"_a = nb::none(), "cluster_id"_a = nb::none(), "token"_a = nb::none(),
          "seed"_a = 0, "timeout"_a = 60.0, "_beside"_a = nb::none(),
          nb::sig("def __init__(self, tf_config: str | None = None, cluster_id: str | None = None, "
                  "token: str | None "
                  "= None, seed: int = 0, timeout: float = 60.0, _beside: object = None) -> None"));
}

}  // namespace cairn::python
