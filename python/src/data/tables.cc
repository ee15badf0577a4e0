#include "tables.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>

#include "arrow_columns.h"
#include "core/base/error.h"
#include "core/tensor/element.h"
#include "data/dataset/stage_spec.h"
#include "refusing.h"
#include "table_object.h"
#include "values.h"

namespace cairn::python {
namespace {

bool is_frame_of_pandas(nb::handle object) {
  const nb::dict modules =
      nb::borrow<nb::dict>(nb::object(nb::module_::import_("sys").attr("modules")));
  if (!modules.contains("pandas")) return false;
  return nb::isinstance(object, nb::object(modules["pandas"]).attr("DataFrame"));
}

bool has(nb::handle object, const char* name) { return nb::hasattr(object, name); }

std::string name_of_type(nb::handle object) {
  return nb::cast<std::string>(nb::handle(object.type()).attr("__name__"));
}

Columns columns_of_stream(nb::handle object, const TableOptions& options, const std::string& name,
                          TableFacts* facts) {
  auto* batches = read_arrow_stream(object).release();
  // Batches go with the GIL held, whatever thread drops them: their producer may run Python.
  const nb::capsule capsule(batches,
                            [](void* held) noexcept { delete static_cast<ArrowBatches*>(held); });
  const SharedReference owner = share(capsule);
  return released([&] { return columns_of_arrow(*batches, owner, options, name, facts); });
}

nb::dict dict_of(const NullValues& values) {
  nb::dict made;
  for (const auto& [name, value] : values)
    made[name.c_str()] = std::visit(
        [](const auto& each) -> nb::object {
          using T = std::remove_cvref_t<decltype(each)>;
          if constexpr (std::is_same_v<T, std::monostate>)
            return nb::none();
          else if constexpr (std::is_same_v<T, EmptyList>)
            return nb::list();
          else
            return nb::cast(each);
        },
        value);
  return made;
}

// Column by column: cairn/_tables.py makes NumPy's arrays of them, or has them read from Arrow.
Columns columns_of_pandas(nb::handle frame, const TableOptions& options, TableFacts* facts) {
  const nb::object module = nb::module_::import_("cairn._tables");
  const auto names = nb::cast<std::vector<std::string>>(module.attr("names")(frame));
  const std::vector<std::string> wanted = chosen_columns(names, options, facts);
  const nb::object defaults = dict_of(options.defaults);
  Columns made;
  for (const std::string& name : wanted) {
    const auto place = std::ranges::find(names, name) - names.begin();
    const bool missing = options.nulls_are_missing && name != options.complete;
    const nb::object parts =
        module.attr("column")(frame, place, name, missing ? nb::object(nb::none()) : defaults);
    const nb::object values = parts[0], splits = parts[1];
    if (facts != nullptr && nb::cast<bool>(module.attr("is_category")(frame, place)))
      facts->categories.push_back(name);
    if (nb::cast<bool>(parts[2])) {
      for (auto& each : columns_of_stream(values, options, name, facts))
        made.push_back(std::move(each));
      continue;
    }
    // Frames may change in place, whatever their arrays say.
    const bool own = nb::cast<bool>(parts[3]) || !options.copy;
    made.emplace_back(name, tensor_of(own ? values : nb::object(values.attr("copy")()), true));
    if (!splits.is_none()) made.emplace_back(name + "/row_splits", tensor_of(splits, true));
  }
  return made;
}

// Those of a cairn.Table, which has no nulls.
Columns columns_of_own(const Table& table, const TableOptions& options, TableFacts* facts) {
  const Columns& all = table.shared->columns;
  std::vector<std::string> names;
  for (const auto& [name, values] : all)
    if (!name.ends_with(kRowSplits)) names.push_back(name);
  Columns made;
  for (const std::string& each : chosen_columns(names, options, facts))
    for (const auto& column : all)
      if (column.first == each || column.first == each + kRowSplits) made.push_back(column);
  return made;
}

}  // namespace

void refuse_null(const std::string& column, std::int64_t row) {
  throw InvalidArgumentError(str("column \"", column, "\", row ", row,
                                 ": the value is missing; say what stands for it by defaults={\"",
                                 column, "\": ...}, or fill it in the table"));
}

Tensor null_tensor(const std::string& column, DType dtype, const NullValue& value) {
  const auto refuse = [&](const char* what) -> Tensor {
    throw InvalidArgumentError(str("the default of column \"", column, "\" is ", what,
                                   ", and the column is ", dtype_name(dtype)));
  };
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (dtype != DType::kString) return refuse("a text");
    return Tensor::strings({}, std::vector<std::string>{*text});
  }
  double number = 0;
  if (const auto* flag = std::get_if<bool>(&value)) {
    if (dtype == DType::kBool) return Tensor::scalar(*flag);
    return refuse("a bool");
  }
  if (dtype == DType::kString || dtype == DType::kBool) return refuse("a number");
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    if (dtype == DType::kInt64) return Tensor::scalar(*whole);
    number = static_cast<double>(*whole);
  } else if (const auto* real = std::get_if<double>(&value)) {
    number = *real;
  } else {
    return refuse("an empty list");
  }
  if (dtype == DType::kFloat32) return Tensor::scalar(static_cast<float>(number));
  if (dtype == DType::kFloat64) return Tensor::scalar(number);
  if (dtype == DType::kFloat16) {
    Tensor half(DType::kFloat16, {});
    const std::uint16_t bits = to_float16(static_cast<float>(number));
    std::memcpy(half.mutable_raw(), &bits, sizeof bits);
    return half;
  }
  if (std::floor(number) != number) return refuse("no whole number");
  const double least = dtype == DType::kUint8 ? 0 : dtype == DType::kInt32 ? -2147483648.0 : -9e18;
  const double most = dtype == DType::kUint8 ? 255 : dtype == DType::kInt32 ? 2147483647.0 : 9e18;
  if (number < least || number > most) return refuse("beyond its numbers");
  if (dtype == DType::kUint8) return Tensor::scalar(static_cast<std::uint8_t>(number));
  if (dtype == DType::kInt32) return Tensor::scalar(static_cast<std::int32_t>(number));
  return Tensor::scalar(static_cast<std::int64_t>(number));
}

std::vector<std::string> chosen_columns(const std::vector<std::string>& names,
                                        const TableOptions& options, TableFacts* facts) {
  if (facts != nullptr) facts->names = names;
  const auto wanted = [&](const std::string& name, const char* where) {
    if (std::ranges::find(names, name) != names.end()) return;
    const std::string near = nearest_name(name, names);
    throw InvalidArgumentError(str("the table has no column \"", name, "\", which ", where,
                                   " names",
                                   near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  };
  std::vector<std::string> chosen = options.columns ? *options.columns : names;
  std::erase_if(chosen, [&](const std::string& name) {
    return std::ranges::find(options.without, name) != options.without.end();
  });
  for (const std::string& name : chosen) {
    wanted(name, "columns");
    if (std::ranges::count(names, name) > 1)
      throw InvalidArgumentError(
          str("the table has several columns of the name \"", name, "\": rename them"));
    if (std::ranges::count(chosen, name) > 1)
      throw InvalidArgumentError(str("columns names \"", name, "\" twice"));
  }
  for (const auto& [name, value] : options.defaults) wanted(name, "defaults");
  return chosen;
}

NullValues null_values_of(nb::handle defaults) {
  NullValues made;
  if (defaults.is_none()) return made;
  if (!nb::isinstance<nb::dict>(defaults))
    type_error(
        str("defaults is a dict of values by the names of columns, not ", described(defaults)));
  for (auto [key, value] : nb::borrow<nb::dict>(defaults)) {
    if (!nb::isinstance<nb::str>(key))
      type_error(str("defaults are by the names of columns, not by ", described(key)));
    const auto name = nb::cast<std::string>(key);
    if (nb::isinstance<nb::str>(value)) {
      made.emplace_back(name, nb::cast<std::string>(value));
    } else if ((nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) &&
               nb::len(value) == 0) {
      made.emplace_back(name, EmptyList{});
    } else {
      // NumPy's numbers, too.
      const nb::object plain =
          has(value, "item") ? nb::object(value.attr("item")()) : nb::borrow(value);
      if (PyBool_Check(plain.ptr()))
        made.emplace_back(name, plain.ptr() == Py_True);
      else if (PyLong_Check(plain.ptr()))
        made.emplace_back(name, nb::cast<std::int64_t>(plain));
      else if (PyFloat_Check(plain.ptr()))
        made.emplace_back(name, PyFloat_AsDouble(plain.ptr()));
      else
        throw nb::type_error(str("the default of column \"", name, "\" is a ", name_of_type(value),
                                 ": a number, a bool, a text or [] is wanted")
                                 .c_str());
    }
  }
  return made;
}

bool is_table(nb::handle object) {
  if (is_frame_of_pandas(object)) return true;
  if (!has(object, "__arrow_c_stream__")) return false;
  // A column by itself is an array.
  return !has(object, "__array__") || has(object, "columns") || has(object, "column_names") ||
         has(object, "schema");
}

Columns columns_of_table(nb::handle table, const TableOptions& options, TableFacts* facts) {
  const struct LetsGo {
    ~LetsGo() { drop_references(); }  // batches that no tensor needs go at once
  } at_the_end;
  Columns made;
  if (nb::isinstance<Table>(table)) {
    made = columns_of_own(nb::cast<const Table&>(table), options, facts);
  } else if (is_frame_of_pandas(table)) {
    made = columns_of_pandas(table, options, facts);
  } else if (has(table, "__arrow_c_stream__")) {
    made = columns_of_stream(table, options, "", facts);
  } else {
    const bool lazy = has(table, "collect");
    throw nb::type_error(
        str("a ", name_of_type(table), " is no table",
            lazy ? ": pass what its collect() gives"
                 : ": a DataFrame of pandas or polars, or whatever else has __arrow_c_stream__, "
                   "is wanted; of arrays by name make a dataset by from_tensor_slices()")
            .c_str());
  }
  return made;
}

void bind_tables(nb::module_& m) {
  m.def("_refuse_null", &refuse_null, "column"_a, "row"_a,
        nb::sig("def _refuse_null(column: str, row: int) -> typing.NoReturn"));
  m.def(
      "_null_value",
      [](const std::string& column, const std::string& dtype, nb::handle value) {
        nb::dict named;
        named[column.c_str()] = value;
        const NullValues all = null_values_of(named);
        return numpy_of(null_tensor(column, parse_dtype(dtype), all.at(0).second));
      },
      "column"_a, "dtype"_a, "value"_a,
      nb::sig("def _null_value(column: str, dtype: str, value: typing.Any) -> typing.Any"));
}

}  // namespace cairn::python
