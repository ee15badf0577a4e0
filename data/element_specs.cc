// What each stage yields, and whether its description fits together. All checks of descriptions are
// here, since they need the types of the stage below; they run when a program builds a dataset and
// again when a worker receives it, so a worker may open a description without further checks.
#include <algorithm>
#include <cmath>
#include <set>

#include "data/csv_cells.h"
#include "data/csv_filter.h"
#include "data/dataset_wire.h"
#include "data/label_range.h"
#include "data/stage_spec.h"

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

void check_date(const CsvSchema& schema, const CsvColumn& column) {
  if (column.date_format.empty()) return;
  const auto fail = [&](const std::string& why) {
    throw InvalidArgumentError(str("column \"", column.name, "\": ", why));
  };
  if (column.dtype != DType::kInt64 || column.separator != 0)
    fail(str("a column of dates has one int64 per cell, and this is ", dtype_name(column.dtype),
             column.separator != 0 ? "[]" : ""));
  if (schema.label.binary && schema.label.positive.empty() && schema.label.column == column.name)
    fail("dates are no label of two classes, which must lie in [0, 1]");
  try {
    const DateFormat is_right(column.date_format);
  } catch (const InvalidArgumentError& error) {
    fail(error.what());
  }
}

// A column that is skipped need not make sense: it is never parsed.
void check_csv_column(const CsvSchema& schema, const CsvColumn& column) {
  if (column.optional && (!column.skip || schema.header || schema.last_takes_rest))
    throw InvalidArgumentError(
        str("column \"", column.name, "\": only one that is skipped can be optional, in files ",
            "without a header whose last column does not take the rest of the line"));
  if (column.skip) return;
  if (column.dtype == DType::kBfloat16 || column.dtype == DType::kFloat16)
    throw InvalidArgumentError(str("column \"", column.name, "\": ", dtype_name(column.dtype),
                                   " cannot be read from text; use float32"));
  if (column.separator != 0 && (column.separator == schema.delimiter || column.separator == '\n' ||
                                column.separator == schema.quote))
    throw InvalidArgumentError(
        str("column \"", column.name,
            "\": the separator is also the delimiter, a quote or a line end"));
  if (column.separator != 0 && column.default_value && column.dtype != DType::kString)
    throw InvalidArgumentError(str("column \"", column.name,
                                   "\": cells of several numbers have no default_value; an empty "
                                   "one has no numbers"));
  check_ids(column.ids, is_whole(column.dtype), 1, str("column \"", column.name, "\""));
  check_date(schema, column);
  if (column.default_value && !parses_as(*column.default_value, column))
    throw InvalidArgumentError(str(
        "column \"", column.name, "\": the default_value \"", *column.default_value, "\" is not ",
        column.date_format.empty() ? str("of type ", dtype_name(column.dtype))
                                   : str("a date of the format ", column.date_format)));
}

// Characters by which lines are found cannot have a second meaning.
void check_delimiter_and_quote(const CsvSchema& schema) {
  const char delimiter = schema.delimiter, quote = schema.quote;
  if (delimiter == '\n' || delimiter == '\r' || delimiter == '\0' || delimiter == quote)
    throw InvalidArgumentError(
        "the delimiter of a CSV file cannot be a quote, a line end or a zero byte");
  if (quote == '\n' || quote == '\r' || quote == ' ' || quote == '\t')
    throw InvalidArgumentError("the quote of a CSV file cannot be a blank, a tab or a line end");
  if (schema.cell_lines_max < 1 || schema.cell_lines_max > kCellLinesMax)
    throw InvalidArgumentError(str("the CSV schema: cell_lines_max is ", schema.cell_lines_max,
                                   ", it must lie in [1, ", kCellLinesMax, "]"));
  if (schema.last_takes_rest && (schema.quote != 0 || schema.header))
    throw InvalidArgumentError(
        "the CSV schema: last_takes_rest is for lines without quotes (quote = 0) and header");
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

// Columns in the order of the file, without those that are skipped. A label with `positive` texts
// is float32 whatever its column's dtype is.
ElementSpec csv_element(const CsvSchema& schema) {
  check_delimiter_and_quote(schema);
  ElementSpec element;
  const CsvColumn* label = nullptr;
  std::set<std::string> names;
  const auto add_indicator = [&](const CsvColumn& column) {
    if (column.name == schema.label.column)
      throw InvalidArgumentError(
          str("the label \"", column.name, "\" cannot have a missing_indicator"));
    element.columns.push_back({column.name + kMissing, {DType::kFloat32, {}}});
  };
  for (const auto& column : schema.columns) {
    check_csv_column(schema, column);
    if (!column.name.empty() && !names.insert(column.name).second)
      throw InvalidArgumentError(
          str("the CSV schema: two columns are named \"", column.name, "\""));
    if (column.skip && (column.name != schema.label.column || column.name.empty())) continue;
    if (column.skip) throw InvalidArgumentError(str("the label \"", column.name, "\" is skipped"));
    if (column.name == schema.label.column) label = &column;
    if (&column == label && !schema.label.classes.empty()) {
      element.columns.push_back({column.name, {DType::kInt64, {}}});
    } else if (&column == label && !schema.label.positive.empty()) {
      element.columns.push_back({column.name, {DType::kFloat32, {}}});
    } else if (column.separator != 0) {
      add_ragged(element, column.name, column.dtype);
    } else {
      element.columns.push_back({column.name, {column.dtype, {}}});
    }
    if (column.missing_indicator) add_indicator(column);
  }
  check_columns(element.columns, "the CSV schema");
  // throws with the nearest name
  if (!schema.label.column.empty()) element.find(schema.label.column);
  if (label != nullptr && label->separator != 0)
    throw InvalidArgumentError(str("the label \"", label->name, "\" cannot hold several values"));
  check_label_texts(schema.label);
  if (schema.label.skip_unknown && schema.label.column.empty())
    throw InvalidArgumentError("the CSV schema: skip_unknown is of a label, and there is none");
  const CsvFilter conditions_are_right(schema);
  element.label = schema.label.column;
  return element;
}

std::int64_t record_bytes(const RecordSchema& schema) {
  std::int64_t bytes = 0;
  for (const auto& field : schema.fields)
    bytes += field.count * static_cast<std::int64_t>(dtype_bytes(field.dtype));
  return bytes;
}

// The bound on a record keeps sizes far from overflow wherever they are multiplied.
ElementSpec records_element(const RecordSchema& schema) {
  constexpr std::int64_t kFieldCountMax = 1 << 24;
  ElementSpec element;
  for (const auto& field : schema.fields) {
    if (field.dtype == DType::kString)
      throw InvalidArgumentError(str("field \"", field.name, "\": records hold no strings"));
    if (field.count < 1 || field.count > kFieldCountMax)
      throw InvalidArgumentError(str("field \"", field.name, "\": count is ", field.count,
                                     ", it must lie in [1, ", kFieldCountMax, "]"));
    check_ids(field.ids, is_whole(field.dtype), field.count, str("field \"", field.name, "\""));
    element.columns.push_back(
        {field.name, {field.dtype, field.count == 1 ? Shape{} : Shape{field.count}}});
  }
  check_columns(element.columns, "the record schema");
  if (record_bytes(schema) > kFieldCountMax)
    throw InvalidArgumentError(str("a record has ", record_bytes(schema), " bytes, at most ",
                                   kFieldCountMax, " are possible"));
  element.label = schema.label;
  if (!schema.label.empty()) element.find(schema.label);
  label_range(schema);  // for its error
  return element;
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
