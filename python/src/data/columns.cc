// Columns of Python's arrays, and datasets of columns.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "core/base/error.h"
#include "data/dataset/stage_spec.h"
#include "refusing.h"
#include "tables.h"
#include "values.h"

namespace cairn::python {
namespace {

bool is_ragged(nb::handle object) {
  return nb::isinstance<nb::tuple>(object) && nb::hasattr(object, "row_splits") &&
         nb::hasattr(object, "values");
}

void check_splits(const std::string& name, const Tensor& values, const Tensor& splits) {
  const auto refuse = [&](const char* what) {
    throw InvalidArgumentError(str("the ragged column \"", name, "\": ", what));
  };
  if (values.shape().rank() != 1) refuse("its values have one axis");
  if (splits.shape().rank() != 1 || splits.elements() < 1)
    refuse("its row_splits are one number more than it has rows");
  const auto all = splits.values<std::int64_t>();
  if (all.front() != 0 || all.back() != values.elements() || !std::ranges::is_sorted(all))
    refuse("its row_splits ascend from 0 to the number of its values");
}

void add_ragged(Columns& out, const std::string& name, nb::handle ragged, bool share) {
  const Tensor values = tensor_of(ragged.attr("values"), share);
  Tensor splits = tensor_of(ragged.attr("row_splits"), share);
  if (splits.dtype() == DType::kInt32) splits = cast(Array(splits), DType::kInt64).eval();
  if (splits.dtype() != DType::kInt64)
    throw InvalidArgumentError(str("the ragged column \"", name,
                                   "\": its row_splits are int64, not ",
                                   dtype_name(splits.dtype())));
  check_splits(name, values, splits);
  out.emplace_back(name, values);
  out.emplace_back(name + kRowSplits, splits);
}

// Rows of columns some of which are ragged, one after another.
//   Thread  values that are shared and never change; any.
class Rows {
 public:
  Rows(Columns columns, const std::string& label) : columns_(std::move(columns)) {
    spec_.label = label;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto& [name, values] = columns_[i];
      if (i + 1 < columns_.size() && columns_[i + 1].first == name + kRowSplits) {
        cairn::add_ragged(spec_, name, values.dtype());
        count(name, columns_[++i].second.elements() - 1);
      } else {
        if (values.shape().rank() == 0)
          throw InvalidArgumentError(
              str("column \"", name, "\" is a single value: a row for each example is wanted"));
        spec_.columns.push_back({name, {values.dtype(), values.shape().without_front()}});
        count(name, values.shape()[0]);
      }
    }
  }
  const ElementSpec& spec() const { return spec_; }
  const Columns& columns() const { return columns_; }

  std::optional<Element> row(std::int64_t at) const {
    if (at >= rows_) return {};
    Element element;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Tensor& values = columns_[i].second;
      if (spec_.columns[i].type.shape == Shape{Shape::kUnknown}) {
        const auto splits = columns_[++i].second.values<std::int64_t>();
        const auto place = static_cast<std::size_t>(at);
        const std::int64_t begin = splits[place], end = splits[place + 1];
        element.push_back(values.rows(begin, end));
        const std::int64_t own[] = {0, end - begin};
        element.push_back(Tensor::of<std::int64_t>({2}, own));
      } else {
        element.push_back(values.rows(at, at + 1).reshaped(values.shape().without_front()));
      }
    }
    return element;
  }

 private:
  void count(const std::string& name, std::int64_t rows) {
    if (spec_.columns.front().name == name) rows_ = rows;
    if (rows != rows_)
      throw InvalidArgumentError(str("column \"", name, "\" has ", rows, " rows, and \"",
                                     spec_.columns.front().name, "\" has ", rows_));
  }

  Columns columns_;
  ElementSpec spec_;
  std::int64_t rows_ = 0;
};

// Which generators are of rows, so that a dataset of them can be written to files.
class KnownRows {
 public:
  void add(const void* generator, const std::shared_ptr<const Rows>& rows) {
    const std::lock_guard hold(mutex_);
    std::erase_if(known_, [](const auto& each) { return each.second.expired(); });
    known_[generator] = rows;
  }
  std::shared_ptr<const Rows> find(const void* generator) {
    const std::lock_guard hold(mutex_);
    const auto found = known_.find(generator);
    return found == known_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;  // known_
  std::map<const void*, std::weak_ptr<const Rows>> known_;
};
KnownRows& known_rows() {
  static KnownRows& only = *new KnownRows;
  return only;
}

}  // namespace

Columns columns_of_mapping(nb::handle columns, bool share) {
  Columns all;
  if (!nb::hasattr(columns, "keys"))
    type_error(str("columns are a dict of arrays by name, not ", described(columns)));
  for (nb::handle key : nb::iter(columns)) {
    if (!nb::isinstance<nb::str>(key))
      type_error(str("columns are named by texts, not by ", described(key)));
    const auto name = nb::cast<std::string>(key);
    const nb::object values = nb::object(columns[key]);
    if (is_ragged(values)) {
      add_ragged(all, name, values, share);
      continue;
    }
    at_place([&] { return str("column \"", name, "\""); },
             [&] { all.emplace_back(name, tensor_of(values, share)); });
  }
  return all;
}

Columns columns_of_slices(nb::handle data, std::string* label, bool share) {
  if (is_table(data)) return columns_of_table(data, {.copy = !share});
  if (nb::isinstance<nb::dict>(data) ||
      (nb::hasattr(data, "keys") && !nb::hasattr(data, "__array__")))
    return columns_of_mapping(data, share);
  if (!nb::isinstance<nb::tuple>(data) || is_ragged(data)) {
    nb::dict only;
    only["x"] = data;
    return columns_of_mapping(only, share);
  }
  const nb::tuple parts = nb::borrow<nb::tuple>(data);
  if (parts.size() < 2 || parts.size() > 3)
    throw nb::type_error(
        "a tuple of data is (x, y) or (x, y, sample_weight); columns by name are a dict");
  Columns all = columns_of_slices(parts[0], label, share);
  if (label->empty()) *label = "y";
  const auto add = [&](const std::string& name, nb::handle values) {
    for (const auto& [other, tensor] : all)
      if (other == name)
        throw InvalidArgumentError(
            str("x has a column \"", name, "\" already: say the label's name by label=\"...\""));
    all.emplace_back(name, tensor_of(values, share));
  };
  add(*label, parts[1]);
  if (parts.size() == 3 && !parts[2].is_none()) add("sample_weight", parts[2]);
  return all;
}

Dataset dataset_of_columns(Columns columns, const std::string& label) {
  if (std::ranges::none_of(columns,
                           [](const auto& each) { return each.first.ends_with(kRowSplits); }))
    return Dataset::from_tensor_slices(std::move(columns), label);
  const auto rows = std::make_shared<const Rows>(std::move(columns), label);
  const Dataset made = Dataset::from_generator(
      [rows]() -> ElementGenerator {
        return [rows, at = std::int64_t{0}]() mutable { return rows->row(at++); };
      },
      rows->spec());
  known_rows().add(std::get<GeneratorSpec>(made.last()->kind).begin.get(), rows);
  return made;
}

std::shared_ptr<const Columns> columns_behind(const void* generator) {
  const std::shared_ptr<const Rows> rows = known_rows().find(generator);
  if (rows == nullptr) return nullptr;
  return {rows, &rows->columns()};
}

}  // namespace cairn::python
