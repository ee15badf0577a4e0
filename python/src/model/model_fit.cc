// cairn.Model: fit(), evaluate() and predict().
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstring>

#include "callbacks.h"
#include "model.h"
#include "model_data.h"
#include "own_datasets.h"
#include "tables_folder.h"

namespace cairn::python {
namespace {

constexpr std::int64_t kBatchSize = 32;  // of arrays

// ---- fit ----

// Ends fit() in order at the first Ctrl-C; the second gives it up.
class EndsInOrder final : public Callback {
 public:
  void on_train_batch_end(TrainingRun& run, std::int64_t, const Logs&) override {
    if (interrupted) run.stop_training();
  }
  bool interrupted = false;
};

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

// (x, y), (x, y, sample_weight) or a Dataset, as Keras's `validation_data`.
struct Validation {
  std::optional<Dataset> dataset;
  std::optional<ArrayData> arrays;
};
Validation validation_of(nb::handle data) {
  Validation made;
  if (data.is_none()) return made;
  if ((made.dataset = dataset_of(data))) return made;
  const bool several = nb::isinstance<nb::tuple>(data) || nb::isinstance<nb::list>(data);
  if (!several || nb::len(data) < 2 || nb::len(data) > 3)
    type_error(str("validation_data is a Dataset, (x, y), or (x, y, sample_weight), not ",
                   described(data)));
  const nb::object x = data[0], y = data[1];
  const nb::object weights = nb::len(data) == 3 ? nb::object(data[2]) : nb::none();
  made.arrays = array_data(x, y, weights, "fit: validation_data");
  return made;
}

// How many of `count` examples are trained on, the others being held back.
std::int64_t kept_of(std::int64_t count, double split) {
  if (!(split >= 0 && split < 1))
    throw InvalidArgumentError(
        str("fit: validation_split must be at least 0 and below 1, got ", split));
  if (count == 0) throw InvalidArgumentError("fit: there are no examples");
  const auto kept = static_cast<std::int64_t>(std::floor(static_cast<double>(count) * (1 - split)));
  if (kept == 0 || (split > 0 && kept == count))
    throw InvalidArgumentError(str("fit: a validation_split of ", split, " leaves ", kept, " of ",
                                   count, " examples to train on and ", count - kept,
                                   " to judge by: neither can be without"));
  return kept;
}

// Arrays are batched and shuffled as C++ does so for a single one.
Dataset batches_of(ArrayData& data, Validation& validation, FitOptions& options) {
  if (validation.arrays && (!data.weights.empty() || !validation.arrays->weights.empty())) {
    data.add_equal_weights();
    validation.arrays->add_equal_weights();
    if (validation.arrays->weights != data.weights)
      throw InvalidArgumentError("fit: the weights of validation_data are a column \"" +
                                 validation.arrays->weights + "\", and those of the examples \"" +
                                 data.weights + "\": give both as arrays, or by one name");
  }
  const std::int64_t batch = options.batch_size.value_or(kBatchSize);
  Dataset all = data.dataset();
  const std::int64_t kept = kept_of(data.count, options.validation_split);
  if (kept < data.count) {
    if (options.validation_data.defined() || validation.arrays)
      throw InvalidArgumentError("fit: either validation_data or validation_split; both are given");
    options.validation_data = all.skip(kept).batch(batch);
    all = all.take(kept);
  }
  if (validation.arrays) options.validation_data = validation.arrays->dataset().batch(batch);
  if (options.shuffle.value_or(true))
    all = all.shuffle(std::max<std::int64_t>(kept, 1), options.seed.value_or(0));
  options.batch_size.reset();
  options.shuffle.reset();
  options.seed.reset();
  options.validation_split = 0;
  return all.batch(batch);
}

// The arguments of fit() beside its data, in Python's order.
struct FitArguments {
  std::int64_t epochs, initial_epoch, steps_per_epoch;
  std::optional<std::int64_t> batch_size;
  std::optional<bool> shuffle;
  std::optional<std::uint64_t> seed;
  const std::map<std::int64_t, float>& class_weight;
  double validation_split;
  std::int64_t validation_freq, validation_steps;
  int verbose;
};
FitOptions fit_options(const FitArguments& given, nb::handle callbacks, nb::handle model) {
  FitOptions options;
  options.epochs = given.epochs;
  options.initial_epoch = given.initial_epoch;
  options.steps_per_epoch = given.steps_per_epoch;
  options.batch_size = given.batch_size;
  options.shuffle = given.shuffle;
  options.seed = given.seed;
  options.class_weight = given.class_weight;
  options.validation_split = given.validation_split;
  options.validation_freq = given.validation_freq;
  options.validation_steps = given.validation_steps;
  options.callbacks = callbacks_of(callbacks, model);
  options.verbose = Verbose::kSilent;
  if (given.verbose != 0)
    options.callbacks.push_back(shown_in_python(given.epochs, given.verbose == 1));
  return options;
}

History fit(nb::handle self, nb::handle x, nb::handle y, const FitArguments& given,
            nb::handle sample_weight, nb::handle validation_data, nb::handle callbacks) {
  auto& model = nb::cast<PythonModel&>(self);
  FitOptions options = fit_options(given, callbacks, self);
  Validation validation = validation_of(validation_data);
  if (validation.dataset) options.validation_data = *validation.dataset;
  Model& to = model.get();
  std::optional<Dataset> data = dataset_of(x);
  const bool function = !data && PyCallable_Check(x.ptr()) != 0 && y.is_none();
  if (!data && !function) {
    ArrayData arrays = array_data(x, y, sample_weight, "fit");
    const Dataset batches = model.travelling(batches_of(arrays, validation, options));
    options.validation_data = model.travelling(options.validation_data);
    model.prepare(batches, arrays.weights);
    return fitted(options, [&](const FitOptions& own) { return to.fit(batches, own); });
  }
  if (!y.is_none())
    throw nb::type_error("fit: a dataset brings its label, which its maker names; leave y out");
  if (!sample_weight.is_none()) options.sample_weight = tensor_of(sample_weight);  // is refused
  if (validation.arrays)
    options.validation_data =
        validation.arrays->dataset().batch(given.batch_size.value_or(kBatchSize));
  options.validation_data = model.travelling(options.validation_data);
  if (function) {
    const OwnDatasets make(x, "fit: the function", model.owner());
    return make.run([&] {
      return fitted(options, [&](const FitOptions& own) { return to.fit(make.function(), own); });
    });
  }
  model.prepare(*data);
  data = model.travelling(*data);
  return fitted(options, [&](const FitOptions& own) { return to.fit(*data, own); });
}

// ---- evaluate and predict ----

nb::dict evaluate(nb::handle self, nb::handle x, nb::handle y,
                  std::optional<std::int64_t> batch_size, std::int64_t steps,
                  nb::handle sample_weight, nb::handle callbacks) {
  auto& model = nb::cast<PythonModel&>(self);
  EvaluateOptions options;
  options.steps = steps;
  options.callbacks = callbacks_of(callbacks, self);
  Model& of = model.get();
  std::optional<Dataset> data = dataset_of(x);
  std::string weights;
  if (data) {
    options.batch_size = batch_size;
    if (!sample_weight.is_none()) options.sample_weight = tensor_of(sample_weight);  // is refused
    if (!y.is_none())
      throw nb::type_error(
          "evaluate: a dataset brings its label, which its maker names; leave y "
          "out");
  } else {
    const ArrayData arrays = array_data(x, y, sample_weight, "evaluate");
    weights = arrays.weights;
    data = arrays.dataset().batch(batch_size.value_or(kBatchSize));
  }
  model.prepare(*data, weights);
  data = model.travelling(*data);
  return dict_of(released([&] { return of.evaluate(*data, options); }));
}

// The rows of all parts, one behind the other.
Tensor joined(const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return parts.front();
  std::int64_t rows = 0;
  for (const Tensor& part : parts) rows += part.shape()[0];
  Tensor all(parts.front().dtype(), parts.front().shape().with_dim(0, rows));
  std::byte* to = all.mutable_raw();
  for (const Tensor& part : parts) {
    if (part.bytes() > 0) std::memcpy(to, part.raw(), part.bytes());
    to += part.bytes();
  }
  return all;
}

Dataset to_predict(nb::handle x, std::int64_t batch_size) {
  if (std::optional<Dataset> data = dataset_of(x)) return *data;
  return array_data(x, nb::none(), nb::none(), "predict").dataset().batch(batch_size);
}

nb::object predict(PythonModel& model, nb::handle x, std::int64_t batch_size, bool as_table) {
  const Dataset data = to_predict(x, batch_size);
  Model& of = model.get();
  model.prepare(data);
  const Dataset travelled = model.travelling(data);
  std::vector<std::vector<Tensor>> parts;
  const auto take = [&](const std::vector<Tensor>& outputs) {
    parts.resize(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) parts[i].push_back(outputs[i]);
  };
  std::vector<Tensor> all;
  released([&] {
    of.predict(travelled, take);
    for (const auto& each : parts) all.push_back(joined(each));
  });
  if (all.empty()) throw InvalidArgumentError("predict: the dataset holds no examples");
  std::vector<nb::object> leaves;
  for (const Tensor& each : all) leaves.push_back(numpy_of(each));
  return as_table ? table_of_outputs(model.output_names(), leaves) : model.around(leaves);
}

std::int64_t predict_to(PythonModel& model, nb::handle x, const std::string& file,
                        std::int64_t batch_size) {
  const Dataset data = to_predict(x, batch_size);
  Model& of = model.get();
  model.prepare(data);
  const Dataset travelled = model.travelling(data);
  return released([&] { return of.predict_to(travelled, file); });
}

constexpr const char* kFitSignature =
    "def fit(self, x: cairn.typing.DataLike | collections.abc.Callable[[InputContext], Dataset], "
    "y: "
    "cairn.typing.LabelsLike = None, *, epochs: int = 1, initial_epoch: int = 0, steps_per_epoch: "
    "int = 0, batch_size: int | None = None, shuffle: bool | None = None, seed: int | None = None, "
    "sample_weight: cairn.typing.ArrayLike | None = None, class_weight: "
    "collections.abc.Mapping[int, float] = {}, validation_data: Dataset | tuple[typing.Any, ...] | "
    "None = None, validation_split: float = 0.0, validation_freq: int = 1, validation_steps: int = "
    "0, callbacks: collections.abc.Sequence[typing.Any] | None = None, verbose: int = 1) -> "
    "History";
constexpr const char* kFitText = R"(Trains on a dataset of batches, or on arrays.

x: an array, a dict or a table of them by the features' names, a Dataset, or a function that makes
one. y: the labels, the name of their column, or a dict of them by the outputs' names; a dataset
brings its own. sample_weight: one number for each example, or the name of their column.
validation_data: (x, y), (x, y, sample_weight), or a Dataset.
verbose: 0 is silent, 2 writes a line for each epoch, 1 also shows how far the epoch has come.

>>> model = cairn.Model(lambda features: features["a"] * 2.0 + features["b"])
>>> model.compile(loss="mse")
>>> x = {"a": np.ones((4, 1), "float32"), "b": np.ones((4, 1), "float32")}
>>> model.evaluate(x, np.full(4, 3.0, "float32"))
{'loss': 0.0})";

}  // namespace

void bind_fit(ModelClass& model) {
  model
      .def(
          "fit",
          [](nb::handle self, nb::handle x, nb::handle y, std::int64_t epochs,
             std::int64_t initial_epoch, std::int64_t steps_per_epoch,
             std::optional<std::int64_t> batch_size, std::optional<bool> shuffle,
             std::optional<std::uint64_t> seed, nb::handle sample_weight,
             const std::map<std::int64_t, float>& class_weight, nb::handle validation_data,
             double validation_split, std::int64_t validation_freq, std::int64_t validation_steps,
             nb::handle callbacks, int verbose) {
            return fit(self, x, y,
                       {epochs, initial_epoch, steps_per_epoch, batch_size, shuffle, seed,
                        class_weight, validation_split, validation_freq, validation_steps, verbose},
                       sample_weight, validation_data, callbacks);
          },
          "x"_a, "y"_a = nb::none(), nb::kw_only(), "epochs"_a = 1, "initial_epoch"_a = 0,
          "steps_per_epoch"_a = 0, "batch_size"_a = nb::none(), "shuffle"_a = nb::none(),
          "seed"_a = nb::none(), "sample_weight"_a = nb::none(),
          "class_weight"_a = std::map<std::int64_t, float>{}, "validation_data"_a = nb::none(),
          "validation_split"_a = 0.0, "validation_freq"_a = 1, "validation_steps"_a = 0,
          "callbacks"_a = nb::none(), "verbose"_a = 1, nb::sig(kFitSignature), kFitText)
      .def(
          "evaluate", &evaluate, "x"_a, "y"_a = nb::none(), nb::kw_only(),
          "batch_size"_a = nb::none(), "steps"_a = 0, "sample_weight"_a = nb::none(),
          "callbacks"_a = nb::none(),
          nb::sig("def evaluate(self, x: cairn.typing.DataLike, y: cairn.typing.LabelsLike = None, "
                  "*, batch_size: int | None = None, steps: int = 0, sample_weight: "
                  "cairn.typing.ArrayLike | None = None, callbacks: "
                  "collections.abc.Sequence[typing.Any] | None = None) -> dict[str, float]"),
          "The loss and the metrics on data.")
      .def("predict", &predict, "x"_a, "batch_size"_a = 32, nb::kw_only(), "as_table"_a = false,
           nb::sig("def predict(self, x: cairn.typing.DataLike, batch_size: int = 32, *, as_table: "
                   "bool = False) -> typing.Any"),
           "The outputs for all examples, in their order: NumPy arrays in the nest that the "
           "network returns, or a cairn.Table of them.")
      .def("predict_to", &predict_to, "x"_a, "file"_a, "batch_size"_a = 32,
           nb::sig("def predict_to(self, x: cairn.typing.DataLike, file: str, batch_size: int = "
                   "32) -> int"),
           "The same into a file, CSV or JSON lines; how many examples there were.");
}

}  // namespace cairn::python
