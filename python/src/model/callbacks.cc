// How callbacks that are written in Python are called.
#include "callbacks.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <set>

#include "coordinator/cluster/engine_options.h"
#include "core/base/clock.h"
#include "model/progress_bar.h"
#include "refusing.h"
#include "values.h"

namespace cairn::python {
namespace {

constexpr const char* kMethods[] = {
    "on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end", "on_train_batch_end",
    "on_test_begin",  "on_test_end",  "state",          "restore_state"};

nb::object package() { return nb::module_::import_("cairn.callbacks"); }

// The methods that do something: those of the base class alone do not.
std::set<std::string> own_methods(nb::handle callback) {
  const nb::object base = package().attr("Callback");
  std::set<std::string> own;
  for (const char* name : kMethods) {
    if (!nb::hasattr(callback, name)) continue;
    const nb::object of_type = nb::getattr(callback.type(), name, nb::none());
    const nb::object of_object = nb::getattr(callback, "__dict__", nb::dict());
    if (of_object.attr("__contains__")(name).is(nb::bool_(true)) || of_type.is_none() ||
        !of_type.is(nb::getattr(base, name, nb::none())))
      own.insert(name);
  }
  return own;
}

bool flag(nb::handle callback, const char* name) {
  const nb::object value = nb::getattr(callback, name, nb::none());
  return nb::cast<bool>(nb::bool_(PyCallable_Check(value.ptr()) != 0 ? value() : value));
}

// A Python object with the methods that it has.
class PythonCallback final : public Callback {
 public:
  PythonCallback(nb::handle callback, nb::handle model)
      : callback_(share(nb::borrow(callback))),
        model_(share(nb::borrow(model))),
        own_(own_methods(callback)),
        adjusts_rate_(flag(callback, "adjusts_learning_rate")),
        takes_bad_loss_(flag(callback, "takes_bad_loss")) {
    nb::setattr(callback, "model", model);
  }

  void on_train_begin(TrainingRun& run) override { call(&run, "on_train_begin"); }
  void on_train_end(TrainingRun& run, const Logs& logs) override {
    call(&run, "on_train_end", logs);
  }
  void on_epoch_begin(TrainingRun& run, std::int64_t epoch) override {
    call(&run, "on_epoch_begin", epoch);
  }
  void on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) override {
    if (!own_.contains("on_epoch_end")) return;
    const Acquired here;
    nb::dict told = dict_of(logs);
    call_with(&run, "on_epoch_end", nb::int_(epoch), told);
    for (auto [name, value] : told) {
      double number = 0;
      if (!nb::isinstance<nb::str>(name) || !nb::try_cast(value, number))
        type_error(str("the callback ",
                       nb::cast<std::string>(nb::handle(callback_->get().type()).attr("__name__")),
                       " adds numbers to the logs, by names that are texts, and not ",
                       described(value), " as ", described(name)));
      logs.set(nb::cast<std::string>(name), number);
    }
  }
  void on_train_batch_end(TrainingRun& run, std::int64_t step, const Logs& logs) override {
    call(&run, "on_train_batch_end", step, logs);
  }
  void on_test_begin() override { call(nullptr, "on_test_begin"); }
  void on_test_end(const Logs& logs) override { call(nullptr, "on_test_end", logs); }

  std::optional<CallbackState> state() const override {
    if (!own_.contains("state")) return std::nullopt;
    const Acquired here;
    const nb::object state = callback_->get().attr("state")();
    if (state.is_none()) return std::nullopt;
    const nb::object written = package().attr("_written")(callback_->get(), state);
    CallbackState made{.text = nb::cast<std::string>(nb::object(written[0]))};
    for (nb::handle each : nb::object(written[1])) made.tensors.push_back(tensor_of(each));
    return made;
  }
  void restore_state(const CallbackState& saved) override {
    if (!own_.contains("restore_state")) return;
    const Acquired here;
    nb::list arrays;
    for (const Tensor& each : saved.tensors) arrays.append(numpy_of(each));
    package().attr("_restore")(callback_->get(), saved.text, arrays);
  }
  bool wants_batch_logs() const override { return own_.contains("on_train_batch_end"); }
  bool adjusts_learning_rate() const override { return adjusts_rate_; }
  bool takes_bad_loss() const override { return takes_bad_loss_; }

 private:
  template <typename... A>
  void call_with(TrainingRun* run, const char* name, A&&... arguments) {
    const nb::object object = nb::cast(PythonRun{run, model_});
    nb::setattr(callback_->get(), "run", object);
    struct Over {
      PythonRun& run;
      ~Over() {
        run.run = nullptr;
        run.model.reset();
      }
    } over{nb::cast<PythonRun&>(object)};
    callback_->get().attr(name)(std::forward<A>(arguments)...);
  }
  static nb::object told(std::int64_t number) { return nb::int_(number); }
  static nb::object told(const Logs& logs) { return dict_of(logs); }
  template <typename... A>
  void call(TrainingRun* run, const char* name, const A&... arguments) {
    if (!own_.contains(name)) return;
    const Acquired here;
    call_with(run, name, told(arguments)...);
  }

  SharedReference callback_, model_;
  std::set<std::string> own_;
  bool adjusts_rate_, takes_bad_loss_;
};

// ---- what fit() prints ----

class Shown final : public Callback {
 public:
  // `line`: a cairn._notebook.Line, which shows how far an epoch has come; or None.
  Shown(std::int64_t epochs, bool bar, nb::object line) : epochs_(epochs), bar_(bar) {
    if (!line.is_none()) line_ = share(std::move(line));
  }

  void on_epoch_begin(TrainingRun&, std::int64_t) override {
    began_ = drawn_at_ = system_clock().now();
  }
  void on_train_batch_end(TrainingRun& run, std::int64_t step, const Logs& logs) override {
    if (!wants_batch_logs() || !run.writes_files()) return;
    drawn_at_ = system_clock().now();
    draw(progress_bar_text(step + 1, run.steps_per_epoch(), seconds(), logs));
  }
  void on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) override {
    if (!run.writes_files()) return;
    draw("");
    char head[80];
    std::snprintf(head, sizeof head, "Epoch %lld/%lld  %lld steps  %.1f s",
                  static_cast<long long>(epoch + 1), static_cast<long long>(epochs_),
                  static_cast<long long>(run.steps_per_epoch()), seconds());
    std::string first, others;
    for (const auto& [name, value] : logs) {
      char number[40];
      std::snprintf(number, sizeof number, "%.4g", value);
      (name == "loss" ? first : others) += str("  ", name, " ", number);
    }
    write(str(head, first, others, "\n"));
  }
  void on_train_end(TrainingRun&, const Logs&) override { draw(""); }
  bool wants_batch_logs() const override {
    return bar_ && system_clock().now() - drawn_at_ >= std::chrono::milliseconds(100);
  }

 private:
  double seconds() const {
    return std::chrono::duration<double>(system_clock().now() - began_).count();
  }
  // In the place of the line before, which blanks cover where it was longer.
  void draw(const std::string& text) {
    if (text.empty() && drawn_ == 0) return;
    if (line_ != nullptr) {
      drawn_ = text.size();
      const Acquired here;
      line_->get().attr("draw")(text);
      return;
    }
    std::string line =
        "\r" + text + std::string(drawn_ > text.size() ? drawn_ - text.size() : 0, ' ');
    if (text.empty()) line += "\r";
    drawn_ = text.size();
    write(line);
  }
  static void write(const std::string& text) {
    const Acquired here;
    const nb::object out = nb::module_::import_("sys").attr("stdout");
    if (out.is_none()) return;  // as under pythonw
    out.attr("write")(text);
    out.attr("flush")();
  }

  const std::int64_t epochs_;
  const bool bar_;
  TimePoint began_{}, drawn_at_{};
  std::size_t drawn_ = 0;
  SharedReference line_;
};

bool is_terminal() {
  const nb::object out = nb::module_::import_("sys").attr("stdout");
  if (out.is_none()) return false;
  return nb::hasattr(out, "isatty") && nb::cast<bool>(out.attr("isatty")());
}

void bind_run(nb::module_& m) {
  nb::class_<PythonRun>(m, "TrainingRun",
                        "The fit() that runs, as callbacks see it: `self.run`.\n\n>>> class "
                        "Stop(cairn.callbacks.Callback):\n...     def on_epoch_end(self, epoch, "
                        "logs):\n...         self.run.stop_training()")
      .def(
          "stop_training", [](PythonRun& run) { run.get().stop_training(); },
          "No step begins after those that have begun.")
      .def_prop_ro(
          "model",
          [](const PythonRun& run) {
            run.get();
            return nb::borrow(run.model->get());
          },
          nb::sig("def model(self) -> Model"), "The model that is trained.")
      .def_prop_ro(
          "is_stopping", [](PythonRun& run) { return run.get().is_stopping(); },
          "Whether stop_training() was called.")
      .def_prop_ro(
          "has_ended", [](PythonRun& run) { return run.get().has_ended(); },
          "Whether training is over in order.")
      .def_prop_ro(
          "epochs", [](PythonRun& run) { return run.get().epochs(); },
          "The number of the last epoch, plus one.")
      .def_prop_ro(
          "steps_per_epoch", [](PythonRun& run) { return run.get().steps_per_epoch(); },
          "How many steps an epoch has.")
      .def_prop_ro(
          "step", [](PythonRun& run) { return run.get().step(); },
          "How many steps of this epoch have been taken.")
      .def_prop_ro(
          "log_names", [](PythonRun& run) { return run.get().log_names(); },
          "The names in the logs of epochs.")
      .def_prop_ro(
          "writes_files", [](PythonRun& run) { return run.get().writes_files(); },
          "Whether this is the one of several processes that writes files.")
      .def(
          "save",
          [](PythonRun& run, const std::string& folder, std::size_t keep_last) {
            TrainingRun& of = run.get();
            return released([&] { return of.save(folder, keep_last); });
          },
          "folder"_a, "keep_last"_a = 1, "Saves a checkpoint; its own folder.")
      .def(
          "back_up",
          [](PythonRun& run, const std::string& folder, std::size_t full_every) {
            run.get().back_up(folder, full_every);
          },
          "folder"_a, "full_every"_a = 1,
          "Saves a checkpoint with the states of all callbacks, in the place of the one before.")
      .def(
          "resume",
          [](PythonRun& run, const std::string& checkpoint) {
            TrainingRun& of = run.get();
            released([&] { of.resume(checkpoint); });
          },
          "checkpoint"_a, "Goes on from a checkpoint; in on_train_begin() only.");
}

}  // namespace

nb::dict dict_of(const Logs& logs) {
  nb::dict made;
  for (const auto& [name, value] : logs) made[name.c_str()] = value;
  return made;
}

// Numbers, functions and texts, which have no methods of callbacks, and take no attribute.
static bool is_plain(nb::handle object) {
  return own_methods(object).empty() && !nb::hasattr(object, "__dict__");
}

std::vector<std::shared_ptr<Callback>> callbacks_of(nb::handle list, nb::handle model) {
  std::vector<std::shared_ptr<Callback>> all;
  if (list.is_none()) return all;
  if (!nb::isinstance<nb::list>(list) && !nb::isinstance<nb::tuple>(list))
    type_error(str("`callbacks` is a list of callbacks, not ", described(list)));
  for (nb::handle each : list) {
    require_object(each, "a callback");
    if (nb::isinstance<CallbackObject>(each))
      all.push_back(nb::cast<const CallbackObject&>(each).get());
    else if (is_plain(each))
      type_error(str("a callback is one of cairn.callbacks, or an object with methods such as ",
                     "on_epoch_end(epoch, logs), not ", described(each)));
    else
      all.push_back(std::make_shared<PythonCallback>(each, model));
  }
  return all;
}

std::shared_ptr<Callback> shown_in_python(std::int64_t epochs, bool bar) {
  nb::object line = bar ? nb::module_::import_("cairn._notebook").attr("line")() : nb::none();
  const bool shown = bar && (!line.is_none() || is_terminal());
  return std::make_shared<Shown>(epochs, shown, std::move(line));
}

void bind_callbacks(nb::module_& m) {
  bind_run(m);
  bind_own_callbacks(m);
}

}  // namespace cairn::python
