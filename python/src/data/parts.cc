// Parts of datasets and examples: shards, made-up clicks, dates.
#include "parts.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "data.h"
#include "data/dataset/auto_shard.h"
#include "data/feature/date_format.h"
#include "data/format/criteo_like.h"
#include "data/format/zipf.h"
#include "elements.h"
#include "fields.h"

namespace cairn::python {
namespace {

const Words<AutoShardPolicy>& policies() {
  static const Words<AutoShardPolicy> words = {{"auto", AutoShardPolicy::kAuto},
                                               {"file", AutoShardPolicy::kFile},
                                               {"data", AutoShardPolicy::kData},
                                               {"off", AutoShardPolicy::kOff},
                                               {"hint", AutoShardPolicy::kHint}};
  return words;
}
BatchSplitter splitter_of(const std::string& word) {
  return value_of_word<BatchSplitter>("splitter", word,
                                      {{"cut", BatchSplitter::kCut},
                                       {"sizes", BatchSplitter::kSizes},
                                       {"by_policy", BatchSplitter::kByPolicy}});
}

void bind_shards(nb::module_& m) {
  nb::class_<ShardedDataset>(m, "ShardedDataset", "The part of one of several workers.")
      .def_ro("dataset", &ShardedDataset::dataset)
      .def_prop_ro(
          "applied", [](const ShardedDataset& of) { return word_of(of.applied, policies()); },
          "The policy that \"auto\" came to.")
      .def_ro("warning", &ShardedDataset::warning);
  nb::class_<ReplicaPieces>(m, "ReplicaPieces", "A worker's pieces of each batch.")
      .def_ro("dataset", &ReplicaPieces::dataset)
      .def_prop_ro("applied",
                   [](const ReplicaPieces& of) { return word_of(of.applied, policies()); })
      .def_ro("warning", &ReplicaPieces::warning)
      .def_prop_ro("cut_batches", [](const ReplicaPieces& of) -> std::optional<Dataset> {
        if (!of.cut_batches.defined()) return std::nullopt;
        return of.cut_batches;
      });
  m.def(
      "auto_shard",
      [](const Dataset& dataset, const std::string& policy, std::int64_t workers,
         std::int64_t worker) {
        return auto_shard(dataset, value_of_word("policy", policy, policies()), workers, worker);
      },
      "dataset"_a, "policy"_a, "workers"_a, "worker"_a,
      "The part of a dataset that a worker reads, as strategies deal it out.\n\n>>> "
      "cairn.auto_shard(cairn.Dataset.range(4).batch(2), \"off\", 2, 0).applied\n'off'");
  m.def(
      "pieces_of_worker",
      [](const Dataset& dataset, const std::string& policy, const std::string& splitter,
         std::int64_t workers, std::int64_t worker, std::int64_t replicas) {
        return pieces_of_worker(dataset, value_of_word("policy", policy, policies()),
                                splitter_of(splitter), {workers, worker, replicas});
      },
      "dataset"_a, "policy"_a, "splitter"_a = "cut", nb::kw_only(), "workers"_a = 1, "worker"_a = 0,
      "replicas"_a = 1, R"(The same, cut for the worker's replicas.

>>> cairn.pieces_of_worker(cairn.Dataset.range(4).batch(4), "off", replicas=2).applied
'off')");
  m.def(
      "batch_sizes_for_worker",
      [](std::int64_t global_batch_size, std::int64_t workers, std::int64_t worker,
         std::int64_t replicas) {
        return batch_sizes_for_worker(global_batch_size, {workers, worker, replicas});
      },
      "global_batch_size"_a, nb::kw_only(), "workers"_a = 1, "worker"_a = 0, "replicas"_a = 1,
      "How many examples of a global batch each of a worker's replicas gets.\n\n>>> "
      "cairn.batch_sizes_for_worker(7, replicas=2)\n[4, 3]");
  m.def(
      "deal",
      [](const Dataset& dataset, std::int64_t replicas, const std::string& how) {
        return dataset.deal(
            replicas,
            value_of_word<Deal>("how", how, {{"cut", Deal::kCut}, {"in_turn", Deal::kInTurn}}));
      },
      "dataset"_a, "replicas"_a, "how"_a = "cut",
      "Batches for replicas that take them in turn: the pieces of each, or whole ones.\n\n>>> data "
      "= cairn.Dataset.range(4).batch(4)\n>>> [len(each[\"value\"]) for each in cairn.deal(data, "
      "2)]\n[2, 2]");
  m.def("described_batch_size", &described_batch_size, "dataset"_a,
        "The size of batches that a dataset's description says; 0: it says none.\n\n>>> "
        "cairn.described_batch_size(cairn.Dataset.range(4).batch(2))\n2");
}

void bind_clicks(nb::module_& m) {
  FieldsOf<CriteoExample>(m, "CriteoExample", "A row of made-up clicks.")
      .add("label", &CriteoExample::label, "1: clicked.")
      .add("counts", &CriteoExample::counts, "13 numbers.")
      .add("ids", &CriteoExample::ids, "26 ids.")
      .add("logit", &CriteoExample::logit, "That of the hidden model.")
      .report();
  nb::class_<ZipfDistribution>(m, "ZipfDistribution", R"(Ranks that follow a power law.

>>> ranks = cairn.ZipfDistribution(1000, exponent=1.0)
>>> 1 <= ranks(cairn.Random(1)) <= 1000
True)")
      .def(nb::init<std::int64_t, double>(), "n"_a, "exponent"_a)
      .def(
          "__call__", [](const ZipfDistribution& of, Random& random) { return of(random); },
          "random"_a)
      .def_prop_ro("size", &ZipfDistribution::size);
}

DatePart part_of(const std::string& word) {
  return value_of_word<DatePart>("a part of a date", word,
                                 {{"day_of_week", DatePart::kDayOfWeek},
                                  {"hour", DatePart::kHour},
                                  {"month", DatePart::kMonth}});
}

void bind_dates(nb::module_& m) {
  nb::class_<DateFormat>(m, "DateFormat", R"(How dates are written, in the directives of strptime.

>>> cairn.DateFormat("%Y-%m-%d").parse("1970-01-02")
86400)")
      .def(nb::init<std::string>(), "format"_a)
      .def_prop_ro("text", &DateFormat::text)
      .def(
          "parse",
          [](const DateFormat& of, const std::string& text) -> std::optional<std::int64_t> {
            std::int64_t seconds = 0;
            if (!of.parse(text, seconds)) return std::nullopt;
            return seconds;
          },
          "text"_a, "Seconds since 1970; None: it is no such date.")
      .def(
          "complaint",
          [](const DateFormat& of, const std::string& text) { return of.complaint(text); },
          "text"_a, "Why parse() refuses a text.");
  m.def(
      "part_of_date",
      [](const std::string& part, std::int64_t seconds) {
        return part_of_date(part_of(part), seconds);
      },
      "part"_a, "seconds"_a,
      "\"day_of_week\", \"hour\" or \"month\" of seconds since 1970, from 0 on.\n\n>>> "
      "cairn.part_of_date(\"hour\", 7200)\n2");
  m.def(
      "date_part_ids", [](const std::string& part) { return date_part_ids(part_of(part)); },
      "part"_a, "How many there are.\n\n>>> cairn.date_part_ids(\"hour\")\n24");
  m.def("date_text", &date_text, "seconds"_a,
        "Seconds since 1970 as text.\n\n>>> cairn.date_text(0)[:10]\n'1970-01-01'");
}

// An event of reading, for a function of Python's; none, if it is None.
template <typename Value>
std::function<void(Value)> told(const nb::object& function) {
  if (function.is_none()) return nullptr;
  return [function = share(function)](Value value) {
    const Acquired here;
    nb::borrow(function->get())(value);
  };
}

}  // namespace

void bind_opening(nb::class_<Dataset>& dataset) {
  dataset.def(
      "open",
      [](const Dataset& data, const nb::bytes& state, std::optional<std::size_t> buffer_bytes_max,
         double prefetch_deadline, const std::string& pipes, nb::object on_skipped_row,
         nb::object on_empty_file, nb::object on_filtered_rows, nb::object on_unlabelled_rows) {
        IteratorState at;
        const auto* bytes = reinterpret_cast<const std::byte*>(state.c_str());
        at.bytes.assign(bytes, bytes + state.size());
        OpenOptions options;
        if (buffer_bytes_max) options.buffer_bytes_max = *buffer_bytes_max;
        options.prefetch_deadline =
            std::chrono::milliseconds(static_cast<std::int64_t>(prefetch_deadline * 1000));
        options.pipes = chosen<Pipes>(
            "pipes", pipes, {{"refuse", Pipes::kRefuse}, {"read_once", Pipes::kReadOnce}});
        options.line_events = {
            told<const std::string&>(on_skipped_row), told<const std::string&>(on_empty_file),
            told<std::int64_t>(on_filtered_rows), told<std::int64_t>(on_unlabelled_rows)};
        return released(
            [&] { return std::make_unique<ElementIterator>(data, at, std::move(options)); });
      },
      "state"_a = nb::bytes("", 0), nb::kw_only(), "buffer_bytes_max"_a = nb::none(),
      "prefetch_deadline"_a = 60.0, "pipes"_a = "refuse", "on_skipped_row"_a = nb::none(),
      "on_empty_file"_a = nb::none(), "on_filtered_rows"_a = nb::none(),
      "on_unlabelled_rows"_a = nb::none(),
      nb::sig("def open(self, state: bytes = b'', *, buffer_bytes_max: int | None = None, "
              "prefetch_deadline: float = 60.0, pipes: str = 'refuse', on_skipped_row: "
              "collections.abc.Callable[[str], None] | None = None, on_empty_file: "
              "collections.abc.Callable[[str], None] | None = None, on_filtered_rows: "
              "collections.abc.Callable[[int], None] | None = None, on_unlabelled_rows: "
              "collections.abc.Callable[[int], None] | None = None) -> DatasetIterator"),
      "An iterator at the beginning, or where another one's `state` was taken.\n\n"
      ">>> iterator = iter(cairn.Dataset.range(4))\n"
      ">>> _ = next(iterator), next(iterator)\n"
      ">>> [int(each[\"value\"]) for each in cairn.Dataset.range(4).open(iterator.state)]\n"
      "[2, 3]");
}

void bind_dataset_parts(nb::module_& m) {
  bind_shards(m);
  bind_clicks(m);
  bind_dates(m);
}

}  // namespace cairn::python
