// Strategies on parameter servers, and strategies by their names.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>

#include "kinds.h"
#include "options.h"
#include "strategy/make_strategy.h"
#include "strategy/strategies.h"
#include "tables_folder.h"

namespace cairn::python {
namespace {

// Arguments of both kinds.
struct Wanted {
  std::optional<std::string> tf_config;
  ParameterServerOptions options;
  const ClusterResolver* resolver = nullptr;
  std::optional<std::string> tables_folder;
};

// In the folder of a run of `cairn up`, else among the temporary files.
std::string tables_folder_of_run() {
  const char* run = std::getenv("CAIRN_RUN_DIR");
  return run == nullptr || *run == '\0' ? "" : str(run, "/tables");
}

template <typename T>
SharedOwner connected(Wanted wanted, nb::handle beside) {
  SharedOwner owner = owner_from(
      [&] {
        const TFConfigClusterResolver found = wanted.tf_config
                                                  ? TFConfigClusterResolver(*wanted.tf_config)
                                                  : TFConfigClusterResolver();
        const ClusterResolver& resolver = wanted.resolver == nullptr ? found : *wanted.resolver;
        return std::make_unique<T>(resolver, std::move(wanted.options));
      },
      beside.is_none() ? nb::object() : nb::borrow(beside));
  owner->set_tables(std::make_shared<TablesFolder>(wanted.tables_folder ? *wanted.tables_folder
                                                                        : tables_folder_of_run()));
  return owner;
}

Placement placement_of(const std::string& word) {
  return value_of_word<Placement>(
      "placement", word,
      {{"size_aware", Placement::kSizeAware}, {"round_robin", Placement::kRoundRobin}});
}
rpc::Transport transport_of(const std::string& word) { return rpc::parse_transport(word); }

ParameterServerOptions options_of(const std::optional<std::string>& cluster_id,
                                  const std::optional<std::string>& token, std::uint64_t seed,
                                  std::optional<double> timeout,
                                  std::shared_ptr<Partitioner> partitioner,
                                  const std::string& placement, const std::string& transport,
                                  const std::optional<EngineOptions>& engine,
                                  std::uint32_t replicas) {
  ParameterServerOptions options;
  if (engine) options.engine = *engine;
  if (cluster_id) options.engine.cluster_id = *cluster_id;
  if (token) options.engine.token = *token;
  if (timeout) options.engine.start.timeout = duration_of(*timeout);
  options.partitioner = std::move(partitioner);
  options.placement = placement_of(placement);
  options.seed = seed;
  options.transport = transport_of(transport);
  options.replicas = replicas;
  return options;
}

#define CAIRN_CLUSTER_PARAMETERS                                                            \
  "tf_config: str | None = None, cluster_id: str | None = None, token: str | None = None, " \
  "seed: int = 0, timeout: float | None = None, _beside: object = None, *, "                \
  "tables_folder: str | None = None, partitioner: "                                         \
  "Partitioner | None = None, placement: str = 'size_aware', transport: str = 'auto', "     \
  "cluster_resolver: ClusterResolver | None = None, engine: EngineOptions | None = None, "  \
  "replicas: int = 1"

void bind_parameter_servers(nb::module_& m) {
  nb::class_<Servers, StrategyObject>(m, "ParameterServerStrategy",
                                      R"(Variables on parameter servers, steps on workers.

Without arguments it is the cluster that TF_CONFIG names.

>>> with cairn.LocalCluster(ps=2, workers=1) as cluster:
...     strategy = cluster.strategy()
...     with strategy.scope():
...         print(cairn.Variable(np.zeros((4, 2), "float32")).shape)
(4, 2))")
      .def(
          "__init__",
          [](Servers* self, std::optional<std::string> tf_config,
             const std::optional<std::string>& cluster_id, const std::optional<std::string>& token,
             std::uint64_t seed, std::optional<double> timeout, nb::object beside,
             std::optional<std::string> tables_folder, std::shared_ptr<Partitioner> partitioner,
             const std::string& placement, const std::string& transport,
             const ClusterResolver* cluster_resolver, const std::optional<EngineOptions>& engine,
             std::uint32_t replicas, nb::handle consistency, std::vector<std::string> devices) {
            ParameterServerOptions options =
                options_of(cluster_id, token, seed, timeout, std::move(partitioner), placement,
                           transport, engine, replicas);
            options.consistency = consistency_of(consistency);
            options.devices = std::move(devices);
            new (self) Servers(
                connected<ParameterServerStrategy>({std::move(tf_config), std::move(options),
                                                    cluster_resolver, std::move(tables_folder)},
                                                   beside));
          },
          "tf_config"_a = nb::none(), "cluster_id"_a = nb::none(), "token"_a = nb::none(),
          "seed"_a = 0, "timeout"_a = nb::none(), "_beside"_a = nb::none(), nb::kw_only(),
          "tables_folder"_a = nb::none(), "partitioner"_a = nb::none(),
          "placement"_a = "size_aware", "transport"_a = "auto", "cluster_resolver"_a = nb::none(),
          "engine"_a = nb::none(), "replicas"_a = 1, "consistency"_a = nb::none(),
          "devices"_a = std::vector<std::string>{},
          nb::sig("def __init__(self, " CAIRN_CLUSTER_PARAMETERS
                  ", consistency: Consistency | str | None = None, devices: "
                  "collections.abc.Sequence[str] = []) -> None"),
          "Connects to the cluster of TF_CONFIG, or of a text or a resolver, within `timeout` "
          "seconds (60). consistency: \"asynchronous\", \"synchronous\", or a "
          "cairn.Consistency. tables_folder: seen by the workers as by this process; tables that "
          "are "
          "too large to travel to them are written there, by default in the run's folder, and it "
          "is "
          "removed at the end if it was not there before. replicas: the ps on which each row lies, "
          "so that the loss of one loses no update.")
      .def_prop_ro(
          "layout", [](const Servers& of) { return layout_of(of); },
          "Where the variables lie now.");
}

void bind_hybrid(nb::module_& m) {
  nb::class_<Hybrid, Servers>(m, "HybridStrategy",
                              R"(Tables on parameter servers, all else mirrored among the workers.

>>> with cairn.LocalCluster(ps=1, workers=1) as cluster:
...     isinstance(cluster.strategy(hybrid=True), cairn.HybridStrategy)
True)")
      .def(
          "__init__",
          [](Hybrid* self, std::optional<std::string> tf_config,
             const std::optional<std::string>& cluster_id, const std::optional<std::string>& token,
             std::uint64_t seed, std::optional<double> timeout, nb::object beside,
             std::optional<std::string> tables_folder, std::shared_ptr<Partitioner> partitioner,
             const std::string& placement, const std::string& transport,
             const ClusterResolver* cluster_resolver, const std::optional<EngineOptions>& engine,
             std::uint32_t replicas, bool check_replicas) {
            ParameterServerOptions options =
                options_of(cluster_id, token, seed, timeout, std::move(partitioner), placement,
                           transport, engine, replicas);
            options.engine.variables.check_replicas = check_replicas;
            new (self)
                Hybrid(connected<HybridStrategy>({std::move(tf_config), std::move(options),
                                                  cluster_resolver, std::move(tables_folder)},
                                                 beside));
          },
          "tf_config"_a = nb::none(), "cluster_id"_a = nb::none(), "token"_a = nb::none(),
          "seed"_a = 0, "timeout"_a = nb::none(), "_beside"_a = nb::none(), nb::kw_only(),
          "tables_folder"_a = nb::none(), "partitioner"_a = nb::none(),
          "placement"_a = "size_aware", "transport"_a = "auto", "cluster_resolver"_a = nb::none(),
          "engine"_a = nb::none(), "replicas"_a = 1, "check_replicas"_a = false,
          nb::sig("def __init__(self, " CAIRN_CLUSTER_PARAMETERS
                  ", check_replicas: bool = False) -> None"));
}
#undef CAIRN_CLUSTER_PARAMETERS

template <typename Object>
nb::object object_of(SharedOwner owner) {
  return nb::cast(new Object(std::move(owner)), nb::rv_policy::take_ownership);
}

// As the class that the program would have made.
nb::object object_of_kind(const std::string& name, SharedOwner owner) {
  if (name == "one_device") return object_of<OneDevice>(std::move(owner));
  if (name == "mirrored") return object_of<Mirrored>(std::move(owner));
  if (name == "central_storage") return object_of<Central>(std::move(owner));
  if (name == "multi_worker_mirrored") return object_of<MultiWorker>(std::move(owner));
  if (name == "hybrid") return object_of<Hybrid>(std::move(owner));
  return object_of<Servers>(std::move(owner));
}

}  // namespace

void bind_servers(nb::module_& m) {
  bind_parameter_servers(m);
  bind_hybrid(m);
}

void bind_make_strategy(nb::module_& m) {
  m.def(
      "make_strategy",
      [](const std::string& name, std::uint64_t seed, std::vector<std::string> devices,
         nb::handle consistency, std::uint32_t replicas) {
        StrategyOptions options{.seed = seed,
                                .devices = std::move(devices),
                                .consistency = consistency_of(consistency),
                                .replicas = replicas};
        return object_of_kind(name,
                              owner_from([&] { return make_strategy(name, std::move(options)); }));
      },
      "name"_a, "seed"_a = 0, "devices"_a = std::vector<std::string>{},
      "consistency"_a = nb::none(), "replicas"_a = 1,
      nb::sig("def make_strategy(name: str, seed: int = 0, devices: "
              "collections.abc.Sequence[str] = [], consistency: Consistency | str | None = None, "
              "replicas: int = 1) -> Strategy"),
      "A strategy by its name: \"one_device\", \"mirrored\", \"central_storage\", "
      "\"multi_worker_mirrored\", \"parameter_server\" or \"hybrid\".\n\n>>> "
      "cairn.make_strategy(\"mirrored\").num_replicas_in_sync\n2");
}

}  // namespace cairn::python
