// Clusters: their jobs and tasks, and which of these this process is.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "coordinator/cluster/cluster_resolver.h"
#include "coordinator/cluster/task_roles.h"
#include "options.h"

namespace cairn::python {
namespace {

using Jobs = std::map<std::string, std::vector<std::string>>;

ClusterSpec spec_of(const Jobs& jobs) {
  ClusterSpec spec;
  for (const auto& [job, addresses] : jobs) {
    ClusterSpec::Tasks tasks;
    for (const std::string& address : addresses)
      tasks[static_cast<std::int64_t>(tasks.size())] = address;
    spec.set_job(job, std::move(tasks));
  }
  return spec;
}

void bind_spec(nb::module_& m) {
  nb::class_<ClusterSpec>(m, "ClusterSpec", R"(The jobs of a cluster and their tasks' addresses.

>>> spec = cairn.ClusterSpec({"ps": ["a:4000"], "worker": ["b:4000", "c:4000"]})
>>> spec.num_tasks("worker"), spec.task_address("worker", 1)
(2, 'c:4000'))")
      .def(
          "__init__",
          [](ClusterSpec* self, const Jobs& jobs) { new (self) ClusterSpec(spec_of(jobs)); },
          "jobs"_a = Jobs{})
      .def("set_job", &ClusterSpec::set_job, "job"_a, "tasks"_a,
           "Replaces a job, by the numbers of its tasks, or adds it.")
      .def("add_task", &ClusterSpec::add_task, "job"_a, "address"_a, "Behind the job's last one.")
      .def_prop_ro("jobs", &ClusterSpec::jobs, "The names of the jobs.")
      .def("has_job", &ClusterSpec::has_job, "job"_a)
      .def_prop_ro("empty", &ClusterSpec::empty, "Whether there is no job at all.")
      .def("tasks", &ClusterSpec::tasks, "job"_a, "Addresses by the tasks' numbers.")
      .def("task_count", &ClusterSpec::task_count, "job"_a)
      .def("num_tasks", &ClusterSpec::num_tasks, "job"_a)
      .def("task_indices", &ClusterSpec::task_indices, "job"_a)
      .def("task_address", &ClusterSpec::task_address, "job"_a, "index"_a)
      .def("job_tasks", &ClusterSpec::job_tasks, "job"_a)
      .def(
          "__eq__", [](const ClusterSpec& a, const ClusterSpec& b) { return a == b; },
          nb::is_operator(), "other"_a, nb::sig("def __eq__(self, other: object, /) -> bool"));
}

TaskOverrides overrides(std::optional<std::string> task_type, std::optional<std::int64_t> task_id,
                        std::optional<std::string> rpc_layer) {
  return {std::move(task_type), task_id, std::move(rpc_layer)};
}

void bind_resolvers(nb::module_& m) {
  nb::class_<ClusterResolver>(m, "ClusterResolver",
                              "Where a program learns its cluster, and which task it is.")
      .def_prop_ro("cluster_spec", &ClusterResolver::cluster_spec)
      .def_prop_ro("task_type", &ClusterResolver::task_type, "None: no task in particular.")
      .def_prop_ro("task_id", &ClusterResolver::task_id)
      .def_prop_ro("rpc_layer", &ClusterResolver::rpc_layer)
      .def(
          "master",
          [](const ClusterResolver& of, std::optional<std::string> task_type,
             std::optional<std::int64_t> task_id, std::optional<std::string> rpc_layer) {
            return of.master(overrides(std::move(task_type), task_id, std::move(rpc_layer)));
          },
          "task_type"_a = nb::none(), "task_id"_a = nb::none(), "rpc_layer"_a = nb::none(),
          "The address to talk to.");
  nb::class_<SimpleClusterResolver, ClusterResolver>(m, "SimpleClusterResolver",
                                                     R"(A cluster that the program knows.

>>> cairn.SimpleClusterResolver(cairn.ClusterSpec({"ps": ["a:1"]}), task_type="ps").task_type
'ps')")
      .def(
          "__init__",
          [](SimpleClusterResolver* self, ClusterSpec cluster_spec, std::string master,
             std::optional<std::string> task_type, std::optional<std::int64_t> task_id,
             std::optional<std::string> rpc_layer) {
            new (self) SimpleClusterResolver(
                std::move(cluster_spec),
                {std::move(master), std::move(task_type), task_id, std::move(rpc_layer)});
          },
          "cluster_spec"_a, nb::kw_only(), "master"_a = "", "task_type"_a = nb::none(),
          "task_id"_a = nb::none(), "rpc_layer"_a = nb::none());
  nb::class_<TFConfigClusterResolver, ClusterResolver>(m, "TFConfigClusterResolver",
                                                       R"(The cluster of TF_CONFIG, or of a text.

>>> text = '{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 0}}'
>>> cairn.TFConfigClusterResolver(text).task_id
0)")
      .def(
          "__init__",
          [](TFConfigClusterResolver* self, std::optional<std::string> text,
             std::optional<std::string> task_type, std::optional<std::int64_t> task_id,
             std::optional<std::string> rpc_layer) {
            TaskOverrides own = overrides(std::move(task_type), task_id, std::move(rpc_layer));
            if (text)
              new (self) TFConfigClusterResolver(*text, std::move(own));
            else
              new (self) TFConfigClusterResolver(std::move(own));
          },
          "text"_a = nb::none(), nb::kw_only(), "task_type"_a = nb::none(),
          "task_id"_a = nb::none(), "rpc_layer"_a = nb::none());
}

void bind_roles(nb::module_& m) {
  m.def("validate_cluster_spec", &validate_cluster_spec, "spec"_a, "task_type"_a = nb::none(),
        "task_id"_a = nb::none(), R"(Raises ValueError where a cluster cannot be.

>>> cairn.validate_cluster_spec(cairn.ClusterSpec({"worker": ["a:1"]})))");
  m.def("is_chief", &is_chief, "spec"_a, "task_type"_a, "task_id"_a,
        R"(Whether this task does what only one does.

>>> cairn.is_chief(cairn.ClusterSpec({"worker": ["a:1", "b:1"]}), "worker", 0)
True)");
  m.def("worker_count", &worker_count, "spec"_a, "task_type"_a, R"(Chief and workers together.

>>> cairn.worker_count(cairn.ClusterSpec({"chief": ["a:1"], "worker": ["b:1"]}), "worker")
2)");
  m.def("id_in_cluster", &id_in_cluster, "spec"_a, "task_type"_a, "task_id"_a,
        R"(The chief is 0, and workers come after it.

>>> cairn.id_in_cluster(cairn.ClusterSpec({"chief": ["a:1"], "worker": ["b:1"]}), "worker", 0)
1)");
  m.def("collective_leader", &collective_leader, "spec"_a, "task_type"_a, "task_id"_a,
        R"(The task that begins a collective operation.

>>> cairn.collective_leader(cairn.ClusterSpec({"worker": ["a:1", "b:1"]}), "worker", 1)
'/job:worker/replica:0/task:0')");
  m.def("coordination_leader", &coordination_leader, "spec"_a,
        R"(The first ps, else the chief, else worker 0.

>>> cairn.coordination_leader(cairn.ClusterSpec({"worker": ["a:1", "b:1"]}))
'/job:worker/replica:0/task:0')");
  m.def("verify_distinct_addresses", &verify_distinct_addresses, "spec"_a,
        R"(Raises ValueError where two tasks share an address.

>>> cairn.verify_distinct_addresses(cairn.ClusterSpec({"worker": ["a:1", "b:1"]})))");
  m.def(
      "verify_parameter_server_cluster",
      [](const ClusterSpec& spec) { verify_parameter_server_cluster(spec); }, "spec"_a,
      R"(Raises ValueError unless there are a ps and a worker.

>>> cairn.verify_parameter_server_cluster(cairn.ClusterSpec({"worker": ["a:1"]}))
Traceback (most recent call last):
    ...
cairn.errors.InvalidArgumentError: ...)");
}

}  // namespace

void bind_cluster_spec(nb::module_& m) {
  bind_spec(m);
  bind_resolvers(m);
  bind_roles(m);
}

}  // namespace cairn::python
