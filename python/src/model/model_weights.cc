// cairn.Model: its variables, its file, and what is shown of it; History.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "callbacks.h"
#include "html.h"
#include "layer_object.h"
#include "model.h"
#include "model/sidecar_evaluator.h"
#include "model_data.h"
#include "optimizers.h"

namespace cairn::python {
namespace {

// ---- what notebooks show ----

// A line for each layer, if the network is a list of them.
HtmlRows layer_rows(nb::handle network) {
  HtmlRows rows;
  if (!nb::isinstance<LayerObject>(network) || !nb::hasattr(network, "summary")) return rows;
  for (nb::handle line : network.attr("summary")()) {
    const auto text = [&](const char* name) {
      return nb::cast<std::string>(nb::str(nb::object(line[name])));
    };
    rows.push_back({text("name"), text("kind"), text("output"), text("parameters")});
  }
  return rows;
}

bool is_built(const Model& model) {
  try {
    model.variables();
    return true;
  } catch (const FailedPreconditionError&) {
    return false;
  }
}

std::string model_html(PythonModel& self) {
  Model& model = self.get();
  std::string text = str("<p>Model <b>", html_text(model.name()), "</b></p>");
  if (!is_built(model)) return text + "<p>Its variables are made when it is built.</p>";
  const HtmlRows layers = layer_rows(self.network());
  if (!layers.empty()) text += html_table({"layer", "kind", "output", "parameters"}, layers);
  HtmlRows variables;
  std::int64_t trainable = 0, others = 0;
  for (const Variable& each : model.variables()) {
    const std::int64_t count = each.spec().rows() * each.spec().dim();
    (each.spec().trainable ? trainable : others) += count;
    variables.push_back({each.name(), each.shape().to_string(),
                         std::string(dtype_name(each.spec().dtype)), str(count)});
  }
  return str(text, html_table({"variable", "shape", "dtype", "parameters"}, variables),
             "<p>Trainable parameters: ", trainable, ", others: ", others, "</p>");
}

std::string history_html(const History& of) {
  std::vector<std::string> head{"epoch"};
  for (const auto& [name, values] : of.history) head.push_back(name);
  HtmlRows rows;
  for (std::size_t i = 0; i < of.epoch.size(); ++i) {
    rows.push_back({str(of.epoch[i])});
    for (const auto& [name, values] : of.history) {
      char number[40];
      std::snprintf(number, sizeof number, "%.4g", i < values.size() ? values[i] : 0);
      rows.back().push_back(number);
    }
  }
  return html_table(head, rows);
}

void bind_history(nb::module_& m) {
  nb::class_<History>(m, "History", R"(The loss and the metrics of each epoch: what fit() returns.

>>> model = cairn.Model(cairn.nn.Dense(1))
>>> model.compile(loss="mse")
>>> history = model.fit(np.ones((8, 2), "float32"), np.ones(8, "float32"), epochs=2, verbose=0)
>>> history.epoch, list(history.history), len(history["loss"])
([0, 1], ['loss'], 2))")
      .def_ro("epoch", &History::epoch, "The numbers of the epochs, from 0.")
      .def_ro("history", &History::history, "A value per epoch, by name.")
      .def(
          "__getitem__", [](const History& of, const std::string& name) { return of[name]; },
          "name"_a)
      .def("__len__", [](const History& of) { return of.epoch.size(); })
      .def("__repr__",
           [](const History& of) {
             std::string names;
             for (const auto& [name, values] : of.history)
               names += str(names.empty() ? "" : ", ", name);
             return str("<cairn.History of ", of.epoch.size(), " epochs: ", names, ">");
           })
      .def("_repr_html_", &history_html);
}

// ---- building, weights, saving ----

void build(PythonModel& model, nb::handle x) {
  if (std::optional<Dataset> data = dataset_of(x)) return model.prepare(*data);
  ArrayData arrays = array_data(x, nb::none(), nb::none(), "build");
  model.prepare(arrays.dataset().batch(1));
}

SaveModelOptions save_options(const std::string& name, const std::optional<Dataset>& examples,
                              const std::string& label, nb::handle metadata,
                              const std::string& checkpoint) {
  SaveModelOptions options;
  if (!name.empty()) options.name = name;
  if (examples) options.examples = *examples;
  options.label = label;
  options.checkpoint = checkpoint;
  if (!metadata.is_none())
    options.metadata = nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(metadata));
  return options;
}

void set_weights(PythonModel& model, nb::handle weights) {
  Model& of = model.get();
  std::vector<Tensor> all;
  if (!nb::hasattr(weights, "__iter__"))
    type_error(str("set_weights: a list of arrays is wanted, not ", described(weights)));
  const std::vector<Variable>& variables = of.variables();
  for (nb::handle each : weights) {
    Tensor value = tensor_of(each);
    // NumPy makes float64 unless it is told otherwise.
    if (all.size() < variables.size() && value.dtype() != variables[all.size()].spec().dtype)
      value = cast(Array(value), variables[all.size()].spec().dtype).eval();
    all.push_back(std::move(value));
  }
  released([&] { of.set_weights(all); });
}

nb::list get_weights(PythonModel& model) {
  Model& of = model.get();
  nb::list all;
  for (const Tensor& each : released([&] { return of.get_weights(); })) all.append(numpy_of(each));
  return all;
}

std::int64_t run_sidecar(PythonModel& model, const Dataset& batches, const std::string& checkpoints,
                         std::int64_t max_evaluations, double patience, double poll,
                         nb::handle on_evaluation) {
  const auto seconds = [](double count) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(count));
  };
  SidecarOptions options{.checkpoints = checkpoints,
                         .max_evaluations = max_evaluations,
                         .patience = seconds(patience),
                         .poll = seconds(poll)};
  if (!on_evaluation.is_none())
    options.on_evaluation = [function = share(nb::borrow(on_evaluation))](
                                const std::string& checkpoint, const Logs& logs) {
      const Acquired here;
      nb::borrow(function->get())(checkpoint, dict_of(logs));
    };
  Model& of = model.get();
  model.prepare(batches);
  const Dataset data = model.travelling(batches);
  return released([&] { return SidecarEvaluator(of, data, std::move(options)).run(); });
}

}  // namespace

void bind_weights(ModelClass& model) {
  model
      .def("build", &build, "x"_a, nb::sig("def build(self, x: cairn.typing.DataLike) -> None"),
           "Makes the variables for such data without running anything.")
      .def(
          "save",
          [](PythonModel& self, const std::string& folder, const std::string& name,
             const std::optional<Dataset>& examples, const std::string& label, nb::handle metadata,
             const std::string& checkpoint) {
            Model& of = self.get();
            if (folder.empty()) throw InvalidArgumentError("save: the folder has no name");
            const auto options = save_options(name, examples, label, metadata, checkpoint);
            return released([&] { return of.save(folder, options).folder; });
          },
          "folder"_a, nb::kw_only(), "name"_a = "", "examples"_a = nb::none(), "label"_a = "",
          "metadata"_a = nb::none(), "checkpoint"_a = "",
          nb::sig("def save(self, folder: str, *, name: str = '', examples: Dataset | None = None, "
                  "label: str = '', metadata: collections.abc.Mapping[str, typing.Any] | None = "
                  "None, checkpoint: str = '') -> str"),
          "Saves what predict() computes as a folder, which cairn.load_model() reads.")
      .def(
          "summary", [](PythonModel& self) { return self.get().summary(); },
          "The variables with their shapes, as a text.")
      .def_prop_ro(
          "variables",
          [](PythonModel& self) {
            nb::list all;
            const SharedOwner owner = self.owner();
            for (const Variable& each : self.get().variables())
              all.append(nb::cast(OwnedVariable{each, owner}));
            return all;
          },
          nb::sig("def variables(self) -> list[Variable]"),
          "Those that a prediction reads; it was built.")
      .def("get_weights", &get_weights,
           nb::sig("def get_weights(self) -> list[cairn.typing.NDArray]"),
           "The values of the variables, whole.")
      .def("set_weights", &set_weights, "weights"_a,
           nb::sig("def set_weights(self, weights: "
                   "collections.abc.Sequence[cairn.typing.ArrayLike]) -> None"),
           "Gives the variables these values.")
      .def_prop_rw(
          "learning_rate",
          [](PythonModel& self) {
            Model& of = self.get();
            return released([&] { return of.learning_rate(); });
          },
          [](PythonModel& self, float rate) {
            Model& of = self.get();
            released([&] { of.set_learning_rate(rate); });
          },
          "The optimizer's, where a callback or make_rate_adjustable() made it a variable.")
      .def_prop_ro(
          "optimizer", [](PythonModel& self) { return OptimizerObject(self.optimizer(), Kept()); },
          nb::sig("def optimizer(self) -> Optimizer"), "What compile() was given.")
      .def(
          "__call__", [](PythonModel& self, nb::handle x) { return nb::borrow(self.network())(x); },
          "x"_a, nb::sig("def __call__(self, x: typing.Any) -> typing.Any"),
          "Calls the network, as in a step of your own.")
      .def_prop_ro(
          "predict_graph", [](PythonModel& self) { return Graph(self.get().predict_graph()); },
          "What predict() runs, once the model has been built.")
      .def_prop_ro(
          "network", [](PythonModel& self) { return nb::borrow(self.network()); },
          nb::sig("def network(self) -> collections.abc.Callable[..., typing.Any]"),
          "What it was made of.")
      .def_prop_ro("strategy", &PythonModel::strategy,
                   nb::sig("def strategy(self) -> Strategy | None"),
                   "Where it trains; None: in this process, as a program without strategies does.")
      .def(
          "close", &PythonModel::close,
          "Ends a strategy that the model was given by its name, with the servers that run for it.")
      .def_prop_ro(
          "name", [](PythonModel& self) { return self.get().name(); }, "As it was given.")
      .def("run_sidecar", &run_sidecar, "batches"_a, "checkpoints"_a, nb::kw_only(),
           "max_evaluations"_a = 0, "patience"_a = 600.0, "poll"_a = 1.0,
           "on_evaluation"_a = nb::none(),
           nb::sig("def run_sidecar(self, batches: Dataset, checkpoints: str, *, max_evaluations: "
                   "int = 0, patience: float = 600.0, poll: float = 1.0, on_evaluation: "
                   "collections.abc.Callable[[str, dict[str, float]], None] | None = None) -> int"),
           "Judges each new checkpoint of a folder, beside the program that trains; how many.")
      .def("__repr__", [](PythonModel& self) { return str("<cairn.Model \"", self.name(), "\">"); })
      .def("_repr_html_", &model_html);
}

void bind_model(nb::module_& m) {
  bind_history(m);
  ModelClass model(m, "Model", nb::type_slots(collected<PythonModel>()),
                   R"(A network that trains, judges and predicts under every strategy.

The network is a layer, or a function of the features: of the only column, or of a mapping where
there are several or its parameter is called `features`. It returns an array, or a dict of them.

`strategy` is a Strategy or the name of one: "one_device", "mirrored", "central_storage" or
"parameter_server", by default that of the open scope. "parameter_server" starts `ps` parameter
servers and `workers` workers on this machine, two of each by default, which end with the model; a
program under `cairn up`, or another TF_CONFIG, uses that cluster instead.

>>> model = cairn.Model(cairn.nn.Dense(1))
>>> model.compile(optimizer="sgd", loss="mse")
>>> history = model.fit(np.ones((8, 2), "float32"), np.ones(8, "float32"), verbose=0)
>>> model.predict(np.ones((1, 2), "float32")).shape
(1, 1))");
  model.def(
      "__init__",
      [](PythonModel* self, nb::handle network, const std::string& name, nb::handle strategy,
         nb::handle ps, nb::handle workers) {
        const nb::object module = nb::module_::import_("cairn._strategies");
        const bool own = nb::isinstance<nb::str>(strategy);
        new (self) PythonModel(network, name, module.attr("chosen")(strategy, ps, workers), own);
      },
      "network"_a, "name"_a = "model", nb::kw_only(), "strategy"_a = nb::none(),
      "ps"_a = nb::none(), "workers"_a = nb::none(),
      nb::sig("def __init__(self, network: collections.abc.Callable[[typing.Any], typing.Any], "
              "name: str = 'model', *, strategy: cairn.typing.StrategyLike = None, ps: int | None "
              "= None, workers: int | None = None) -> None"));
  bind_compile(model);
  bind_fit(model);
  bind_weights(model);
}

}  // namespace cairn::python
