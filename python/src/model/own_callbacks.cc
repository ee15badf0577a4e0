// Cairn's own callbacks, by their names in Keras.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "callbacks.h"
#include "model/callbacks.h"
#include "model/progress_bar.h"
#include "model/tensorboard.h"

namespace cairn::python {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

template <typename C>
struct CallbackOf : CallbackObject {
  using CallbackObject::CallbackObject;
  C& own() const { return static_cast<C&>(*get()); }
};
template <typename C>
nb::class_<CallbackOf<C>, CallbackObject> callback_class(nb::module_& m, const char* name,
                                                         const char* doc) {
  return {m, name, nb::type_slots(collected<CallbackObject>()), doc};
}
template <typename C, typename... A>
void make(CallbackOf<C>* self, A&&... arguments) {
  new (self) CallbackOf<C>(std::make_shared<C>(std::forward<A>(arguments)...), Kept());
}

MonitorMode mode_of(const std::string& name) {
  if (name == "auto") return MonitorMode::kAuto;
  if (name == "min") return MonitorMode::kMin;
  if (name == "max") return MonitorMode::kMax;
  throw InvalidArgumentError(str("the mode is \"auto\", \"min\" or \"max\", not \"", name, "\""));
}

void require_name(const std::string& folder) {
  if (folder.empty()) throw InvalidArgumentError("the folder or file of a callback has no name");
}
void require_count(const char* name, std::int64_t count) {
  if (count < 0) throw InvalidArgumentError(str("`", name, "` is at least 0, not ", count));
}

void bind_stopping(nb::module_& m) {
  callback_class<EarlyStopping>(m, "EarlyStopping",
                                R"(Ends training when what is monitored gets no better.

>>> cairn.callbacks.EarlyStopping(monitor="val_auc", patience=3, restore_best_weights=True)
<cairn.callbacks.EarlyStopping>)")
      .def(
          "__init__",
          [](CallbackOf<EarlyStopping>* self, const std::string& monitor, double min_delta,
             std::int64_t patience, const std::string& mode, std::optional<double> baseline,
             bool restore_best_weights, std::int64_t start_from_epoch) {
            require_count("patience", patience);
            require_count("start_from_epoch", start_from_epoch);
            make(self, EarlyStoppingOptions{.monitor = monitor,
                                            .min_delta = min_delta,
                                            .patience = patience,
                                            .mode = mode_of(mode),
                                            .baseline = baseline.value_or(kNone),
                                            .restore_best_weights = restore_best_weights,
                                            .start_from_epoch = start_from_epoch});
          },
          "monitor"_a = "val_loss", "min_delta"_a = 0.0, "patience"_a = 0, "mode"_a = "auto",
          "baseline"_a = nb::none(), "restore_best_weights"_a = false, "start_from_epoch"_a = 0)
      .def_prop_ro(
          "stopped_epoch",
          [](const CallbackOf<EarlyStopping>& self) { return self.own().stopped_epoch(); },
          "The epoch after which it stopped; -1: it did not.")
      .def_prop_ro(
          "best_epoch",
          [](const CallbackOf<EarlyStopping>& self) { return self.own().best_epoch(); },
          "The epoch of the best value.");
  callback_class<TerminateOnNaN>(
      m, "TerminateOnNaN",
      "A step whose loss is not finite ends training without an error.\n\n>>> "
      "cairn.callbacks.TerminateOnNaN()\n<cairn.callbacks.TerminateOnNaN>")
      .def("__init__", [](CallbackOf<TerminateOnNaN>* self) { make(self); });
}

void bind_rates(nb::module_& m) {
  callback_class<ReduceLROnPlateau>(m, "ReduceLROnPlateau",
                                    R"(Lowers the rate when what is monitored gets no better.

>>> cairn.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=2)
<cairn.callbacks.ReduceLROnPlateau>)")
      .def(
          "__init__",
          [](CallbackOf<ReduceLROnPlateau>* self, const std::string& monitor, double factor,
             std::int64_t patience, const std::string& mode, double min_delta,
             std::int64_t cooldown, double min_lr) {
            require_count("patience", patience);
            require_count("cooldown", cooldown);
            make(self, ReduceLROnPlateauOptions{.monitor = monitor,
                                                .factor = factor,
                                                .patience = patience,
                                                .mode = mode_of(mode),
                                                .min_delta = min_delta,
                                                .cooldown = cooldown,
                                                .min_lr = min_lr});
          },
          "monitor"_a = "val_loss", "factor"_a = 0.1, "patience"_a = 10, "mode"_a = "auto",
          "min_delta"_a = 1e-4, "cooldown"_a = 0, "min_lr"_a = 0.0);
  callback_class<LearningRateScheduler>(
      m, "LearningRateScheduler",
      R"(The rate of each epoch, from its number and the rate so far.

>>> cairn.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9)
<cairn.callbacks.LearningRateScheduler>)")
      .def(
          "__init__",
          [](CallbackOf<LearningRateScheduler>* self, nb::handle schedule) {
            if (PyCallable_Check(schedule.ptr()) == 0)
              throw nb::type_error("a schedule is a function of the epoch and the rate so far");
            Kept kept;
            auto function = [schedule = kept.keep(schedule)](std::int64_t epoch, double rate) {
              const Acquired here;
              double next = 0;
              if (!nb::try_cast(nb::borrow(schedule->get())(epoch, rate), next))
                throw nb::type_error("a schedule returns a learning rate, a number");
              return next;
            };
            new (self) CallbackOf<LearningRateScheduler>(
                std::make_shared<LearningRateScheduler>(std::move(function)), std::move(kept));
          },
          "schedule"_a,
          nb::sig("def __init__(self, schedule: collections.abc.Callable[[int, float], float]) -> "
                  "None"));
}

void bind_saving(nb::module_& m) {
  callback_class<ModelCheckpoint>(m, "ModelCheckpoint",
                                  R"(Saves a checkpoint after every epoch, or only the best ones.

>>> cairn.callbacks.ModelCheckpoint("/tmp/checkpoints", monitor="val_auc", save_best_only=True)
<cairn.callbacks.ModelCheckpoint>)")
      .def(
          "__init__",
          [](CallbackOf<ModelCheckpoint>* self, const std::string& folder,
             const std::string& monitor, bool save_best_only, const std::string& mode,
             std::size_t keep_last, std::size_t keep_every, std::size_t full_every,
             const std::string& model, const std::string& row_form, const std::string& slot_form,
             const std::string& compression, std::vector<std::string> encoded_variables) {
            require_name(folder);
            const storage::RowEncoding encoding{
                .rows = storage::parse_row_form(row_form, "row_form"),
                .slots = storage::parse_slot_form(slot_form, "slot_form"),
                .compression = storage::parse_compression(compression, "compression"),
                .variables = std::move(encoded_variables)};
            make(self, folder,
                 ModelCheckpointOptions{.monitor = monitor,
                                        .save_best_only = save_best_only,
                                        .mode = mode_of(mode),
                                        .keep_last = keep_last,
                                        .keep_every = keep_every,
                                        .full_every = full_every,
                                        .encoding = encoding,
                                        .model = model});
          },
          "folder"_a, "monitor"_a = "val_loss", "save_best_only"_a = false, "mode"_a = "auto",
          nb::kw_only(), "keep_last"_a = 5, "keep_every"_a = 0, "full_every"_a = 1, "model"_a = "",
          "row_form"_a = "exact", "slot_form"_a = "exact", "compression"_a = "none",
          "encoded_variables"_a = std::vector<std::string>{})
      .def_prop_ro(
          "newest", [](const CallbackOf<ModelCheckpoint>& self) { return self.own().newest(); },
          "The newest checkpoint's folder; empty: none was saved.");
  callback_class<BackupAndRestore>(m, "BackupAndRestore",
                                   R"(Training that was killed goes on where it was saved last.

>>> cairn.callbacks.BackupAndRestore("/tmp/backup")
<cairn.callbacks.BackupAndRestore>)")
      .def(
          "__init__",
          [](CallbackOf<BackupAndRestore>* self, const std::string& folder,
             std::int64_t every_steps, bool delete_at_end, std::size_t full_every) {
            require_name(folder);
            make(self, folder,
                 BackupAndRestoreOptions{.every_steps = every_steps,
                                         .delete_at_end = delete_at_end,
                                         .full_every = full_every});
          },
          "folder"_a, "every_steps"_a = 0, "delete_at_end"_a = true, "full_every"_a = 1);
}

void bind_writing(nb::module_& m) {
  callback_class<CSVLogger>(m, "CSVLogger", R"(Writes a line of logs for each epoch.

>>> cairn.callbacks.CSVLogger("/tmp/log.csv")
<cairn.callbacks.CSVLogger>)")
      .def(
          "__init__",
          [](CallbackOf<CSVLogger>* self, const std::string& path, const std::string& separator,
             bool append) {
            require_name(path);
            make(self, path, CSVLoggerOptions{.separator = separator, .append = append});
          },
          "path"_a, "separator"_a = ",", "append"_a = false);
  callback_class<TensorBoard>(m, "TensorBoard", R"(Writes the course of training for TensorBoard.

>>> cairn.callbacks.TensorBoard("/tmp/logs", histogram_freq=1)
<cairn.callbacks.TensorBoard>)")
      .def(
          "__init__",
          [](CallbackOf<TensorBoard>* self, const std::string& folder, std::int64_t histogram_freq,
             bool write_graph, std::int64_t update_freq) {
            require_name(folder);
            make(self, folder,
                 TensorBoardOptions{.histogram_freq = histogram_freq,
                                    .write_graph = write_graph,
                                    .update_freq = update_freq});
          },
          "folder"_a, "histogram_freq"_a = 0, "write_graph"_a = true, "update_freq"_a = 0);
  callback_class<ProgressBar>(
      m, "ProgressBar",
      "Draws on the process's standard output how far an epoch has come; fit(verbose=1) does so on "
      "Python's.\n\n>>> cairn.callbacks.ProgressBar()\n<cairn.callbacks.ProgressBar>")
      .def(
          "__init__",
          [](CallbackOf<ProgressBar>* self, bool always, double every) {
            make(self, ProgressBarOptions{.always = always,
                                          .every = std::chrono::duration_cast<Duration>(
                                              std::chrono::duration<double>(every))});
          },
          "always"_a = false, "every"_a = 0.1);
}

}  // namespace

void bind_own_callbacks(nb::module_& m) {
  nb::class_<CallbackObject>(m, "_Callback", nb::type_slots(collected<CallbackObject>()),
                             "One of Cairn's own callbacks.")
      .def("__repr__", [](nb::handle self) {
        return str("<cairn.callbacks.",
                   nb::cast<std::string>(nb::handle(self.type()).attr("__name__")), ">");
      });
  nb::module_ own = m.def_submodule("_callbacks", "Callbacks of Model.fit().");
  bind_stopping(own);
  bind_rates(own);
  bind_saving(own);
  bind_writing(own);
}

}  // namespace cairn::python
