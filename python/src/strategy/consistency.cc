// How workers go along, how variables are cut up, which devices replicas have.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core/rows/layout.h"
#include "options.h"
#include "strategy/base/device_assignment.h"
#include "values.h"

namespace cairn::python {
namespace {

void bind_partitioners(nb::module_& m) {
  nb::class_<Partitioner>(m, "Partitioner", R"(Into how many parts a variable is cut.

>>> cairn.MinSizePartitioner(max_shards=4)([1_000_000, 8], "float32")
[4, 1])")
      .def(
          "__call__",
          [](const Partitioner& of, ShapeLike shape, DTypeLike dtype, int axis) {
            return of(shape, dtype, axis);
          },
          "shape"_a, "dtype"_a, "axis"_a = 0, "The parts along each axis.");
  const auto shared = [](std::shared_ptr<const Partitioner> made) {
    return std::const_pointer_cast<Partitioner>(made);
  };
  m.def(
      "FixedShardsPartitioner",
      [shared](std::int64_t num_shards) { return shared(FixedShardsPartitioner(num_shards)); },
      "num_shards"_a,
      "So many parts, or one for each row.\n\n>>> cairn.FixedShardsPartitioner(3)([2, 8], "
      "\"float32\")\n[2, 1]");
  m.def(
      "MinSizePartitioner",
      [shared](std::int64_t min_shard_bytes, std::int64_t max_shards,
               std::int64_t bytes_per_string) {
        return shared(MinSizePartitioner({min_shard_bytes, max_shards, bytes_per_string}));
      },
      "min_shard_bytes"_a = 256 << 10, "max_shards"_a = 1, "bytes_per_string"_a = 16,
      "As many parts as leave each at least `min_shard_bytes`.\n\n>>> "
      "cairn.MinSizePartitioner(max_shards=2)([10, 8], \"float32\")\n[1, 1]");
  m.def(
      "MaxSizePartitioner",
      [shared](std::int64_t max_shard_bytes, std::optional<std::int64_t> max_shards,
               std::int64_t bytes_per_string) {
        return shared(MaxSizePartitioner({max_shard_bytes, max_shards, bytes_per_string}));
      },
      "max_shard_bytes"_a, "max_shards"_a = nb::none(), "bytes_per_string"_a = 16,
      "As few parts as leave each at most `max_shard_bytes`.\n\n>>> "
      "cairn.MaxSizePartitioner(64)([10, 8], \"float32\")\n[5, 1]");
  m.def(
      "split_rows",
      [](std::int64_t rows, std::int64_t parts) {
        nb::list all;
        for (const RowRange& range : split_rows(rows, parts))
          all.append(nb::make_tuple(range.begin, range.end));
        return all;
      },
      "rows"_a, "parts"_a,
      nb::sig("def split_rows(rows: int, parts: int) -> list[tuple[int, int]]"),
      "The ranges of rows of each part.\n\n>>> cairn.split_rows(7, 3)\n[(0, 3), (3, 5), (5, 7)]");
}

void bind_device_assignment(nb::module_& m) {
  nb::class_<DeviceAssignment>(m, "DeviceAssignment",
                               R"(The logical devices of each replica of a MeshStrategy.

>>> devices = cairn.DeviceAssignment.build(num_replicas=2, num_logical_devices=2)
>>> devices.device(1, 0)
'cpu:2')")
      .def(nb::init<std::vector<std::vector<std::string>>>(), "devices"_a)
      .def_static(
          "build",
          [](int num_replicas, int num_logical_devices, std::vector<std::string> devices) {
            return DeviceAssignment::build({num_replicas, num_logical_devices, std::move(devices)});
          },
          "num_replicas"_a = 1, "num_logical_devices"_a = 1,
          "devices"_a = std::vector<std::string>{},
          "The first devices are replica 0's; none: logical CPUs.")
      .def_prop_ro("num_replicas", &DeviceAssignment::num_replicas)
      .def_prop_ro("num_logical_devices", &DeviceAssignment::num_logical_devices)
      .def("device", &DeviceAssignment::device, "replica"_a, "logical_device"_a)
      .def("devices_of_logical", &DeviceAssignment::devices_of_logical, "logical_device"_a);
}

}  // namespace

Consistency consistency_of(nb::handle given) {
  if (given.is_none()) return {};
  if (nb::isinstance<Consistency>(given)) return nb::cast<const Consistency&>(given);
  if (nb::isinstance<nb::str>(given)) {
    const auto word = nb::cast<std::string>(given);
    if (word == "asynchronous") return Consistency::asynchronous();
    if (word == "synchronous") return Consistency::synchronous();
    throw InvalidArgumentError(
        str("a consistency is \"asynchronous\", \"synchronous\", or cairn.Consistency.bounded(k), "
            "not \"",
            word, "\""));
  }
  throw nb::type_error("a consistency is a text, or a cairn.Consistency");
}

void bind_consistency(nb::module_& m) {
  nb::class_<Consistency>(m, "Consistency", R"(How far workers may run ahead of one another.

>>> cairn.Consistency.bounded(4)
<cairn.Consistency bounded(4)>)")
      .def_static("asynchronous", &Consistency::asynchronous,
                  "Nothing bounds how stale updates are.")
      .def_static("bounded", &Consistency::bounded, "steps"_a,
                  "No update is staler than so many steps.")
      .def_static("synchronous", &Consistency::synchronous, "backup_workers"_a = 0,
                  "The workers take steps together; the slowest `backup_workers` are not waited "
                  "for.")
      .def_prop_ro("steps", &Consistency::steps, "The bound; 0: there is none.")
      .def_prop_ro("in_rounds", &Consistency::in_rounds, "Whether steps are taken together.")
      .def_prop_ro("backup_workers", &Consistency::backup_workers)
      .def_prop_ro("text", &Consistency::text)
      .def(
          "__eq__", [](const Consistency& a, const Consistency& b) { return a == b; },
          nb::is_operator(), "other"_a, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__",
           [](const Consistency& of) { return str("<cairn.Consistency ", of.text(), ">"); });
  bind_partitioners(m);
  bind_device_assignment(m);
}

}  // namespace cairn::python
