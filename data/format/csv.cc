#include "data/format/csv.h"

#include <algorithm>
#include <set>

#include "data/dataset/dataset.h"
#include "data/file/csv_reader.h"
#include "data/format/cell_source.h"
#include "data/format/cells.h"
#include "data/format/csv_cells.h"
#include "data/format/csv_filter.h"
#include "data/format/wire_parts.h"

namespace cairn {
namespace {

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

// A label with `positive` texts is float32 whatever its column's dtype is.
ElementSpec element_of_cells(const CsvSchema& schema) {
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

ElementSpec CsvFiles::element() const {
  check_paths(paths);
  return element_of_cells(schema);
}

std::optional<CsvSchema> without_cells(CsvSchema schema, const std::string& column) {
  const std::vector<ConditionColumn> columns = condition_columns(schema);
  const auto reads = [&](const std::string& condition) {
    return RowCondition(condition, columns).column() == column;
  };
  if (schema.last_takes_rest || std::ranges::any_of(schema.where, reads)) return std::nullopt;
  for (CsvColumn& each : schema.columns)
    if (each.name == column) {
      each.skip = true;
      each.optional = !schema.header;
    }
  if (schema.label.column == column) schema.label = {};
  return schema;
}

// If a header names the columns, a file needs only those that are read; otherwise the number of
// cells shows whether the column is there.
FileSourcePtr CsvFiles::without_column(const std::string& column) const {
  const std::optional<CsvSchema> without = without_cells(schema, column);
  if (!without) return nullptr;
  return changed([&](CsvFiles& copy) { copy.schema = *without; });
}

StagePtr CsvFiles::open(SourceRequest request) const {
  const auto open = [this](const std::string& path, std::unique_ptr<ByteSource> bytes,
                           const std::vector<std::size_t>& wanted) {
    return std::make_unique<CsvReader>(path, std::move(bytes), schema, wanted);
  };
  CellSourceParts parts{{paths, options.on_error, options.empty_files}, &schema, open};
  return make_cell_source(std::move(parts), std::move(request));
}

void write_cells(pipeline::Csv::Builder out, const std::vector<std::string>& paths,
                 const CsvSchema& schema, const CsvOptions& options) {
  write_texts(out.initPaths(static_cast<unsigned>(paths.size())), paths);
  auto columns = out.initColumns(static_cast<unsigned>(schema.columns.size()));
  for (unsigned i = 0; i < columns.size(); ++i) {
    const CsvColumn& column = schema.columns[i];
    columns[i].setName(column.name);
    columns[i].setDtype(static_cast<std::uint8_t>(column.dtype));
    columns[i].setHasDefault(column.default_value.has_value());
    if (column.default_value) columns[i].setDefaultValue(*column.default_value);
    columns[i].setSkip(column.skip);
    columns[i].setSeparator(static_cast<std::uint8_t>(column.separator));
    columns[i].setMissingIndicator(column.missing_indicator);
    columns[i].setOptional(column.optional);
    write_texts(columns[i].initUnknown(static_cast<unsigned>(column.unknown.size())),
                column.unknown);
    write_ids(columns[i], column.ids);
    if (!column.date_format.empty()) columns[i].setDateFormat(column.date_format);
  }
  out.setLabelColumn(schema.label.column);
  write_texts(out.initPositive(static_cast<unsigned>(schema.label.positive.size())),
              schema.label.positive);
  write_texts(out.initNegative(static_cast<unsigned>(schema.label.negative.size())),
              schema.label.negative);
  out.setDelimiter(static_cast<std::uint8_t>(schema.delimiter));
  out.setHeader(schema.header);
  out.setTrim(schema.trim);
  out.setComment(schema.comment);
  out.setUnknown(schema.unknown);
  out.setBinaryLabel(schema.label.binary);
  out.setOnError(static_cast<std::uint8_t>(options.on_error));
  out.setQuote(static_cast<std::uint8_t>(schema.quote));
  out.setCellLinesMax(static_cast<std::uint16_t>(schema.cell_lines_max));
  out.setStrict(schema.strict);
  out.setLastTakesRest(schema.last_takes_rest);
  out.setEmptyFiles(static_cast<std::uint8_t>(options.empty_files));
  write_texts(out.initWhere(static_cast<unsigned>(schema.where.size())), schema.where);
  write_texts(out.initClasses(static_cast<unsigned>(schema.label.classes.size())),
              schema.label.classes);
  out.setSkipUnknown(schema.label.skip_unknown);
}

CsvSchema read_cells(pipeline::Csv::Reader in) {
  CsvSchema schema;
  check_size(in.getColumns(), "columns");
  for (auto column : in.getColumns()) {
    CsvColumn& made = schema.columns.emplace_back();
    made.name = read_text(column.getName());
    made.dtype = read_dtype(column.getDtype());
    if (column.getHasDefault()) made.default_value = read_text(column.getDefaultValue());
    made.skip = column.getSkip();
    made.separator = static_cast<char>(column.getSeparator());
    made.missing_indicator = column.getMissingIndicator();
    made.unknown = read_texts(column.getUnknown());
    made.ids = read_ids(column.getIds());
    made.optional = column.getOptional();
    made.date_format = read_text(column.getDateFormat());
  }
  schema.label = {read_text(in.getLabelColumn()), read_texts(in.getPositive()),
                  read_texts(in.getNegative()),   in.getBinaryLabel(),
                  read_texts(in.getClasses()),    in.getSkipUnknown()};
  schema.where = read_texts(in.getWhere());
  schema.delimiter = static_cast<char>(in.getDelimiter());
  schema.header = in.getHeader();
  schema.trim = in.getTrim();
  schema.comment = read_text(in.getComment());
  schema.unknown = read_text(in.getUnknown());
  schema.quote = static_cast<char>(in.getQuote());
  schema.cell_lines_max = in.getCellLinesMax();
  schema.strict = in.getStrict();
  schema.last_takes_rest = in.getLastTakesRest();
  return schema;
}

void CsvFiles::write(StageWriter& writer) const {
  write_cells(writer.stage.initCsv(), paths, schema, options);
}

Dataset read_csv(const StageReader& reader) {
  const auto in = reader.stage.getCsv();
  const CsvOptions options{read_on_error(in), read_empty_files(in)};
  return Dataset::csv(read_paths(in), read_cells(in), options);
}

Dataset Dataset::csv(std::vector<std::string> paths, CsvSchema schema, CsvOptions options) {
  return dataset_of(std::make_shared<CsvFiles>(std::move(paths), std::move(schema), options));
}
Dataset Dataset::csv(std::string path, CsvSchema schema, CsvOptions options) {
  return csv(std::vector<std::string>{std::move(path)}, std::move(schema), options);
}
// Without this overload, {"a.csv", "b.csv"} could be taken for one string made of two iterators.
Dataset Dataset::csv(std::initializer_list<std::string> paths, CsvSchema schema,
                     CsvOptions options) {
  return csv(std::vector<std::string>(paths), std::move(schema), options);
}

}  // namespace cairn
