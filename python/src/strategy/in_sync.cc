// Strategies whose replicas go in step: in this process, or in several.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "collective/base/communication_options.h"
#include "core/base/arithmetic.h"
#include "kinds.h"
#include "options.h"
#include "strategy/strategies.h"
#include "values.h"

namespace cairn::python {
namespace {

InSyncOptions options_of(std::uint64_t seed, bool check_replicas,
                         const std::optional<std::string>& cross_device_ops, double timeout) {
  InSyncOptions options{.seed = seed, .check_replicas = check_replicas};
  if (cross_device_ops) options.cross_device_ops = cross_device_ops_of(*cross_device_ops);
  options.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(duration_of(timeout));
  return options;
}

// The arithmetic and memory of strategies of this process.
template <typename L, typename Object, typename Base>
void bind_local(nb::class_<Object, Base>& strategy) {
  strategy
      .def_prop_ro(
          "global_step", [](const Object& of) { return of->template as<L>().global_step(); },
          "How many steps there were, those before a restored checkpoint included.")
      .def(
          "set_deterministic", [](const Object& of) { of->template as<L>().set_deterministic(); },
          "From the next function on steps repeat bit for bit on a GPU, too.")
      .def(
          "set_products",
          [](const Object& of, const std::string& products) {
            of->template as<L>().set_products(parse_arithmetic(products));
          },
          "products"_a,
          "What matrix products are computed in: \"float32\", \"tf32\", \"bfloat16\" or "
          "\"mixed_bfloat16\".")
      .def(
          "set_device_cache",
          [](const Object& of, std::optional<std::size_t> bytes, std::optional<double> share,
             int lookahead) {
            of->template as<L>().set_device_cache({bytes, share, lookahead});
          },
          nb::kw_only(), "bytes"_a = nb::none(), "share"_a = nb::none(), "lookahead"_a = 4,
          "How much of a GPU's memory tables may take.");
}

void bind_base(nb::module_& m) {
  FieldsOf<CollectiveCounts>(m, "CollectiveCounts", "What a replica has exchanged with others.")
      .add("calls", &CollectiveCounts::calls, "How often.")
      .add("bytes", &CollectiveCounts::bytes, "How much.")
      .add("held_seconds", &CollectiveCounts::held_seconds, "How long it took.")
      .add("waited_seconds", &CollectiveCounts::waited_seconds, "How long it waited for others.")
      .report();
  nb::class_<InSync, StrategyObject> in_sync(m, "InSyncStrategy",
                                             "Replicas that go in step; its kinds are below.");
  bind_local<InSyncStrategy>(in_sync);
  in_sync
      .def(
          "collective_counts",
          [](const InSync& of) { return of->as<InSyncStrategy>().collective_counts(); },
          "What each replica of this process has exchanged.")
      .def_prop_ro(
          "sums_text", [](const InSync& of) { return of->as<InSyncStrategy>().sums_text(); },
          "Where replicas on GPUs are summed.");
}

void bind_one_device(nb::module_& m) {
  nb::class_<OneDevice, StrategyObject> one_device(m, "OneDeviceStrategy",
                                                   R"(One replica in this process.

>>> strategy = cairn.OneDeviceStrategy()
>>> strategy.num_replicas_in_sync
1)");
  one_device.def(
      "__init__",
      [](OneDevice* self, const std::string& device, std::uint64_t seed) {
        new (self) OneDevice(
            owner_from([&] { return std::make_unique<OneDeviceStrategy>(device, seed); }));
      },
      "device"_a = "cpu:0", "seed"_a = 0);
  bind_local<OneDeviceStrategy>(one_device);
}

void bind_mirrored(nb::module_& m) {
  nb::class_<Mirrored, InSync>(
      m, "MirroredStrategy",
      R"(Several replicas in this process, each with a copy of every variable.

>>> strategy = cairn.MirroredStrategy(["cpu:0", "cpu:1"])
>>> strategy.num_replicas_in_sync
2)")
      .def(
          "__init__",
          [](Mirrored* self, const std::vector<std::string>& devices, std::uint64_t seed,
             bool check_replicas, const std::optional<std::string>& cross_device_ops,
             double timeout) {
            const InSyncOptions options =
                options_of(seed, check_replicas, cross_device_ops, timeout);
            new (self) Mirrored(
                owner_from([&] { return std::make_unique<MirroredStrategy>(devices, options); }));
          },
          "devices"_a = std::vector<std::string>{}, "seed"_a = 0, nb::kw_only(),
          "check_replicas"_a = false, "cross_device_ops"_a = nb::none(), "timeout"_a = 600.0,
          "cross_device_ops: \"ThreadOps\", \"ReductionToOneDevice\", "
          "\"HierarchicalCopyAllReduce\", \"Ring\" or \"NcclAllReduce\".");
  nb::class_<Mesh, Mirrored>(m, "MeshStrategy",
                             R"(Mirrored replicas that have several logical devices each.

>>> devices = cairn.DeviceAssignment.build(num_replicas=2, num_logical_devices=2)
>>> cairn.MeshStrategy(devices).num_logical_devices
2)")
      .def(
          "__init__",
          [](Mesh* self, const std::optional<DeviceAssignment>& assignment, std::uint64_t seed,
             bool check_replicas, const std::optional<std::string>& cross_device_ops,
             double timeout) {
            const InSyncOptions options =
                options_of(seed, check_replicas, cross_device_ops, timeout);
            new (self) Mesh(owner_from([&] {
              return std::make_unique<MeshStrategy>(
                  assignment.value_or(DeviceAssignment::build({})), options);
            }));
          },
          "assignment"_a = nb::none(), "seed"_a = 0, nb::kw_only(), "check_replicas"_a = false,
          "cross_device_ops"_a = nb::none(), "timeout"_a = 600.0)
      .def_prop_ro("device_assignment",
                   [](const Mesh& of) { return of->as<MeshStrategy>().device_assignment(); })
      .def_prop_ro(
          "num_logical_devices",
          [](const Mesh& of) { return of->as<MeshStrategy>().num_logical_devices(); },
          "How many each replica has.")
      .def(
          "experimental_assign_to_logical_device",
          [](const Mesh& of, ArrayLike value, int logical_device) {
            return of->as<MeshStrategy>().experimental_assign_to_logical_device(value,
                                                                                logical_device);
          },
          "value"_a, "logical_device"_a, "The value, on that device of its replica.")
      .def(
          "experimental_split_to_logical_devices",
          [](const Mesh& of, ArrayLike value,
             const std::vector<std::int64_t>& partition_dimensions) {
            return of->as<MeshStrategy>().experimental_split_to_logical_devices(
                value, partition_dimensions);
          },
          "value"_a, "partition_dimensions"_a, "The value, cut among a replica's devices.")
      .def(
          "experimental_replicate_to_logical_devices",
          [](const Mesh& of, ArrayLike value) {
            return of->as<MeshStrategy>().experimental_replicate_to_logical_devices(value);
          },
          "value"_a, "The value, whole on each of them.");
}

void bind_central(nb::module_& m) {
  nb::class_<Central, InSync>(m, "CentralStorageStrategy",
                              R"(Several replicas in this process, with the variables in one place.

>>> strategy = cairn.CentralStorageStrategy(["cpu:0", "cpu:1"])
>>> strategy.num_replicas_in_sync
2)")
      .def(
          "__init__",
          [](Central* self, const std::vector<std::string>& compute_devices,
             const std::string& parameter_device, std::uint64_t seed, bool check_replicas,
             const std::optional<std::string>& cross_device_ops, double timeout) {
            const InSyncOptions options =
                options_of(seed, check_replicas, cross_device_ops, timeout);
            new (self) Central(owner_from([&] {
              return std::make_unique<CentralStorageStrategy>(compute_devices, parameter_device,
                                                              options);
            }));
          },
          "compute_devices"_a = std::vector<std::string>{}, "parameter_device"_a = "", "seed"_a = 0,
          nb::kw_only(), "check_replicas"_a = false, "cross_device_ops"_a = nb::none(),
          "timeout"_a = 600.0);
}

void bind_communication(nb::module_& m) {
  using Options = CommunicationOptions;
  FieldsOf<Options> fields(m, "CommunicationOptions", R"(How processes exchange values.

>>> cairn.CommunicationOptions(implementation="ring", timeout=60.0).implementation
'ring')");
  fields.add("bytes_per_pack", &Options::bytes_per_pack, "0: 4 MB.")
      .seconds("timeout", &Options::timeout, "Seconds that a call waits for the others; 0: 600.")
      .word("implementation", &Options::implementation,
            {{"auto", CommunicationImplementation::kAuto},
             {"ring", CommunicationImplementation::kRing},
             {"nccl", CommunicationImplementation::kNccl}},
            "\"auto\", \"ring\" or \"nccl\".")
      .add("bfloat16_on_wire", &Options::bfloat16_on_wire, "Half the bytes.")
      .options();
}

void bind_multi_worker(nb::module_& m) {
  nb::class_<MultiWorker, InSync>(m, "MultiWorkerMirroredStrategy",
                                  R"(Replicas in each of several processes, which TF_CONFIG names.

>>> import os
>>> os.environ["TF_CONFIG"] = '''{"cluster": {"worker": ["127.0.0.1:0"]},
...                               "task": {"type": "worker", "index": 0}}'''
>>> strategy = cairn.MultiWorkerMirroredStrategy()
>>> strategy.num_workers
1
>>> strategy.close())")
      .def(
          "__init__",
          [](MultiWorker* self, const std::vector<std::string>& devices, std::uint64_t seed,
             const ClusterResolver* cluster_resolver,
             const std::optional<CommunicationOptions>& communication, bool check_replicas,
             double start_timeout, const std::string& cluster_id, const std::string& token,
             bool insecure, const std::string& transport) {
            MultiWorkerOptions options{.seed = seed,
                                       .check_replicas = check_replicas,
                                       .devices = devices,
                                       .start_timeout = duration_of(start_timeout),
                                       .cluster_id = cluster_id,
                                       .token = token,
                                       .insecure = insecure,
                                       .transport = rpc::parse_transport(transport)};
            new (self) MultiWorker(owner_from([&] {
              const TFConfigClusterResolver environment;
              return std::make_unique<MultiWorkerMirroredStrategy>(
                  cluster_resolver == nullptr ? environment : *cluster_resolver,
                  communication.value_or(CommunicationOptions()), options);
            }));
          },
          "devices"_a = std::vector<std::string>{}, "seed"_a = 0, nb::kw_only(),
          "cluster_resolver"_a = nb::none(), "communication"_a = nb::none(),
          "check_replicas"_a = false, "start_timeout"_a = 300.0, "cluster_id"_a = "cairn",
          "token"_a = "", "insecure"_a = false, "transport"_a = "auto")
      .def_prop_ro(
          "id_in_cluster",
          [](const MultiWorker& of) {
            return of->as<MultiWorkerMirroredStrategy>().id_in_cluster();
          },
          "The chief, or without one worker 0, has 0.")
      .def_prop_ro(
          "is_chief",
          [](const MultiWorker& of) { return of->as<MultiWorkerMirroredStrategy>().is_chief(); },
          "Whether it writes what only one may write.")
      .def(
          "restore_newest",
          [](const MultiWorker& of, const std::string& folder) -> std::optional<Restored> {
            auto& strategy = of->as<MultiWorkerMirroredStrategy>();
            auto status = released([&] { return strategy.restore_newest(folder); });
            if (!status) return std::nullopt;
            return Restored{*std::move(status), of};
          },
          "folder"_a,
          "The newest checkpoint below the folder, restored by all; None: there is "
          "none.");
}

}  // namespace

void bind_in_sync(nb::module_& m) {
  bind_base(m);
  bind_one_device(m);
  bind_mirrored(m);
  bind_central(m);
  bind_communication(m);
  bind_multi_worker(m);
}

}  // namespace cairn::python
