// Training: optimizers, losses, metrics, and Model with its callbacks.
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "functions.h"
#include "model/callbacks.h"
#include "model/model.h"
#include "model/saved/loaded_model.h"
#include "nn/nn.h"
#include "values.h"

namespace cairn::python {
namespace {

// ---- optimizers ----

struct OwnedOptimizer {
  std::shared_ptr<nn::Optimizer> optimizer;
};

OwnedOptimizer make_optimizer(const std::string& kind, std::optional<double> learning_rate,
                              const nb::dict& arguments, std::optional<float> clipnorm,
                              std::optional<float> clipvalue,
                              std::optional<float> global_clipnorm) {
  nn::OptimizerSettings settings;
  if (learning_rate) settings.learning_rate = nn::LearningRate(static_cast<float>(*learning_rate));
  settings.clipping = {
      .clipnorm = clipnorm, .clipvalue = clipvalue, .global_clipnorm = global_clipnorm};
  for (const nn::OptimizerKind& each : nn::optimizer_kinds()) {
    if (each.name != kind) continue;
    for (auto [name, value] : arguments) {
      const auto text = nb::cast<std::string>(name);
      if (!each.takes(text)) {
        std::vector<std::string> all = each.numbers;
        all.insert(all.end(), each.flags.begin(), each.flags.end());
        const std::string near = nearest_name(text, all);
        throw nb::type_error(str("the optimizer \"", kind, "\" takes no \"", text, "\"",
                                 near.empty() ? "" : "; did you mean \"" + near + "\"?")
                                 .c_str());
      }
      settings.arguments[text] = nb::cast<double>(value);
    }
    return {each.make(settings)};
  }
  return {nn::make_optimizer(kind)};  // names the nearest
}

// ---- losses ----

nn::Loss loss_of(nb::handle loss) {
  if (loss.is_none()) return {};
  if (nb::isinstance<nn::Loss>(loss)) return nb::cast<const nn::Loss&>(loss);
  if (nb::isinstance<nb::str>(loss)) return nn::Loss(nb::cast<std::string>(loss));
  if (PyCallable_Check(loss.ptr()) == 0)
    throw nb::type_error("a loss is a name, a cairn.Loss, or a function of prediction and label");
  const auto name = nb::cast<std::string>(nb::getattr(loss, "__name__", nb::str("loss")));
  return nn::Loss(
      name, [function = share(nb::borrow(loss))](const Array& prediction, const Array& label) {
        const Acquired here;
        const Tracing tracing;
        return array_of(nb::borrow(function->get())(prediction, label));
      });
}

// ---- callbacks ----

// The fit() that runs, for callbacks in Python; of use while their method runs.
struct PythonRun {
  TrainingRun* run = nullptr;
  TrainingRun& get() const {
    if (run == nullptr)
      throw FailedPreconditionError(
          "the fit() of this run is over: use `run` within a callback's methods");
    return *run;
  }
};

nb::dict dict_of(const Logs& logs) {
  nb::dict made;
  for (const auto& [name, value] : logs) made[name.c_str()] = value;
  return made;
}

// A Python object with the methods that it has.
class PythonCallback final : public Callback {
 public:
  explicit PythonCallback(nb::object callback) : callback_(share(std::move(callback))) {}

  void on_train_begin(TrainingRun& run) override { call(run, "on_train_begin"); }
  void on_train_end(TrainingRun& run, const Logs& logs) override {
    call(run, "on_train_end", logs);
  }
  void on_epoch_begin(TrainingRun& run, std::int64_t epoch) override {
    call(run, "on_epoch_begin", epoch);
  }
  void on_epoch_end(TrainingRun& run, std::int64_t epoch, Logs& logs) override {
    const Acquired here;
    nb::dict told = dict_of(logs);
    if (!call_with(&run, "on_epoch_end", nb::int_(epoch), told)) return;
    for (auto [name, value] : told) logs.set(nb::cast<std::string>(name), nb::cast<double>(value));
  }
  void on_train_batch_end(TrainingRun& run, std::int64_t step, const Logs& logs) override {
    call(run, "on_train_batch_end", step, logs);
  }
  void on_test_begin() override {
    const Acquired here;
    call_with(nullptr, "on_test_begin");
  }
  void on_test_end(const Logs& logs) override {
    const Acquired here;
    call_with(nullptr, "on_test_end", dict_of(logs));
  }

 private:
  template <typename... A>
  bool call_with(TrainingRun* run, const char* name, A&&... arguments) {
    const nb::object method = nb::getattr(callback_->get(), name, nb::none());
    if (method.is_none()) return false;
    PythonRun told{run};
    nb::object object = nb::cast(&told, nb::rv_policy::copy);
    nb::setattr(callback_->get(), "run", object);
    struct Over {
      PythonRun& run;
      ~Over() { run.run = nullptr; }
    } over{nb::cast<PythonRun&>(object)};
    method(std::forward<A>(arguments)...);
    return true;
  }
  void call(TrainingRun& run, const char* name) {
    const Acquired here;
    call_with(&run, name);
  }
  void call(TrainingRun& run, const char* name, const Logs& logs) {
    const Acquired here;
    call_with(&run, name, dict_of(logs));
  }
  void call(TrainingRun& run, const char* name, std::int64_t number) {
    const Acquired here;
    call_with(&run, name, nb::int_(number));
  }
  void call(TrainingRun& run, const char* name, std::int64_t number, const Logs& logs) {
    const Acquired here;
    call_with(&run, name, nb::int_(number), dict_of(logs));
  }

  SharedReference callback_;
};

// Ends fit() in order at the first Ctrl-C; the second gives it up.
class EndsInOrder final : public Callback {
 public:
  void on_train_batch_end(TrainingRun& run, std::int64_t, const Logs&) override {
    if (interrupted) run.stop_training();
  }
  bool interrupted = false;
};

std::vector<std::shared_ptr<Callback>> callbacks_of(const nb::object& list) {
  std::vector<std::shared_ptr<Callback>> all;
  if (list.is_none()) return all;
  for (nb::handle each : list) {
    if (nb::isinstance<Callback>(each))
      all.push_back(nb::cast<std::shared_ptr<Callback>>(each));
    else
      all.push_back(std::make_shared<PythonCallback>(nb::borrow(each)));
  }
  return all;
}

// ---- the model ----

class PythonModel {
 public:
  PythonModel(nb::object network, const std::string& name)
      : network_(share(std::move(network))), owner_(owner_of(current_variable_creator())) {
    const std::string title = name;
    model_ = std::make_unique<Model>(
        [network = network_, title](const Features& features) {
          const Acquired here;
          const Tracing tracing;
          const auto& columns = features.spec().columns;
          const nb::object given =
              columns.size() == 1 ? nb::cast(features[columns[0].name]) : nb::cast(features);
          Nest shape;
          return outputs_of(nb::borrow(network->get())(given), title, &shape);
        },
        name);
  }
  Model& get() {
    if (owner_ != nullptr) owner_->strategy();
    if (model_ == nullptr) throw FailedPreconditionError("the model was let go of");
    return *model_;
  }
  int traverse(visitproc visit, void* argument) const {
    return network_ == nullptr ? 0 : visit(network_->get().ptr(), argument);
  }
  void clear() {
    model_.reset();
    network_.reset();
    drop_references();
  }

 private:
  SharedReference network_;
  SharedOwner owner_;  // goes after the model
  std::unique_ptr<Model> model_;
};

int traverse_model(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<PythonModel>(self)->traverse(visit, arg) : 0;
}
int clear_model(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<PythonModel>(self)->clear();
  return 0;
}
PyType_Slot model_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_model)},
                             {Py_tp_clear, reinterpret_cast<void*>(clear_model)},
                             {0, nullptr}};

void compile(PythonModel& model, nb::object optimizer, nb::object loss, nb::object metrics,
             std::int64_t steps_per_execution, const std::string& sample_weight) {
  CompileOptions options;
  if (nb::isinstance<nb::str>(optimizer))
    options.optimizer = OptimizerChoice(nb::cast<std::string>(optimizer));
  else if (!optimizer.is_none())
    options.optimizer = OptimizerChoice(nb::cast<OwnedOptimizer&>(optimizer).optimizer);
  options.loss = loss_of(loss);
  if (!metrics.is_none())
    for (nb::handle each : metrics) options.metrics.emplace_back(nb::cast<std::string>(each));
  options.steps_per_execution = steps_per_execution;
  options.sample_weight = sample_weight;
  model.get().compile(std::move(options));
}

// fit(), with a first Ctrl-C that ends it in order: what callbacks save at the end is saved.
template <typename Fit>
History fitted(FitOptions& options, Fit fit) {
  auto ends = std::make_shared<EndsInOrder>();
  options.callbacks.push_back(ends);
  History history = released([&] {
    const LookUp look_up([&] {
      const Acquired here;
      if (PyErr_CheckSignals() == 0) return;
      if (ends->interrupted || !PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        nb::raise_python_error();
      PyErr_Clear();
      ends->interrupted = true;
    });
    return fit(options);
  });
  if (ends->interrupted) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    nb::raise_python_error();
  }
  return history;
}

History fit(PythonModel& model, nb::object x, nb::object y, std::int64_t epochs,
            std::int64_t initial_epoch, std::int64_t steps_per_epoch,
            std::optional<std::int64_t> batch_size, std::optional<bool> shuffle,
            std::optional<std::uint64_t> seed, nb::object sample_weight,
            const std::map<std::int64_t, float>& class_weight, nb::object validation_data,
            double validation_split, nb::object callbacks, int verbose) {
  FitOptions options;
  options.epochs = epochs;
  options.initial_epoch = initial_epoch;
  options.steps_per_epoch = steps_per_epoch;
  options.batch_size = batch_size;
  options.shuffle = shuffle;
  options.seed = seed;
  if (!sample_weight.is_none()) options.sample_weight = tensor_of(sample_weight);
  options.class_weight = class_weight;
  if (!validation_data.is_none()) options.validation_data = nb::cast<Dataset>(validation_data);
  options.validation_split = validation_split;
  options.callbacks = callbacks_of(callbacks);
  options.verbose = verbose == 0 ? Verbose::kSilent : Verbose::kEpochs;
  Model& to = model.get();
  if (nb::isinstance<Dataset>(x)) {
    const Dataset data = nb::cast<Dataset>(x);
    return fitted(options, [&](const FitOptions& own) { return to.fit(data, own); });
  }
  const Tensor features = tensor_of(x), label = tensor_of(y);
  return fitted(options, [&](const FitOptions& own) { return to.fit(features, label, own); });
}

nb::dict evaluate(PythonModel& model, nb::object x, nb::object y,
                  std::optional<std::int64_t> batch_size, std::int64_t steps,
                  nb::object callbacks) {
  EvaluateOptions options;
  options.batch_size = batch_size;
  options.steps = steps;
  options.callbacks = callbacks_of(callbacks);
  Model& of = model.get();
  if (nb::isinstance<Dataset>(x)) {
    const Dataset data = nb::cast<Dataset>(x);
    return dict_of(released([&] { return of.evaluate(data, options); }));
  }
  const Tensor features = tensor_of(x), label = tensor_of(y);
  return dict_of(released([&] { return of.evaluate(features, label, options); }));
}

nb::object predict(PythonModel& model, nb::object x, std::int64_t batch_size) {
  Model& of = model.get();
  if (nb::isinstance<Dataset>(x)) {
    const Dataset data = nb::cast<Dataset>(x);
    return numpy_of(released([&] { return of.predict(data); }));
  }
  const Tensor features = tensor_of(x);
  return numpy_of(released([&] { return of.predict(features, batch_size); }));
}

void bind_model(nb::module_& m) {
  nb::class_<History>(m, "History", "The loss and the metrics of each epoch.")
      .def_ro("epoch", &History::epoch)
      .def_ro("history", &History::history)
      .def("__getitem__", [](const History& of, const std::string& name) { return of[name]; });
  nb::class_<PythonRun>(m, "TrainingRun", "The fit() that runs, as callbacks see it: `self.run`.")
      .def(
          "stop_training", [](PythonRun& run) { run.get().stop_training(); },
          "No step begins after those that have begun.")
      .def_prop_ro("epochs", [](PythonRun& run) { return run.get().epochs(); })
      .def_prop_ro("step", [](PythonRun& run) { return run.get().step(); })
      .def(
          "save",
          [](PythonRun& run, const std::string& folder) {
            TrainingRun& of = run.get();
            return released([&] { return of.save(CheckpointPolicy{.folder = folder}); });
          },
          "folder"_a);
  nb::class_<PythonModel>(m, "Model", nb::type_slots(model_slots),
                          R"(A network that trains, judges and predicts under every strategy.

>>> model = cairn.Model(cairn.nn.Dense(1))
>>> model.compile(optimizer="sgd", loss="mse")
>>> history = model.fit(np.ones((8, 2), "float32"), np.ones(8, "float32"), verbose=0)
>>> model.predict(np.ones((1, 2), "float32")).shape
(1, 1))")
      .def(
          "__init__",
          [](PythonModel* self, nb::object network, const std::string& name) {
            new (self) PythonModel(std::move(network), name);
          },
          "network"_a, "name"_a = "model",
          nb::sig("def __init__(self, network: collections.abc.Callable[[typing.Any], typing.Any], "
                  "name: str = "
                  "'model') -> None"))
      .def("compile", &compile, "optimizer"_a = nb::none(), "loss"_a = nb::none(),
           "metrics"_a = nb::none(), nb::kw_only(), "steps_per_execution"_a = 1,
           "sample_weight"_a = "",
           nb::sig("def compile(self, optimizer: str | Optimizer | None = None, loss: str | Loss | "
                   "collections.abc.Callable[[Array, Array], Array] | None = None, metrics: "
                   "collections.abc.Sequence[str] | None = None, *, steps_per_execution: int = 1, "
                   "sample_weight: str = '') -> None"),
           "How it is trained and judged.")
      .def("fit", &fit, "x"_a, "y"_a = nb::none(), nb::kw_only(), "epochs"_a = 1,
           "initial_epoch"_a = 0, "steps_per_epoch"_a = 0, "batch_size"_a = nb::none(),
           "shuffle"_a = nb::none(), "seed"_a = nb::none(), "sample_weight"_a = nb::none(),
           "class_weight"_a = std::map<std::int64_t, float>{}, "validation_data"_a = nb::none(),
           "validation_split"_a = 0.0, "callbacks"_a = nb::none(), "verbose"_a = 1,
           nb::sig("def fit(self, x: Dataset | cairn.typing.ArrayLike, y: cairn.typing.ArrayLike | "
                   "None = None, *, "
                   "epochs: int = 1, initial_epoch: int = 0, steps_per_epoch: int = 0, batch_size: "
                   "int | None = None, "
                   "shuffle: bool | None = None, seed: int | None = None, sample_weight: "
                   "cairn.typing.ArrayLike | "
                   "None = None, class_weight: collections.abc.Mapping[int, float] = {}, "
                   "validation_data: Dataset | "
                   "None = None, validation_split: float = 0.0, callbacks: "
                   "collections.abc.Sequence[typing.Any] | "
                   "None = None, verbose: int = 1) -> History"),
           "Trains on a dataset of batches, or on arrays.")
      .def("evaluate", &evaluate, "x"_a, "y"_a = nb::none(), nb::kw_only(),
           "batch_size"_a = nb::none(), "steps"_a = 0, "callbacks"_a = nb::none(),
           nb::sig("def evaluate(self, x: Dataset | cairn.typing.ArrayLike, y: "
                   "cairn.typing.ArrayLike | None = None, "
                   "*, batch_size: int | None = None, steps: int = 0, callbacks: "
                   "collections.abc.Sequence[typing.Any] | None = None) -> dict[str, float]"),
           "The loss and the metrics on data.")
      .def(
          "predict", &predict, "x"_a, "batch_size"_a = 32,
          nb::sig("def predict(self, x: Dataset | cairn.typing.ArrayLike, batch_size: int = 32) -> "
                  "cairn.typing.NDArray"),
          "The outputs for all examples, in their order.")
      .def(
          "save",
          [](PythonModel& model, const std::string& folder) {
            Model& of = model.get();
            return released([&] { return of.save(folder).folder; });
          },
          "folder"_a, "Saves what predict() computes; cairn.load_model() reads it.")
      .def("summary", [](PythonModel& model) { return model.get().summary(); })
      .def(
          "get_weights",
          [](PythonModel& model) {
            Model& of = model.get();
            nb::list all;
            for (const Tensor& each : released([&] { return of.get_weights(); }))
              all.append(numpy_of(each));
            return all;
          },
          nb::sig("def get_weights(self) -> list[cairn.typing.NDArray]"))
      .def(
          "set_weights",
          [](PythonModel& model, nb::object weights) {
            Model& of = model.get();
            std::vector<Tensor> all;
            for (nb::handle each : weights) all.push_back(tensor_of(each));
            released([&] { of.set_weights(all); });
          },
          "weights"_a,
          nb::sig("def set_weights(self, weights: "
                  "collections.abc.Sequence[cairn.typing.ArrayLike]) -> None"))
      .def_prop_ro("name", [](PythonModel& model) { return model.get().name(); });
}

}  // namespace

void bind_training(nb::module_& m) {
  nb::class_<OwnedOptimizer>(m, "Optimizer", "How gradients change variables.")
      .def(
          "__init__",
          [](OwnedOptimizer* self, const std::string& kind, std::optional<double> learning_rate,
             std::optional<float> clipnorm, std::optional<float> clipvalue,
             std::optional<float> global_clipnorm, nb::kwargs arguments) {
            new (self) OwnedOptimizer(make_optimizer(kind, learning_rate, arguments, clipnorm,
                                                     clipvalue, global_clipnorm));
          },
          "kind"_a, "learning_rate"_a = nb::none(), nb::kw_only(), "clipnorm"_a = nb::none(),
          "clipvalue"_a = nb::none(), "global_clipnorm"_a = nb::none(), "arguments"_a,
          nb::sig("def __init__(self, kind: str, learning_rate: float | None = None, *, clipnorm: "
                  "float | None = "
                  "None, clipvalue: float | None = None, global_clipnorm: float | None = None, "
                  "**arguments: float) -> None"))
      .def(
          "minimize",
          [](const OwnedOptimizer& self, const Array& loss) {
            recorded_or_run([&] { self.optimizer->minimize(loss); });
          },
          "loss"_a, "Changes every trainable variable that the loss depends on.");
  nb::list kinds;
  for (const nn::OptimizerKind& each : nn::optimizer_kinds()) kinds.append(each.name);
  m.attr("_optimizer_kinds") = nb::tuple(kinds);
  nb::class_<nn::Loss>(m, "Loss", "A loss by its name in Keras.")
      .def(
          "__init__",
          [](nn::Loss* self, const std::string& name, bool from_logits, float label_smoothing,
             float delta) {
            new (self) nn::Loss(name, nn::LossOptions{from_logits, label_smoothing, delta});
          },
          "name"_a, nb::kw_only(), "from_logits"_a = false, "label_smoothing"_a = 0.0f,
          "delta"_a = 1.0f)
      .def(
          "__call__",
          [](const nn::Loss& loss, ArrayLike prediction, ArrayLike label) {
            const Array y = prediction, t = label;
            return loss(y, t);
          },
          "prediction"_a, "label"_a, "One value for each example.")
      .def_prop_ro("name", &nn::Loss::name);
  nb::class_<Callback>(m, "_Callback");
  bind_model(m);
}

}  // namespace cairn::python
