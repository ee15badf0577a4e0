// The rows that a run changes, as they change, for programs of one's own.
#include "serving/follow/row_stream.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <utility>

#include "forks.h"
#include "interpreter.h"
#include "options.h"
#include "values.h"

namespace cairn::python {
namespace {

Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

class Stream {
 public:
  explicit Stream(RowStreamOptions options)
      : stream_(std::make_unique<RowStream>(std::move(options))) {
    count_living(1);
  }
  ~Stream() {
    const bool own = in_own_process();
    end_here(stream_);
    if (own) count_living(-1);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  nb::object next(double patience) {
    RowChanges changes;
    const bool came = released([&] {
      return wait_looking_up(seconds(patience),
                             [&](Duration some) { return stream_->next(changes, some); });
    });
    return came ? nb::cast(std::move(changes)) : nb::none();
  }
  RowStreamState state() const { return stream_->state(); }

 private:
  std::unique_ptr<RowStream> stream_;
};

nb::object numbers(const std::vector<std::int64_t>& rows) {
  Tensor tensor(DType::kInt64, {static_cast<std::int64_t>(rows.size())});
  if (!rows.empty()) std::memcpy(tensor.mutable_raw(), rows.data(), tensor.bytes());
  return numpy_of(tensor);
}

nb::object values_of(const RowChanges& changes) {
  const VariableSpec& spec = *changes.variable;
  Tensor tensor(spec.dtype, spec.shape.with_dim(0, static_cast<std::int64_t>(changes.rows.size())));
  if (!changes.values.empty())
    std::memcpy(tensor.mutable_raw(), changes.values.data(), tensor.bytes());
  return numpy_of(tensor);
}

}  // namespace

void bind_row_stream(nb::module_& m) {
  nb::class_<RowChanges>(m, "RowChanges", "Changes of rows of one part of a variable.")
      .def_prop_ro(
          "variable", [](const RowChanges& of) { return VariableSpec(*of.variable); },
          "Without the bytes of a given initial value.")
      .def_prop_ro(
          "part", [](const RowChanges& of) { return nb::make_tuple(of.part.begin, of.part.end); },
          nb::sig("def part(self) -> tuple[int, int]"),
          "Its first row, and the one after its last.")
      .def_ro("begins", &RowChanges::begins,
              "All rows of the part that differ from their initial values follow.")
      .def_ro("complete", &RowChanges::complete,
              "They have all come: rows that have not are at their initial values.")
      .def_prop_ro(
          "rows", [](const RowChanges& of) { return numbers(of.rows); },
          nb::sig("def rows(self) -> cairn.typing.NDArray"), "Their numbers.")
      .def_prop_ro("values", &values_of, nb::sig("def values(self) -> cairn.typing.NDArray"),
                   "Their newest values, in that order.")
      .def_prop_ro(
          "gone", [](const RowChanges& of) { return numbers(of.gone); },
          nb::sig("def gone(self) -> cairn.typing.NDArray"),
          "Rows that left for good: they are at their initial values again.");
  nb::class_<RowStreamState>(m, "RowStreamState", "How far a stream of rows is.")
      .def_ro("step", &RowStreamState::step, "The newest that what has come may contain.")
      .def_prop_ro(
          "age",
          [](const RowStreamState& of) {
            return of.age == Duration::max() ? std::numeric_limits<double>::infinity()
                                             : std::chrono::duration<double>(of.age).count();
          },
          "Seconds: everything that is older has come. Infinite before all has come once.")
      .def_ro("seed", &RowStreamState::seed, "Of initial values.")
      .def_ro("complete", &RowStreamState::complete,
              "Each shard has sent all that its beginning promised.")
      .def_ro("away", &RowStreamState::away, "Parameter servers that do not answer, and why.");
  nb::class_<Stream>(m, "RowStream",
                     R"(The rows that a training run changes, as they change.

>>> import json
>>> with cairn.LocalCluster(ps=1, workers=1, folder="run") as cluster:
...     with cluster.strategy().scope():
...         v = cairn.Variable([1.0, 2.0], name="v")
...     about = json.load(open("run/cluster.json"))
...     ps = [task["address"] for task in about["tasks"] if task["role"] == "ps"]
...     stream = cairn.RowStream(ps, about["cluster_id"], open("run/token").readline().strip())
...     v.assign([3.0, 4.0])
...     values = None
...     while values is None or values[0] != 3:
...         changes = stream.next()
...         values = changes.values if changes and len(changes.rows) else None
...     print(values)
[3. 4.])")
      .def(
          "__init__",
          [](Stream* stream, std::vector<std::string> ps, std::string cluster, std::string token,
             std::vector<std::string> variables, std::size_t bytes_per_second, double every) {
            new (stream) Stream({.ps = std::move(ps),
                                 .cluster = std::move(cluster),
                                 .token = std::move(token),
                                 .variables = std::move(variables),
                                 .bytes_per_second = bytes_per_second,
                                 .every = seconds(every)});
          },
          "ps"_a, "cluster"_a = "cairn", "token"_a = "", "variables"_a = std::vector<std::string>(),
          nb::kw_only(), "bytes_per_second"_a = RowStreamOptions().bytes_per_second,
          "every"_a = 0.02)
      .def("next", &Stream::next, "patience"_a = 1.0,
           nb::sig("def next(self, patience: float = 1.0) -> RowChanges | None"),
           "The next changes; None: none came for so many seconds.")
      .def_prop_ro("state", &Stream::state, "As of the changes that next() gave last.");
}

}  // namespace cairn::python
