// Where code stands: which strategy, which replica, which worker; and what code asks that must
// know how it is distributed.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <variant>

#include "core/graph/cached_reads.h"
#include "distributed.h"
#include "kinds.h"
#include "strategy/base/average_loss.h"
#include "strategy/base/per_worker_variable.h"
#include "strategy/base/replica_context.h"
#include "values.h"

namespace cairn::python {
namespace {

// ---- strategies as Python knows them ----

template <typename Object>
nb::object object_of(const SharedOwner& owner) {
  return nb::cast(new Object(owner), nb::rv_policy::take_ownership);
}

// None: the process's own strategy.
nb::object object_of(const Strategy& strategy) {
  const SharedOwner owner = owner_of(strategy);
  if (owner == nullptr) return nb::none();
  if (dynamic_cast<const MeshStrategy*>(&strategy) != nullptr) return object_of<Mesh>(owner);
  if (dynamic_cast<const MirroredStrategy*>(&strategy) != nullptr)
    return object_of<Mirrored>(owner);
  if (dynamic_cast<const CentralStorageStrategy*>(&strategy) != nullptr)
    return object_of<Central>(owner);
  if (dynamic_cast<const MultiWorkerMirroredStrategy*>(&strategy) != nullptr)
    return object_of<MultiWorker>(owner);
  if (dynamic_cast<const HybridStrategy*>(&strategy) != nullptr) return object_of<Hybrid>(owner);
  if (dynamic_cast<const ParameterServerStrategy*>(&strategy) != nullptr)
    return object_of<Servers>(owner);
  return object_of<OneDevice>(owner);
}

// ---- replicas ----

// A context lives as long as its strategy, whose owner is null if it is the process's own.
struct Replica {
  const ReplicaContext* context;
  SharedOwner owner;
  const ReplicaContext& get() const {
    if (owner != nullptr) owner->strategy();
    return *context;
  }
};

// Calls act(values...) with up to three of them, as the templates of C++ take them.
template <typename Act>
auto spread(const std::vector<Array>& values, const char* what, Act act) {
  switch (values.size()) {
    case 0: return act();
    case 1: return act(values[0]);
    case 2: return act(values[0], values[1]);
    case 3: return act(values[0], values[1], values[2]);
    default: break;
  }
  throw InvalidArgumentError(str(what, " takes at most three values besides its function"));
}

std::vector<Array> arrays_of(const nb::args& args) {
  std::vector<Array> all;
  for (nb::handle each : args) all.push_back(array_of(each));
  return all;
}

nb::object merge_call(const Replica& self, const nb::object& merge_fn, const nb::args& args) {
  const auto merged = [&](Strategy& strategy, const auto&... values) {
    return per_replica_of(merge_fn(object_of(strategy), value_of(values)...));
  };
  return spread(arrays_of(args), "merge_call", [&](const auto&... values) {
    return nb::cast(static_cast<const Array&>(self.get().merge_call(merged, values...)));
  });
}

void bind_contexts(nb::module_& m) {
  nb::class_<Replica>(m, "ReplicaContext", "One replica's view, while its function is recorded.")
      .def_prop_ro(
          "replica_id_in_sync_group",
          [](const Replica& of) { return of.get().replica_id_in_sync_group(); }, "Its number.")
      .def_prop_ro("num_replicas_in_sync",
                   [](const Replica& of) { return of.get().num_replicas_in_sync(); })
      .def_prop_ro(
          "strategy", [](const Replica& of) { return object_of(of.get().strategy()); },
          nb::sig("def strategy(self) -> Strategy | None"), "None: the process's own.")
      .def(
          "all_reduce",
          [](const Replica& of, const std::string& reduce_op, ArrayLike value) {
            return of.get().all_reduce(reduce_op_of(reduce_op), value);
          },
          "reduce_op"_a, "value"_a, "The \"sum\" or \"mean\" of what all replicas pass, on each.")
      .def("merge_call", &merge_call, "merge_fn"_a, "args"_a,
           nb::sig("def merge_call(self, merge_fn: collections.abc.Callable[..., typing.Any], "
                   "*args: cairn.typing.ArrayLike) -> Array"),
           "Calls merge_fn(strategy, values...) once for all replicas, and gives this one its "
           "part.");
  m.def(
      "get_replica_context",
      [] {
        const ReplicaContext& context = get_replica_context();
        return new Replica{&context, owner_of(context.strategy())};
      },
      R"(The context of the replica that is recorded.

>>> strategy = cairn.MirroredStrategy(["cpu:0", "cpu:1"])
>>> @strategy.function
... def number():
...     return cairn.get_replica_context().replica_id_in_sync_group * cairn.Array(1)
>>> [value.item() for value in strategy.run(number).values]
[0, 1])");
  m.def(
      "get_strategy", [] { return object_of(get_strategy()); },
      nb::sig("def get_strategy() -> Strategy | None"),
      "The strategy of the innermost scope; None: the process's own.\n\n>>> "
      "cairn.get_strategy() is None\nTrue");
  m.def("has_strategy", &has_strategy,
        "Whether a strategy's scope is open.\n\n>>> cairn.has_strategy()\nFalse");
  m.def("in_cross_replica_context", &in_cross_replica_context,
        "Whether code here stands for all replicas.\n\n>>> with "
        "cairn.OneDeviceStrategy().scope():\n...     cairn.in_cross_replica_context()\nTrue");
  m.def("current_worker_index", &current_worker_index,
        "The number of the worker that runs the function that is recorded.\n\n>>> "
        "cairn.current_worker_index().item()\n0");
  m.def("current_num_workers", &current_num_workers,
        "How many workers there are.\n\n>>> cairn.current_num_workers()\n1");
}

// ---- losses, variables ----

void bind_average_losses(nb::module_& m) {
  m.def(
      "compute_average_loss",
      [](ArrayLike per_example_loss, nb::handle sample_weight,
         std::optional<std::int64_t> global_batch_size) {
        AverageLossOptions options{.global_batch_size = global_batch_size};
        if (!sample_weight.is_none()) options.sample_weight = array_of(sample_weight);
        return compute_average_loss(per_example_loss, options);
      },
      "per_example_loss"_a, "sample_weight"_a = nb::none(), "global_batch_size"_a = nb::none(),
      nb::sig("def compute_average_loss(per_example_loss: cairn.typing.ArrayLike, sample_weight: "
              "cairn.typing.ArrayLike | None = None, global_batch_size: int | None = None) -> "
              "Array"),
      "The sum over this replica's examples, divided by the size of the global batch.\n\n>>> "
      "cairn.compute_average_loss([1.0, 3.0], global_batch_size=4).item()\n1.0");
  m.def(
      "scale_regularization_loss", [](ArrayLike loss) { return scale_regularization_loss(loss); },
      "regularization_loss"_a,
      "The sum of its elements, divided by the number of replicas.\n\n>>> "
      "cairn.scale_regularization_loss([1.0, 3.0]).item()\n4.0");
}

struct Cached {
  std::unique_ptr<CachedReads> open;
};

struct WorkerVariable {
  PerWorkerVariable variable;
  SharedOwner owner;
  // Errors  FailedPrecondition: its strategy has been closed.
  const PerWorkerVariable& get() const {
    if (owner != nullptr) owner->strategy();
    return variable;
  }
};

void bind_worker_variables(nb::module_& m) {
  nb::class_<Cached>(m, "CachedReads", "Variables are read once while it is open.")
      .def(
          "__enter__",
          [](nb::handle_t<Cached> self) {
            nb::cast<Cached&>(self).open = std::make_unique<CachedReads>();
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> CachedReads"))
      .def(
          "__exit__", [](Cached& of, nb::args) { of.open.reset(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
  m.def(
      "cache_variable_reads", [] { return new Cached(); },
      "While it is open, a variable is read once.\n\n>>> with cairn.cache_variable_reads():\n...   "
      "  "
      "pass");
  nb::class_<WorkerVariable>(m, "PerWorkerVariable", R"(A value for each worker, never combined.

>>> seen = cairn.PerWorkerVariable(0, name="seen")
>>> seen.assign_add(2)
>>> [each.item() for each in seen.read_all()]
[2])")
      .def(
          "__init__",
          [](WorkerVariable* self, ArrayLike initial_value, const std::string& name) {
            const Tensor value = tensor_of(initial_value.object);
            VariableSpec spec{.name = name,
                              .dtype = value.dtype(),
                              .shape = value.shape(),
                              .initializer = Initializer::from(value)};
            const SharedOwner owner = owner_of(current_variable_creator());
            new (self) WorkerVariable{
                recorded_or_run([&] { return PerWorkerVariable(std::move(spec)); }), owner};
          },
          "initial_value"_a, "name"_a = "PerWorkerVariable")
      .def(
          "read",
          [](const WorkerVariable& of) { return recorded_or_run([&] { return of.get().read(); }); },
          "This worker's.")
      .def(
          "assign",
          [](const WorkerVariable& of, ArrayLike value) {
            const Array array = value;
            recorded_or_run([&] { of.get().assign(array); });
          },
          "value"_a)
      .def(
          "assign_add",
          [](const WorkerVariable& of, ArrayLike value) {
            const Array array = value;
            recorded_or_run([&] { of.get().assign_add(array); });
          },
          "value"_a)
      .def(
          "assign_sub",
          [](const WorkerVariable& of, ArrayLike value) {
            const Array array = value;
            recorded_or_run([&] { of.get().assign_sub(array); });
          },
          "value"_a)
      .def(
          "read_all",
          [](const WorkerVariable& of) {
            return recorded_or_run([&] { return of.get().read_all(); });
          },
          "Every worker's, by its number.")
      .def_prop_ro(
          "rows",
          [](const WorkerVariable& of) {
            return OwnedVariable{of.get().rows(), of.owner};
          },
          "All of them, as one variable.");
}

// ---- StrategyExtended ----

struct Extended {
  SharedOwner owner;
  StrategyExtended get() const { return owner->strategy().extended(); }
};
struct Beside {
  SharedOwner owner;
  Variable variable;
  std::unique_ptr<Colocation> open;

  Beside(SharedOwner of, Variable beside) : owner(std::move(of)), variable(std::move(beside)) {}
  ~Beside() { leave(); }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  // Ends before its strategy, or not at all.
  void leave() {
    if (owner->closed())
      open.release();  // NOLINT: on purpose
    else
      open.reset();
  }
};

Destinations destinations_of(nb::handle given) {
  if (nb::isinstance<OwnedVariable>(given)) return nb::cast<const OwnedVariable&>(given).get();
  if (nb::isinstance<PerReplica>(given)) return nb::cast<const PerReplica&>(given);
  if (nb::isinstance<nb::str>(given)) return nb::cast<std::string>(given);
  return nb::cast<std::vector<std::string>>(given);
}
#define CAIRN_DESTINATIONS "Variable | PerReplica | str | collections.abc.Sequence[str]"

nb::object update(const Extended& of, const OwnedVariable& variable, const nb::object& change,
                  const nb::args& args) {
  const StrategyExtended extended = of.get();
  const auto call = [&](const Variable& own, const auto&... values) {
    return change(OwnedVariable{own, of.owner}, nb::cast(values)...);
  };
  return spread(arrays_of(args), "update", [&](const auto&... values) {
    return extended.update(variable.get(), call, values...);
  });
}

void bind_reducing(nb::class_<Extended>& extended) {
  extended
      .def(
          "reduce_to",
          [](const Extended& of, const std::string& reduce_op, nb::handle value,
             nb::handle destinations) {
            const StrategyExtended by = of.get();
            const PerReplica all = per_replica_of(value);
            const Destinations to = destinations_of(destinations);
            const ReduceOp op = reduce_op_of(reduce_op);
            return recorded_or_run([&]() -> Array { return by.reduce_to(op, all, to); });
          },
          "reduce_op"_a, "value"_a, "destinations"_a,
          nb::sig("def reduce_to(self, reduce_op: str, value: PerReplica | "
                  "cairn.typing.ArrayLike, destinations: " CAIRN_DESTINATIONS ") -> Array"),
          "As Strategy.reduce().")
      .def(
          "batch_reduce_to",
          [](const Extended& of, const std::string& reduce_op, nb::handle pairs) {
            const StrategyExtended by = of.get();
            std::vector<std::pair<PerReplica, Destinations>> all;
            for (nb::handle each : nb::iter(pairs))
              all.emplace_back(per_replica_of(each[0]), destinations_of(each[1]));
            const ReduceOp op = reduce_op_of(reduce_op);
            const auto sums = recorded_or_run([&] { return by.batch_reduce_to(op, all); });
            return std::vector<Array>(sums.begin(), sums.end());
          },
          "reduce_op"_a, "value_destination_pairs"_a,
          nb::sig("def batch_reduce_to(self, reduce_op: str, value_destination_pairs: "
                  "collections.abc.Sequence[tuple[PerReplica | "
                  "cairn.typing.ArrayLike, " CAIRN_DESTINATIONS "]]) -> list[Array]"),
          "The same for each pair.")
      .def("update", &update, "variable"_a, "change"_a, "args"_a,
           nb::sig("def update(self, variable: Variable, change: "
                   "collections.abc.Callable[..., typing.Any], *args: cairn.typing.ArrayLike) -> "
                   "typing.Any"),
           "Calls change(variable, values...) in cross-replica context.");
}
#undef CAIRN_DESTINATIONS

void bind_extended(nb::module_& m, nb::class_<StrategyObject>& strategy) {
  nb::class_<Beside>(m, "Colocation", "Variables that are made in it lie beside another one.")
      .def(
          "__enter__",
          [](nb::handle_t<Beside> self) {
            auto& of = nb::cast<Beside&>(self);
            of.open = std::unique_ptr<Colocation>(
                new Colocation(of.owner->strategy().extended().colocate_vars_with(of.variable)));
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> Colocation"))
      .def(
          "__exit__", [](Beside& of, nb::args) { of.leave(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
  nb::class_<Extended> extended(m, "StrategyExtended",
                                "For code that must know how it is distributed.");
  extended
      .def_prop_ro(
          "worker_devices", [](const Extended& of) { return of.get().worker_devices(); },
          "The device of each replica of this process, or of each worker.")
      .def_prop_ro(
          "parameter_devices", [](const Extended& of) { return of.get().parameter_devices(); },
          "The devices that have variables.")
      .def_prop_ro("experimental_require_static_shapes",
                   [](const Extended& of) { return of.get().experimental_require_static_shapes(); })
      .def(
          "variable_created_in_scope",
          [](const Extended& of, const OwnedVariable& variable) {
            return of.get().variable_created_in_scope(variable.get());
          },
          "variable"_a, "Whether this strategy made it.")
      .def(
          "colocate_vars_with",
          [](const Extended& of, const OwnedVariable& variable) {
            return new Beside(of.owner, variable.get());
          },
          "variable"_a, "`with strategy.extended.colocate_vars_with(table):`.");
  bind_reducing(extended);
  strategy
      .def_prop_ro(
          "extended", [](const StrategyObject& of) { return new Extended{of}; },
          "For code that must know how it is distributed.")
      .def_prop_ro(
          "workers_in_step",
          [](const StrategyObject& of) { return of->strategy().workers_in_step(); },
          "Whether workers run each function together.")
      .def(
          "worker_index", [](const StrategyObject& of) { return of->strategy().worker_index(); },
          "The number of the worker that runs what is recorded here.");
}

}  // namespace

void bind_replicas(nb::module_& m, nb::class_<StrategyObject>& strategy) {
  bind_contexts(m);
  bind_average_losses(m);
  bind_worker_variables(m);
  bind_extended(m, strategy);
}

}  // namespace cairn::python
