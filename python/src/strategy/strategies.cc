// Strategies: where variables live and how a step runs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <thread>

#include "distributed.h"
#include "functions.h"
#include "kinds.h"
#include "options.h"
#include "strategy/base/replica_context.h"
#include "strategy/strategies.h"
#include "values.h"

namespace cairn::python {
namespace {

// ---- arguments and results of run() ----

RunArgument run_argument(const nb::object& leaf) {
  if (nb::isinstance<Elements>(leaf)) return RunArgument(nb::cast<const Elements&>(leaf).iterator);
  if (nb::isinstance<Iterator>(leaf)) return RunArgument(nb::cast<const Iterator&>(leaf));
  if (nb::isinstance<PerReplica>(leaf)) return RunArgument(nb::cast<const PerReplica&>(leaf));
  if (nb::isinstance<Dataset>(leaf) || nb::isinstance<Distributed>(leaf))
    type_error("a dataset is read by an iterator: pass strategy.iterate(dataset)");
  if (is_tracing() || nb::isinstance<Array>(leaf)) return RunArgument(PerReplica(array_of(leaf)));
  return RunArgument(tensor_of(leaf));
}

using Run = RunResult (Strategy::*)(Function&, const std::vector<RunArgument>&);
nb::object run_by(const StrategyObject& owner, Run run, nb::handle function, const nb::args& args,
                  const nb::kwargs& kwargs) {
  Strategy& strategy = owner->strategy();
  if (!nb::isinstance<TracedFunction>(function))
    type_error(str("what is run is a function that was made by @strategy.function, not ",
                   described(function)));
  auto& traced = nb::cast<TracedFunction&>(function);
  TracedFunction::Call call = traced.call(args, kwargs);
  const auto arguments = traced.arguments<RunArgument>(call, args, kwargs, run_argument);
  const RunResult result =
      recorded_or_run([&] { return (strategy.*run)(*call.function, arguments); });
  std::vector<nb::object> leaves;
  for (const PerReplica& value : result) leaves.push_back(value_of(value));
  std::vector<std::string> names(leaves.size());
  if (result.names() != nullptr) names = *result.names();
  return call.results->around(names, leaves);
}

// ---- scopes: of one thread, and one within another ----

class PythonScope {
 public:
  explicit PythonScope(SharedOwner owner) : owner_(std::move(owner)) {}
  // A scope that was never left stays open: ending it here might be on another thread.
  ~PythonScope() {
    if (scope_ != nullptr) scope_.release();  // NOLINT: on purpose
  }
  void enter() {
    if (scope_ != nullptr)
      throw FailedPreconditionError(
          "this scope is open already: ask for another one by strategy.scope()");
    scope_.reset(new Scope(owner_->strategy().scope()));  // no copy: it is made in place
    thread_ = std::this_thread::get_id();
    open().push_back(this);
  }
  void leave() {
    if (scope_ == nullptr) throw FailedPreconditionError("this scope is not open");
    if (thread_ != std::this_thread::get_id())
      throw FailedPreconditionError(
          "a scope ends on the thread that opened it: use `with strategy.scope():` within one "
          "thread");
    if (open().back() != this)
      throw FailedPreconditionError(
          "a scope ends before the one that it was opened in: `with` in a generator that is not "
          "run to its end does this");
    open().pop_back();
    scope_.reset();
  }
  const SharedOwner& owner() const { return owner_; }

 private:
  static std::vector<PythonScope*>& open() {
    static thread_local std::vector<PythonScope*> all;
    return all;
  }
  SharedOwner owner_;
  std::unique_ptr<Scope> scope_;
  std::thread::id thread_;
};

void bind_base(nb::class_<StrategyObject>& strategy) {
  strategy
      .def(
          "scope", [](const StrategyObject& of) { return new PythonScope(of); },
          "Variables that are made in it are this strategy's: `with strategy.scope():`.")
      .def_prop_ro(
          "num_replicas_in_sync",
          [](const StrategyObject& of) { return of->strategy().num_replicas_in_sync(); },
          "Among how many replicas a global batch is dealt out.")
      .def_prop_ro("num_workers",
                   [](const StrategyObject& of) { return of->strategy().num_workers(); })
      .def(
          "function",
          [](const StrategyObject& of, nb::object callable, std::optional<std::string> name) {
            of->strategy();
            if (!name)
              name = nb::cast<std::string>(nb::getattr(callable, "__name__", nb::str("function")));
            return new TracedFunction(std::move(callable), *name, of);
          },
          "function"_a, "name"_a = nb::none(),
          nb::sig("def function(self, function: collections.abc.Callable[..., typing.Any], name: "
                  "str | None = None) -> Function"),
          "Records the function at its first use, and runs it wherever this strategy does: a "
          "decorator.")
      .def(
          "run",
          [](const StrategyObject& of, nb::object function, nb::args args, nb::kwargs kwargs) {
            return run_by(of, &Strategy::run, function, args, kwargs);
          },
          nb::sig("def run(self, function: Function, *args: typing.Any, **kwargs: typing.Any) -> "
                  "typing.Any"),
          "Runs it once on every replica, and gives what they returned.")
      .def(
          "call",
          [](const StrategyObject& of, nb::object function, nb::args args, nb::kwargs kwargs) {
            return run_by(of, &Strategy::call, function, args, kwargs);
          },
          nb::sig("def call(self, function: Function, *args: typing.Any, **kwargs: typing.Any) -> "
                  "typing.Any"),
          "Calls it once, across replicas, so that it may run others on them and reduce what they "
          "return.")
      .def(
          "reduce",
          [](const StrategyObject& of, const std::string& reduce_op, nb::handle value,
             std::optional<int> axis) {
            Strategy& strategy = of->strategy();
            const PerReplica all = per_replica_of(value);
            const ReduceOp op = reduce_op_of(reduce_op);
            return recorded_or_run([&]() -> Array {
              return axis ? strategy.reduce(op, all, *axis) : strategy.reduce(op, all);
            });
          },
          "reduce_op"_a, "value"_a, "axis"_a = nb::none(),
          nb::sig("def reduce(self, reduce_op: str, value: PerReplica | cairn.typing.ArrayLike, "
                  "axis: int | None = None) -> Array"),
          "The \"sum\" or \"mean\" of what all replicas have.")
      .def(
          "gather",
          [](const StrategyObject& of, nb::handle value, int axis) {
            Strategy& strategy = of->strategy();
            const PerReplica all = per_replica_of(value);
            return recorded_or_run([&]() -> Array { return strategy.gather(all, axis); });
          },
          "value"_a, "axis"_a,
          nb::sig(
              "def gather(self, value: PerReplica | cairn.typing.ArrayLike, axis: int) -> Array"),
          "What all replicas have, behind one another.")
      .def(
          "experimental_local_results",
          [](const StrategyObject& of, nb::handle value) {
            nb::list all;
            for (const RunValue& each :
                 of->strategy().experimental_local_results(per_replica_of(value)))
              all.append(nb::cast(static_cast<const Array&>(each)));
            return nb::tuple(all);
          },
          "value"_a,
          nb::sig("def experimental_local_results(self, value: PerReplica | "
                  "cairn.typing.ArrayLike) -> tuple[Array, ...]"))
      .def("save", &save_by, "folder"_a, "metadata"_a = "{}", nb::sig(kSaveSignature),
           "Saves a checkpoint below the folder, or as a policy asks; its own folder.")
      .def("restore", &restore_by, "checkpoint"_a, "options"_a = nb::none(),
           nb::sig(kRestoreSignature), "Takes variables, slots and positions from a checkpoint.")
      .def(
          "close",
          [](const StrategyObject& of) {
            if (is_tracing())
              throw FailedPreconditionError(
                  "a strategy is closed outside of functions that are recorded");
            of->close();
          },
          "Ends it; what it made can be used no more.")
      .def_prop_ro("closed", [](const StrategyObject& of) { return of->closed(); })
      .def(
          "__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); }, "memo"_a,
          nb::sig("def __deepcopy__(self, memo: typing.Any) -> Strategy"),
          "Itself: what is copied with it goes on to use it.")
      .def(
          "__reduce__",
          [](nb::handle) -> nb::object {
            throw nb::type_error(
                "a strategy cannot be pickled: it is threads and connections; make one in each "
                "process");
          },
          nb::sig("def __reduce__(self) -> typing.NoReturn"));
}

}  // namespace

void bind_strategies(nb::module_& m) {
  bind_consistency(m);
  bind_checkpoint_options(m);
  bind_cluster_spec(m);
  bind_engine_options(m);
  bind_distributed(m);
  nb::class_<PythonScope>(m, "Scope", R"(Variables that are made in it are the strategy's.

>>> with cairn.OneDeviceStrategy().scope():
...     v = cairn.Variable([1.0], name="v")
>>> v.numpy()
array([1.], dtype=float32))")
      .def(
          "__enter__",
          [](nb::handle_t<PythonScope> self) {
            nb::cast<PythonScope&>(self).enter();
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> Scope"))
      .def(
          "__exit__", [](PythonScope& scope, nb::args) { scope.leave(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
  nb::class_<StrategyObject> strategy(m, "Strategy", R"(Where variables live and how a step runs.

>>> isinstance(cairn.OneDeviceStrategy(), cairn.Strategy)
True)");
  bind_base(strategy);
  bind_distributing(strategy);
  bind_replicas(m, strategy);
  bind_in_sync(m);
  bind_collectives(m);
  bind_restore_plan(m);
  bind_servers(m);
  bind_make_strategy(m);
}

}  // namespace cairn::python
