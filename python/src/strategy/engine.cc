// Options of the engine behind parameter servers, and the figures of a run.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "coordinator/cluster/closure_queue.h"
#include "core/base/arithmetic.h"
#include "options.h"

namespace cairn::python {
namespace {

const Words<Arithmetic>& arithmetics() {
  static const Words<Arithmetic> words = {{"float32", Arithmetic::kFloat32},
                                          {"tf32", Arithmetic::kTf32},
                                          {"bfloat16", Arithmetic::kBfloat16},
                                          {"mixed_bfloat16", Arithmetic::kMixedBfloat16}};
  return words;
}

// A function of Python's. The engine's thread may drop it, so that it is a reference that any
// thread may drop.
struct CalledWhileWaiting {
  SharedReference function;
  void operator()(const std::vector<MissingTask>& missing) const {
    const Acquired here;
    nb::borrow(function->get())(missing);
  }
};
nb::object callable_of(const StartWait& of) {
  const auto* const called = of.on_wait.target<CalledWhileWaiting>();
  return called == nullptr ? nb::object(nb::none()) : nb::borrow(called->function->get());
}
void call_while_waiting(StartWait& of, nb::object function) {
  if (function.is_none())
    of.on_wait = nullptr;
  else
    of.on_wait = CalledWhileWaiting{share(std::move(function))};
}

// For the collector of cycles: a program's function knows its globals, and these the options.
StartWait& start_of(StartWait& of) { return of; }
StartWait& start_of(EngineOptions& of) { return of.start; }
template <typename T>
int traverse_start(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto* const called =
      start_of(*nb::inst_ptr<T>(self)).on_wait.template target<CalledWhileWaiting>();
  return called == nullptr ? 0 : visit(called->function->get().ptr(), arg);
}
template <typename T>
int clear_start(PyObject* self) {
  if (nb::inst_ready(self)) start_of(*nb::inst_ptr<T>(self)).on_wait = nullptr;
  drop_references();
  return 0;
}
template <typename T>
PyType_Slot* start_slots() {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_start<T>)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear_start<T>)},
                                {0, nullptr}};
  return slots;
}

void bind_parts(nb::module_& m) {
  FieldsOf<Heartbeats>(m, "Heartbeats", R"(When a task that may be only busy counts as lost.

>>> cairn.EngineOptions(heartbeats=cairn.Heartbeats(missed_max=20)).heartbeats.missed_max
20)")
      .seconds("interval", &Heartbeats::interval, "Seconds between two.")
      .add("missed_max", &Heartbeats::missed_max, "So many in a row went unanswered.")
      .options();
  FieldsOf<WaitReports>(m, "WaitReports", R"(When the engine logs what it waits for.

>>> cairn.WaitReports(stuck_after=30.0).stuck_after
30.0)")
      .seconds("stuck_after", &WaitReports::stuck_after,
               "Seconds without progress after which a closure is named.")
      .add("signal", &WaitReports::signal, "Or on this signal; 0: on none.")
      .options();
  FieldsOf<MissingTask>(m, "MissingTask", "A task that a strategy's start waits for.")
      .add("name", &MissingTask::name, "\"/job:ps/task:0\".")
      .add("address", &MissingTask::address, "Its address.")
      .add("trouble", &MissingTask::trouble, "Why there is no connection to it.")
      .report()
      .def("text", &MissingTask::text, "All of it in a line.");
  FieldsOf<StartWait>(m, "StartWait",
                      R"(How a strategy's start waits for the cluster's tasks.

>>> cairn.StartWait(timeout=10.0).timeout
10.0)",
                      start_slots<StartWait>())
      .seconds("timeout", &StartWait::timeout, "Seconds for all of them together.")
      .with(
          "on_wait", "collections.abc.Callable[[list[MissingTask]], None] | None",
          "Called some ten times a second with those that are missing.",
          [](const StartWait& of) { return callable_of(of); }, &call_while_waiting)
      .options();
  FieldsOf<LaneComputing>(m, "LaneComputing", R"(How workers compute.

>>> cairn.LaneComputing(products="bfloat16").products
'bfloat16')")
      .word("products", &LaneComputing::products, arithmetics(),
            "\"float32\", \"tf32\", \"bfloat16\" or \"mixed_bfloat16\".")
      .add("deterministic", &LaneComputing::deterministic, "Bit for bit on the same GPU.")
      .options();
  FieldsOf<PsRecovery>(m, "PsRecovery", R"(Whether a ps that is lost is waited for, and rebuilt.

>>> cairn.PsRecovery(on=False).on
False)")
      .add("on", &PsRecovery::on, "False: it is an error at once.")
      .add("on_demand", &PsRecovery::on_demand, "Training goes on before all rows are there.")
      .add("replicas", &PsRecovery::replicas, "On so many ps each row lies.")
      .options();
  FieldsOf<JournalOptions>(m, "JournalOptions",
                           R"(Where a coordinator writes what one that follows it goes on with.

>>> cairn.EngineOptions(journal=cairn.JournalOptions(folder="/runs/7/journal")).journal.folder
'/runs/7/journal')")
      .add("folder", &JournalOptions::folder, "On a file system; \"\": nothing is written.")
      .seconds("sync_after", &JournalOptions::sync_after,
               "Seconds that a loss of power may take back; 0: none.")
      .options();
}

template <typename F>
auto of_part(F EngineOptions::*field) {
  return std::pair([field](const EngineOptions& of) { return of.*field; },
                   [field](EngineOptions& of, F value) { of.*field = std::move(value); });
}

void bind_options(nb::module_& m) {
  using Options = EngineOptions;
  FieldsOf<Options> fields(m, "EngineOptions", R"(How parameter servers and workers are used.

>>> cairn.EngineOptions(pipeline_depth=1, ps_wait=60.0).pipeline_depth
1)",
                           start_slots<Options>());
  const auto part = [&](const char* name, const char* type, auto field, const char* doc) {
    const auto [get, set] = of_part(field);
    fields.with(name, type, doc, get, set);
  };
  fields.add("cluster_id", &Options::cluster_id, "Tasks of another cluster are refused.")
      .add("token", &Options::token, "The shared secret.")
      .with(
          "session", "int", "0: it is drawn.", [](const Options& of) { return of.session.number; },
          [](Options& of, std::uint64_t number) { of.session.number = number; })
      .add("insecure", &Options::insecure, "Other hosts may reach the chief without a token.")
      .add("pipeline_depth", &Options::pipeline_depth,
           "Closures of a lane between pull and push; 1: one after another.")
      .add("send_window", &Options::send_window, "Closures sent to a lane and not answered.")
      .add("queue_capacity", &Options::queue_capacity, "schedule() waits beyond it.")
      .add("bfloat16_wire", &Options::bfloat16_wire, "Rows and gradients at half the bytes.")
      .add("take_over", &Options::take_over, "Another coordinator's session is ended.")
      .seconds("ps_wait", &Options::ps_wait, "Seconds that a lost ps may take to come back.")
      .seconds("worker_wait", &Options::worker_wait, "Seconds without any worker.");
  part("computing", "LaneComputing", &Options::computing, "How workers compute.");
  part("recovery", "PsRecovery", &Options::recovery, "What becomes of a ps that is lost.");
  part("heartbeats", "Heartbeats", &Options::heartbeats, "When a task counts as lost.");
  part("start", "StartWait", &Options::start, "How the start waits for tasks.");
  part("journal", "JournalOptions", &Options::journal, "What a later coordinator goes on with.");
  part("waits", "WaitReports", &Options::waits, "When the log says what is waited for.");
  fields.options();
}

void bind_figures(nb::module_& m) {
  using Report = LossReport;
  FieldsOf<Report>(m, "LossReport", "A task that was lost, and what it cost.")
      .add("task", &Report::task, "\"/job:ps/task:1\".")
      .add("reason", &Report::reason, "Why it counts as lost.")
      .add("at_seconds", &Report::at_seconds, "Since the start.")
      .add("back_after_seconds", &Report::back_after_seconds, "Until it served again; -1: not yet.")
      .add("first_push_after_seconds", &Report::first_push_after_seconds,
           "Until a closure pushed through it; -1: not yet.")
      .add("lost_updates", &Report::lost_updates, "Closures whose updates are gone there.")
      .report();
  FieldsOf<ResumedRun>(m, "ResumedRun", "The run that a coordinator goes on with.")
      .add("global_step", &ResumedRun::global_step, "Once what was open had ended.")
      .add("term", &ResumedRun::term, "The coordinator's number in the session.")
      .add("open", &ResumedRun::open, "Closures that had been sent and not ended: they have now.")
      .add("unrecorded", &ResumedRun::unrecorded,
           "Closures that ps had and the journal had lost with its machine's power.")
      .add("notes", &ResumedRun::notes, "What earlier programs of the run have noted, by name.")
      .report();
  using Histogram = StalenessHistogram;
  FieldsOf<Histogram::Bucket>(m, "StalenessBucket", "Updates of a range of staleness.")
      .add("from_", &Histogram::Bucket::from, "The first number of it.")
      .add("to", &Histogram::Bucket::to, "The last one.")
      .add("updates", &Histogram::Bucket::updates, "How many there were.")
      .report();
  nb::class_<Histogram>(m, "StalenessHistogram", R"(How stale the updates of a run were.

>>> staleness = cairn.StalenessHistogram()
>>> staleness.add(2)
>>> staleness.max
2)")
      .def(nb::init<>())
      .def("add", &Histogram::add, "staleness"_a, "Counts an update.")
      .def_prop_ro("updates", &Histogram::updates)
      .def_prop_ro("mean", &Histogram::mean)
      .def_prop_ro("max", &Histogram::max)
      .def("quantile", &Histogram::quantile, "share"_a,
           "At least this share of the updates was no staler.")
      .def_prop_ro("buckets", &Histogram::buckets);
  FieldsOf<QueueCounts>(m, "QueueCounts", "How many closures there are, and were.")
      .add("queued", &QueueCounts::queued, "They wait for a worker.")
      .add("inflight", &QueueCounts::inflight, "They run.")
      .add("scheduled", &QueueCounts::scheduled, "In all.")
      .add("finished", &QueueCounts::finished, "In all.")
      .add("retried", &QueueCounts::retried, "In all.")
      .add("cancelled", &QueueCounts::cancelled, "In all.")
      .report();
}

void bind_stats(nb::module_& m) {
  using Stats = EngineStats;
  FieldsOf<Stats> fields(m, "EngineStats", "Figures of a run, of one moment.");
  fields.add("uptime_seconds", &Stats::uptime_seconds, "Since the start.")
      .add("global_step", &Stats::global_step, "Steps, those before a restore included.")
      .add("updates", &Stats::updates, "Closures that pushed and are committed.")
      .add("retried", &Stats::retried, "Closures that ran again.")
      .add("lost_updates", &Stats::lost_updates, "Closures whose updates a lost ps took along.")
      .with(
          "staleness", "StalenessHistogram", "How stale updates were.",
          [](const Stats& of) { return of.staleness; },
          [](Stats& of, StalenessHistogram value) { of.staleness = value; })
      .add("staleness_mean", &Stats::staleness_mean, "Their mean.")
      .add("staleness_max", &Stats::staleness_max, "The most.")
      .add("workers_ready", &Stats::workers_ready, "Workers that serve.")
      .add("workers", &Stats::workers, "Workers in all.")
      .add("ps_ready", &Stats::ps_ready, "Parameter servers that serve.")
      .add("ps", &Stats::ps, "Parameter servers in all.")
      .add("skipped_rows", &Stats::skipped_rows, "Malformed rows of the data.")
      .add("checkpoints", &Stats::checkpoints, "How many were saved.")
      .add("checkpoints_failed", &Stats::checkpoints_failed, "How many were not.")
      .add("checkpoint_error", &Stats::checkpoint_error, "Why the last of these failed.")
      .add("last_checkpoint", &Stats::last_checkpoint, "The folder of the last one.")
      .add("last_checkpoint_seconds", &Stats::last_checkpoint_seconds, "How long it took.")
      .add("last_cut_seconds", &Stats::last_cut_seconds, "How long pushes were held for it.")
      .add("losses", &Stats::losses, "Tasks that were lost.")
      .report();
}

}  // namespace

void bind_engine_options(nb::module_& m) {
  bind_parts(m);
  bind_options(m);
  bind_figures(m);
  bind_stats(m);
}

}  // namespace cairn::python
