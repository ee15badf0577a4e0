// cairn.load_model(): a saved model that predicts.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "data/dataset/stage_spec.h"
#include "interpreter.h"
#include "model/saved/loaded_model.h"
#include "model_data.h"

namespace cairn::python {
namespace {

nb::dict spec_of(const std::vector<ColumnSpec>& columns) {
  nb::dict all;
  for (const ColumnSpec& column : columns)
    all[column.name.c_str()] =
        nb::make_tuple(std::string(dtype_name(column.type.dtype)), tuple_of(column.type.shape));
  return all;
}

bool is_plain(const SavedModel& about, std::size_t place) {
  const std::string& name = about.input.columns[place].name;
  return !name.ends_with(kRowSplits) &&
         std::ranges::none_of(about.input.columns, [&](const ColumnSpec& each) {
           return each.name == name + kRowSplits;
         });
}

// All columns have as many examples as the first.
void check_rows(const SavedModel& about, const Element& batch, const Tensor& next) {
  const std::string& name = about.input.columns[batch.size()].name;
  // Those of a ragged column are told by the column of its splits.
  if (batch.empty() || !is_plain(about, 0) || !is_plain(about, batch.size())) return;
  const auto rows = [](const Tensor& of) { return of.shape().rank() == 0 ? 0 : of.shape()[0]; };
  if (rows(next) != rows(batch.front()))
    throw InvalidArgumentError(str("predict: \"", name, "\" has ", rows(next), " examples, and \"",
                                   about.input.columns.front().name, "\" has ",
                                   rows(batch.front())));
}

// The columns in the model's order and of its types, from arrays by name or from the only one.
Element element_of(const SavedModel& about, nb::handle x) {
  refuse_generator(x, "predict");
  const std::optional<Columns> named = columns_by_name(x);
  if (!named && about.input.columns.size() != 1)
    throw nb::type_error(str("predict: the model \"", about.name, "\" takes ",
                             about.input.columns.size(), " columns: give a dict of arrays by name")
                             .c_str());
  Element batch;
  for (const ColumnSpec& column : about.input.columns) {
    Tensor tensor;
    std::vector<std::string> names;
    if (!named) tensor = tensor_of(x);
    for (const auto& [name, values] : named.value_or(Columns())) {
      if (name == column.name) tensor = values;
      const auto& known = about.input.columns;
      if (std::ranges::none_of(
              known, [&, &name = name](const ColumnSpec& each) { return each.name == name; }))
        names.push_back(name);
    }
    if (!tensor.defined()) {
      const std::string near = nearest_name(column.name, names);
      throw InvalidArgumentError(str("predict: the column \"", column.name, "\" is missing",
                                     near.empty() ? "" : "; is it \"" + near + "\"?"));
    }
    if (tensor.dtype() != column.type.dtype && tensor.dtype() != DType::kString &&
        column.type.dtype != DType::kString)
      tensor = cast(Array(tensor), column.type.dtype).eval();
    check_rows(about, batch, tensor);
    batch.push_back(std::move(tensor));
  }
  return batch;
}

// The array of the only output, or a dict of several by name.
nb::object outputs_around(const SavedModel& about, const std::vector<std::vector<Tensor>>& parts,
                          bool as_table) {
  const nb::object join = nb::module_::import_("numpy").attr("concatenate");
  nb::dict all;
  nb::object only = nb::none();
  std::vector<std::string> names;
  std::vector<nb::object> outputs;
  for (std::size_t i = 0; i < about.outputs.size(); ++i) {
    nb::list arrays;
    for (const auto& part : parts) arrays.append(numpy_of(part[i]));
    only = nb::len(arrays) == 1 ? nb::object(arrays[0]) : join(arrays);
    all[about.outputs[i].name.c_str()] = only;
    names.push_back(about.outputs[i].name);
    outputs.push_back(only);
  }
  if (as_table) return table_of_outputs(names, outputs);
  const bool plain = about.outputs.size() == 1 &&
                     (about.outputs[0].name.empty() || about.outputs[0].name == "output");
  return plain ? only : nb::object(all);
}

nb::object predict(LoadedModel& model, nb::handle x, std::optional<std::int64_t> batch_size,
                   bool as_table) {
  std::vector<std::vector<Tensor>> parts;
  if (std::optional<Dataset> data = dataset_of(x)) {
    PredictOptions options;
    options.batch = batch_size;
    released([&] {
      model.predict(
          *data, [&](const std::vector<Tensor>& outputs) { parts.push_back(outputs); }, options);
    });
    if (parts.empty()) throw InvalidArgumentError("predict: the dataset holds no examples");
  } else {
    const Element batch = element_of(model.about(), x);
    parts.push_back(released([&] { return model.predict(batch); }));
  }
  return outputs_around(model.about(), parts, as_table);
}

Dataset prepare(const LoadedModel& model, nb::handle raw) {
  if (const std::optional<Dataset> data = dataset_of(raw)) return model.prepare(*data);
  const std::optional<Columns> columns = columns_by_name(raw);
  if (!columns)
    throw nb::type_error("prepare: raw columns are a table, a dict of arrays by name or a Dataset");
  return model.prepare(dataset_of_columns(*columns, ""));
}

void bind_about(nb::class_<LoadedModel>& model) {
  model
      .def_prop_ro(
          "name", [](const LoadedModel& of) { return of.about().name; }, "As it was saved.")
      .def_prop_ro(
          "folder", [](const LoadedModel& of) { return of.about().folder; }, "Where it lies.")
      .def_prop_ro(
          "label", [](const LoadedModel& of) { return of.about().label; },
          "The column that it predicts; empty: it was saved without.")
      .def_prop_ro(
          "global_step", [](const LoadedModel& of) { return of.about().global_step; },
          "How many steps it had been trained for.")
      .def_prop_ro(
          "cairn_version", [](const LoadedModel& of) { return of.about().cairn_version; },
          "The version of Cairn that saved it.")
      .def_prop_ro(
          "inputs", [](const LoadedModel& of) { return spec_of(of.about().input.columns); },
          nb::sig("def inputs(self) -> dict[str, tuple[str, tuple[int | None, ...]]]"),
          "The dtype and the shape of each column that it takes.")
      .def_prop_ro(
          "outputs", [](const LoadedModel& of) { return spec_of(of.about().outputs); },
          nb::sig("def outputs(self) -> dict[str, tuple[str, tuple[int | None, ...]]]"),
          "The dtype and the shape of each output.")
      .def_prop_ro(
          "parameters", [](const LoadedModel& of) { return of.about().parameters(); },
          "The elements of all variables.")
      .def_prop_ro(
          "metadata",
          [](const LoadedModel& of) {
            return nb::module_::import_("json").attr("loads")(of.about().metadata);
          },
          nb::sig("def metadata(self) -> dict[str, typing.Any]"), "The program's own.")
      .def_prop_ro(
          "signature", [](const LoadedModel& of) { return signature_text(of.about()); },
          "Inputs, outputs and the number of parameters, a line each.");
}

}  // namespace

void bind_saved_models(nb::module_& m) {
  nb::class_<LoadedModel> model(m, "LoadedModel", R"(A saved model that predicts, in this process.

>>> import tempfile, os
>>> model = cairn.Model(cairn.nn.Dense(1), name="small")
>>> model.build(np.ones((1, 2), "float32"))
>>> folder = model.save(os.path.join(tempfile.mkdtemp(), "small"))
>>> loaded = cairn.load_model(folder)
>>> loaded.predict(np.ones((3, 2), "float32")).shape
(3, 1))");
  model
      .def("predict", &predict, "x"_a, "batch_size"_a = nb::none(), nb::kw_only(),
           "as_table"_a = false,
           nb::sig("def predict(self, x: cairn.typing.DataLike, batch_size: int | None = None, *, "
                   "as_table: bool = False) -> typing.Any"),
           "The outputs for an array, a dict or a table of arrays by column, or a Dataset; NumPy "
           "arrays, or a cairn.Table of them.")
      .def(
          "read",
          [](const LoadedModel& of, std::vector<std::string> files) {
            return of.read(std::move(files));
          },
          "files"_a, "Files of the form that it was trained on, as a Dataset.")
      .def("prepare", &prepare, "raw"_a,
           nb::sig("def prepare(self, raw: cairn.typing.DataLike) -> Dataset"),
           "Examples as the model takes them, from columns of the form that it was trained on: a "
           "table, a dict or a Dataset.")
      .def("examples", &LoadedModel::examples, "files"_a,
           "Examples as the model takes them, from files of the form that it was trained on.")
      .def("__repr__", [](const LoadedModel& of) {
        return str("<cairn.LoadedModel \"", of.about().name, "\" in ", of.about().folder, ">");
      });
  bind_about(model);
  m.def(
      "load_model",
      [](const std::string& folder, const std::string& device) {
        return released([&] { return LoadedModel::load(folder, device); });
      },
      "folder"_a, "device"_a = "cpu:0",
      R"(Reads a model that Model.save(), or `cairn train`, has saved.

>>> cairn.load_model("/none")
Traceback (most recent call last):
    ...
cairn.errors.NotFoundError: ...)");
}

}  // namespace cairn::python
