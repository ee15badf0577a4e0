// Computes the element that each stage yields, and checks its description. All such checks are
// here, since they need the types of the stage below; they run when a program builds a dataset and
// again when a worker receives it, so a worker may open a description without further checks.
#include <algorithm>
#include <cmath>
#include <set>

#include "data/dataset/stage_spec.h"
#include "data/feature/dataset_bounds.h"

namespace cairn {

bool is_whole(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUint8;
}

void check_columns(const std::vector<ColumnSpec>& columns, const char* what) {
  if (columns.empty()) throw InvalidArgumentError(str(what, " has no columns"));
  if (columns.size() > kDatasetColumnsMax)
    throw InvalidArgumentError(str(what, " has ", columns.size(), " columns, at most ",
                                   kDatasetColumnsMax, " are possible"));
  std::set<std::string> names;
  for (const auto& column : columns) {
    if (column.name.empty()) throw InvalidArgumentError(str(what, ": a column has no name"));
    if (!names.insert(column.name).second)
      throw InvalidArgumentError(str(what, ": two columns are named \"", column.name, "\""));
  }
}

ElementSpec checked_element(std::vector<ColumnSpec> columns, std::string label, const char* what) {
  check_columns(columns, what);
  ElementSpec element{std::move(columns), std::move(label)};
  if (!element.label.empty()) element.find(element.label);
  return element;
}

void check_value_shape(const std::string& name, const Shape& shape) {
  constexpr std::int64_t kValuesMax = 1 << 24;
  std::int64_t values = 1;
  for (const std::int64_t dim : shape.dims()) {
    if (dim < 1 || dim > kValuesMax / values)
      throw InvalidArgumentError(str("\"", name, "\": the shape ", shape.to_string(),
                                     " must have from 1 to ", kValuesMax, " values"));
    values *= dim;
  }
}

void add_ragged(ElementSpec& element, const std::string& name, DType dtype) {
  element.columns.push_back({name, {dtype, {Shape::kUnknown}}});
  element.columns.push_back({name + kRowSplits, {DType::kInt64, {2}}});
}

namespace {

bool has_column(const ElementSpec& element, const std::string& name) {
  return std::any_of(element.columns.begin(), element.columns.end(),
                     [&](const auto& column) { return column.name == name; });
}
bool is_ragged(const ElementSpec& element, const std::string& name) {
  return has_column(element, name + kRowSplits);
}

}  // namespace

void check_label_texts(const CsvLabel& label) {
  for (const auto& text : label.negative)
    if (std::find(label.positive.begin(), label.positive.end(), text) != label.positive.end())
      throw InvalidArgumentError(
          str("label \"", label.column, "\": \"", text, "\" is both positive and negative"));
  if (!label.classes.empty() && !label.positive.empty())
    throw InvalidArgumentError(
        str("label \"", label.column, "\" has positive values and classes: give one of them"));
  for (auto at = label.classes.begin(); at != label.classes.end(); ++at)
    if (std::find(at + 1, label.classes.end(), *at) != label.classes.end())
      throw InvalidArgumentError(
          str("label \"", label.column, "\": two classes are \"", *at, "\""));
  if (label.positive.empty() && !label.negative.empty())
    throw InvalidArgumentError(
        str("label \"", label.column, "\" has negative values, but no positive ones"));
}

ElementSpec tensors_element(const TensorsSpec& spec) {
  ElementSpec element;
  for (const auto& [name, all] : spec.columns) {
    if (!all.defined() || all.shape().rank() == 0)
      throw InvalidArgumentError(
          str("from_tensor_slices: column \"", name, "\" wants a tensor of rank 1 or more"));
    std::int64_t rows = all.shape()[0], first = spec.columns.front().second.shape()[0];
    if (rows != first)
      throw InvalidArgumentError(str("from_tensor_slices: \"", name, "\" has ", rows, " rows, \"",
                                     spec.columns.front().first, "\" has ", first));
    element.columns.push_back({name, {all.dtype(), all.shape().without_front()}});
  }
  check_columns(element.columns, "from_tensor_slices");
  for (const auto& column : element.columns)
    if (column.name.ends_with(kRowSplits))
      throw InvalidArgumentError(
          str("from_tensor_slices: \"", column.name, "\" is a name of ragged columns only"));
  element.label = spec.label;
  if (!spec.label.empty()) element.find(spec.label);
  return element;
}

// Dense columns gain a dimension. The values of ragged ones are already those of all examples, one
// after another; their splits grow to n + 1.
ElementSpec batch_element(const ElementSpec& input, const BatchSpec& spec) {
  ElementSpec element = input;
  for (auto& column : element.columns) {
    if (is_ragged(input, column.name)) continue;  // all examples' values, one after another
    if (column.name.ends_with(kRowSplits) &&
        is_ragged(input, column.name.substr(
                             0, column.name.size() - std::string_view(kRowSplits).size()))) {
      column.type.shape = {spec.drop_remainder ? spec.n + 1 : Shape::kUnknown};
    } else {
      column.type.shape =
          column.type.shape.with_front(spec.drop_remainder ? spec.n : Shape::kUnknown);
    }
  }
  return element;
}

namespace {

void check_dates(const std::string& feature, const ColumnSpec& column) {
  if (column.type.dtype == DType::kInt64) return;
  throw InvalidArgumentError(str(
      "feature \"", feature, "\" wants dates, int64 seconds since ", "1970-01-01 UTC, and \"",
      column.name, "\" is ", column.type.to_string(), "; give the column CsvColumn::date_format"));
}

}  // namespace

// Features are checked in their order, because a crossed feature may name one that stands earlier
// in the list. Where a raw column has the same name, the raw column wins; FeaturePlan::find() must
// agree.
ElementSpec features_element(const ElementSpec& input, const std::vector<FeatureColumn>& columns) {
  ElementSpec element;
  auto input_column = [&](const FeatureColumn& feature,
                          const std::string& name) -> const ColumnSpec& {
    const ElementSpec& from = feature.kind == FeatureColumn::Kind::kCrossed &&
                                      !has_column(input, name) && has_column(element, name)
                                  ? element
                                  : input;
    const ColumnSpec& column = from.columns[from.find(name)];
    bool ragged = is_ragged(from, name);
    bool text = column.type.dtype == DType::kString;
    bool scalar = column.type.shape.rank() == 0;
    if (feature.kind == FeatureColumn::Kind::kAsIs) {
      if (text)
        throw InvalidArgumentError(str("feature \"", feature.name, "\": \"", name,
                                       "\" is a string, which no model reads; hash it"));
      if (feature.padding && (!is_whole(column.type.dtype) || column.type.shape.rank() > 1))
        throw InvalidArgumentError(str("feature \"", feature.name,
                                       "\": padding is of ids, whole numbers of shape [] or [k], "
                                       "and \"",
                                       name, "\" is ", column.type.to_string()));
      return column;
    }
    if (feature.kind == FeatureColumn::Kind::kWords && !(text && scalar))
      throw InvalidArgumentError(str("feature \"", feature.name,
                                     "\" wants one text per example, \"", name, "\" is ",
                                     column.type.to_string()));
    bool ids = feature.kind == FeatureColumn::Kind::kVocabulary ||
               feature.kind == FeatureColumn::Kind::kHashed;
    if (!scalar && !(ragged && ids))
      throw InvalidArgumentError(str("feature \"", feature.name,
                                     "\" wants one value per example, \"", name, "\" is ",
                                     column.type.to_string()));
    if (feature.kind == FeatureColumn::Kind::kDatePart) check_dates(feature.name, column);
    bool number = feature.kind == FeatureColumn::Kind::kNumeric ||
                  feature.kind == FeatureColumn::Kind::kBucketised;
    if (number && text)
      throw InvalidArgumentError(str("feature \"", feature.name, "\" wants a number, \"", name,
                                     "\" is a string; give the column another dtype"));
    const DType dtype = column.type.dtype;
    if (!number && (dtype == DType::kFloat32 || dtype == DType::kFloat64))
      throw InvalidArgumentError(str("feature \"", feature.name, "\" wants a string or integer, \"",
                                     name, "\" is ", dtype_name(dtype),
                                     "; bucketise it, or give the column another dtype"));
    return column;
  };
  for (const auto& feature : columns) {
    check_feature(feature);
    bool ragged = false;
    for (const auto& numeric : feature.numerics)
      if (const ColumnSpec& column = input_column(feature, numeric.column); numeric.days_until)
        check_dates(feature.name, column);
    const ColumnSpec* last = nullptr;
    for (const auto& name : feature.inputs) {
      last = &input_column(feature, name);
      ragged = is_ragged(input, name);
    }
    if (feature.kind == FeatureColumn::Kind::kNumeric) {
      element.columns.push_back({feature.name, {DType::kFloat32, {feature.width()}}});
    } else if (feature.kind == FeatureColumn::Kind::kAsIs) {
      if (ragged || feature.padding)
        add_ragged(element, feature.name, last->type.dtype);
      else
        element.columns.push_back({feature.name, last->type});
    } else if (ragged || feature.kind == FeatureColumn::Kind::kWords) {
      add_ragged(element, feature.name, DType::kInt64);
    } else {
      element.columns.push_back({feature.name, {DType::kInt64, {}}});
    }
  }
  if (!input.label.empty()) element.columns.push_back(input.columns[input.find(input.label)]);
  element.label = input.label;
  check_columns(element.columns, "features()");
  return element;
}

}  // namespace cairn
