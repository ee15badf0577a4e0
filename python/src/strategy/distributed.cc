#include "distributed.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "data.h"
#include "values.h"

namespace cairn::python {

PerReplica per_replica_of(nb::handle value) {
  if (nb::isinstance<PerReplica>(value)) return nb::cast<const PerReplica&>(value);
  return PerReplica(array_of(value));
}

nb::object value_of(const PerReplica& value) {
  if (value.is_per_replica()) return nb::cast(value);
  return nb::cast(static_cast<const Array&>(value));
}

namespace {

void bind_input_options(nb::module_& m) {
  using Options = InputOptions;
  FieldsOf<Options> fields(m, "InputOptions", R"(How a dataset is dealt out.

>>> cairn.InputOptions(auto_shard_policy="data").auto_shard_policy
'data')");
  fields
      .word("auto_shard_policy", &Options::auto_shard_policy,
            {{"auto", AutoShardPolicy::kAuto},
             {"file", AutoShardPolicy::kFile},
             {"data", AutoShardPolicy::kData},
             {"off", AutoShardPolicy::kOff},
             {"hint", AutoShardPolicy::kHint}},
            "Which part each of several workers reads: \"auto\", \"file\", \"data\", \"off\" or "
            "\"hint\".")
      .word("visitation", &Options::visitation,
            {{"by_policy", Visitation::kByPolicy}, {"exactly_once", Visitation::kExactlyOnce}},
            "How often an element of a per-worker dataset is read.")
      .word("batch_splitter", &Options::batch_splitter,
            {{"cut", BatchSplitter::kCut},
             {"sizes", BatchSplitter::kSizes},
             {"by_policy", BatchSplitter::kByPolicy}},
            "How a global batch is cut for the replicas.")
      .add("experimental_per_replica_buffer_size", &Options::experimental_per_replica_buffer_size,
           "How many steps are read ahead; 0: as prefetch() says.")
      .add("experimental_fetch_to_device", &Options::experimental_fetch_to_device,
           "GPUs get the next step's elements while a step computes.")
      .word("experimental_replication_mode", &Options::experimental_replication_mode,
            {{"per_worker", InputReplicationMode::kPerWorker},
             {"per_replica", InputReplicationMode::kPerReplica}},
            "\"per_worker\"; the other one is refused.")
      .add("experimental_place_dataset_on_device", &Options::experimental_place_dataset_on_device,
           "Refused where it means nothing.")
      .options();
}

InputOptions input_options_of(const std::optional<InputOptions>& given) {
  return given.value_or(InputOptions());
}

DatasetFunction dataset_function_of(const nb::object& function) {
  return [function = share(function)](const InputContext& context) {
    const Acquired here;
    return nb::cast<Dataset>(nb::borrow(function->get())(context));
  };
}

// ---- elements ----

struct Dealt {
  DistributedElement element;
  std::shared_ptr<const ElementSpec> spec;
};

void bind_element(nb::module_& m) {
  nb::class_<Dealt>(m, "DistributedElement", "An element of each replica.")
      .def(
          "__getitem__",
          [](const Dealt& of, const std::string& column) { return value_of(of.element[column]); },
          "column"_a, nb::sig("def __getitem__(self, column: str) -> PerReplica | Array"),
          "The column of each replica.")
      .def_prop_ro(
          "label", [](const Dealt& of) { return value_of(of.element.label()); },
          nb::sig("def label(self) -> PerReplica | Array"), "The labels of each replica.")
      .def_prop_ro(
          "of_replicas",
          [](const Dealt& of) {
            nb::list all;
            for (const Element& each : of.element.of_replicas())
              all.append(columns_of_element(*of.spec, each));
            return all;
          },
          nb::sig("def of_replicas(self) -> list[dict[str, typing.Any]]"),
          "A dict of columns for each replica.");
}

Dealt dealt(Elements& of, DistributedElement element) {
  return {std::move(element), std::make_shared<const ElementSpec>(of.iterator.element_spec())};
}

std::optional<Dealt> next_of(Elements& of) {
  of.owner->strategy();
  std::optional<DistributedElement> next =
      released([&] { return of.iterator.get_next_as_optional(); });
  if (!next) return std::nullopt;
  return dealt(of, *std::move(next));
}

void bind_iterator(nb::module_& m) {
  nb::class_<Elements>(m, "DistributedIterator",
                       R"(A pass over a dataset, to be passed to run(), or taken element by element.

>>> strategy = cairn.OneDeviceStrategy()
>>> @strategy.function
... def first(batches):
...     return batches.get_next()["value"]
>>> batches = strategy.iterate(cairn.Dataset.range(4).batch(2))
>>> [strategy.run(first, batches).numpy().tolist() for _ in range(2)]
[[0, 1], [2, 3]])")
      .def(
          "get_next",
          [](Elements& of) {
            of.owner->strategy();
            return dealt(of, released([&] { return of.iterator.get_next(); }));
          },
          "The next element of each replica.")
      .def("get_next_as_optional", &next_of, "The same; None at the end.")
      .def_prop_ro(
          "element_spec", [](const Elements& of) { return of.iterator.element_spec(); },
          "The columns that a replica gets.")
      .def(
          "__iter__", [](nb::handle_t<Elements> self) { return nb::borrow(self); },
          nb::sig("def __iter__(self) -> DistributedIterator"))
      .def("__next__", [](Elements& of) {
        std::optional<Dealt> next = next_of(of);
        if (!next) throw nb::stop_iteration();
        return *std::move(next);
      });
}

}  // namespace

void bind_distributed(nb::module_& m) {
  bind_input_options(m);
  nb::class_<PerReplica>(m, "PerReplica", R"(One value for each replica.

>>> strategy = cairn.MirroredStrategy(["cpu:0", "cpu:1"])
>>> @strategy.function
... def double(x):
...     return 2.0 * x
>>> [value.item() for value in strategy.run(double, 3.0).values]
[6.0, 6.0])")
      .def_prop_ro(
          "values",
          [](const PerReplica& value) {
            nb::list all;
            for (std::size_t i = 0; i < value.size(); ++i)
              all.append(nb::cast(value.of_replica(i)));
            return nb::tuple(all);
          },
          nb::sig("def values(self) -> tuple[Array, ...]"))
      .def_prop_ro("is_per_replica", &PerReplica::is_per_replica,
                   "False: one value is every replica's.")
      .def("of_replica", &PerReplica::of_replica, "replica"_a, "The value of one of them.")
      .def("__len__", &PerReplica::size);
  FieldsOf<ValueContext>(m, "ValueContext", "For which replica a value is made.")
      .add("replica_id_in_sync_group", &ValueContext::replica_id_in_sync_group, "Its number.")
      .add("num_replicas_in_sync", &ValueContext::num_replicas_in_sync, "How many there are.")
      .report();
  bind_element(m);
  bind_iterator(m);
  nb::class_<Distributed>(m, "DistributedDataset",
                          R"(A dataset whose batches are dealt out to replicas.

>>> strategy = cairn.MirroredStrategy(["cpu:0", "cpu:1"])
>>> @strategy.function
... def count(batches):
...     return cairn.sum(batches.get_next()["value"])
>>> data = strategy.experimental_distribute_dataset(cairn.Dataset.range(4).batch(4))
>>> [value.item() for value in strategy.run(count, strategy.iterate(data)).values]
[1, 5])")
      .def_prop_ro(
          "element_spec",
          [](const Distributed& of) {
            of.owner->strategy();
            return of.dataset.element_spec();
          },
          "The columns that a replica gets.")
      .def_prop_ro(
          "options", [](const Distributed& of) { return of.dataset.options(); },
          "As it was distributed.")
      .def(
          "__iter__",
          [](const Distributed& of) {
            Strategy& strategy = of.owner->strategy();
            return new Elements(
                Elements{released([&] { return strategy.iterate(of.dataset); }), of.owner});
          },
          "One pass over it.");
}

void bind_distributing(nb::class_<StrategyObject>& strategy) {
  const auto from_function = [](const StrategyObject& of, nb::object dataset_fn,
                                const std::optional<InputOptions>& options) {
    Strategy& by = of->strategy();
    const DatasetFunction make = dataset_function_of(dataset_fn);
    const InputOptions wanted = input_options_of(options);
    return new Distributed(Distributed{
        released([&] { return by.distribute_datasets_from_function(make, wanted); }), of});
  };
  for (const char* name :
       {"distribute_datasets_from_function", "experimental_distribute_datasets_from_function"})
    strategy.def(
        name, from_function, "dataset_fn"_a, "options"_a = nb::none(),
        nb::sig(str("def ", name,
                    "(self, dataset_fn: collections.abc.Callable[[InputContext], Dataset], "
                    "options: InputOptions | None = None) -> DistributedDataset")
                    .c_str()),
        "Deals out the batches that a function makes for each input pipeline.");
  strategy
      .def(
          "experimental_distribute_dataset",
          [](const StrategyObject& of, const Dataset& dataset,
             const std::optional<InputOptions>& options) {
            return new Distributed(Distributed{
                of->strategy().experimental_distribute_dataset(dataset, input_options_of(options)),
                of});
          },
          "dataset"_a, "options"_a = nb::none(), "Deals batches out to the replicas.")
      .def(
          "iterate",
          [](const StrategyObject& of, const Dataset& dataset) {
            Strategy& by = of->strategy();
            return new Elements(Elements{released([&] { return by.iterate(dataset); }), of});
          },
          "dataset"_a, "One pass over it, to be passed to run().")
      .def(
          "iterate",
          [](const StrategyObject& of, const Distributed& dataset) {
            Strategy& by = of->strategy();
            return new Elements(
                Elements{released([&] { return by.iterate(dataset.dataset); }), of});
          },
          "dataset"_a)
      .def(
          "experimental_distribute_values_from_function",
          [](const StrategyObject& of, nb::object value_fn) {
            return value_of(of->strategy().experimental_distribute_values_from_function(
                [&](const ValueContext& context) { return array_of(value_fn(context)); }));
          },
          "value_fn"_a,
          nb::sig("def experimental_distribute_values_from_function(self, value_fn: "
                  "collections.abc.Callable[[ValueContext], cairn.typing.ArrayLike]) -> PerReplica "
                  "| Array"),
          "A value for each replica of this process.");
}

}  // namespace cairn::python
