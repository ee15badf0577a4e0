#include "tools/job/spec/job_columns.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "data/feature/date_format.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {}  // namespace

// "\t" and "tab" both mean a tab, since TOML's literal strings do not know the escape.
char read_character(TomlTable& table, const std::string& key, char otherwise) {
  std::string text(1, otherwise);
  table.read(key, text);
  if (text == "\\t" || text == "tab") return '\t';
  require(text.size() == 1, table, str(table.path(key), " must be one character"));
  return text[0];
}

namespace {

// "int64", "int64[]", "float32[8]".
struct TypeText {
  DType dtype = DType::kString;
  bool list = false;       // of any length
  std::int64_t count = 0;  // of a list of this length; 0: one value
};

// The count of "numeric:float32[8]", which begins at `begin`: "8]".
std::int64_t read_count(const TomlTable& table, const std::string& key, const std::string& text,
                        std::size_t begin) {
  std::int64_t count = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + begin, last, count);
  require(error == std::errc() && count >= 1 && end + 1 == last && *end == ']', table,
          str(table.path(key), ": \"", text,
              "\": the count must be a whole number from 1 on, in brackets at the end"));
  return count;
}

TypeText parse_type(const TomlTable& table, const std::string& key, const std::string& text) {
  TypeText type;
  const std::size_t bracket = text.find('[');
  type.list = text.ends_with("[]");
  if (bracket != std::string::npos && !type.list)
    type.count = read_count(table, key, text, bracket + 1);
  try {
    type.dtype = parse_dtype(text.substr(0, bracket));
  } catch (const Error& e) {
    throw InvalidArgumentError(
        str(table.whole(), ": ", table.path(key), ": \"", text, "\": ", e.what()));
  }
  return type;
}

// The value that replaces a cell without one; numbers need no quotes.
std::optional<std::string> read_default(TomlTable& table) {
  const toml::node* found = table.node("default");
  if (found == nullptr) return std::nullopt;
  if (const auto text = found->value_exact<std::string>()) return *text;
  if (const auto number = found->value_exact<std::int64_t>()) return std::to_string(*number);
  if (const auto number = found->value_exact<double>()) {
    // As many digits as tell it from any other number.
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, *number).ptr);
  }
  table.fail(*found, "default", "a number or a text");
}

// Visits a list of texts and tables, or one of them. The visitors' first argument is `table`, such
// that what require() says of the visited item names its line.
template <typename OfText, typename OfTable>
void each_column(TomlTable& table, const std::string& key, OfText of_text, OfTable of_table) {
  const toml::node* list = table.node(key);
  if (list == nullptr) return;
  const auto visit = [&](const toml::node& item) {
    const TomlTable here = table.at(item);
    if (const auto text = item.value_exact<std::string>()) return of_text(here, *text);
    if (!item.is_table())
      table.fail(item, key, "a list of texts (\"name:dtype\") and tables ({name = \"...\"})");
    TomlTable one = TomlTable(item.as_table(), table.path(key), table.file()).at(item);
    of_table(here, one);
    one.refuse_unknown();
  };
  if (const toml::array* array = list->as_array())
    for (const toml::node& item : *array) visit(item);
  else
    visit(*list);
}

// Cuts "age:int32" at the last colon, since names may hold some. The type is empty if there is
// none.
std::pair<std::string, std::string> name_and_type(const TomlTable& table, const std::string& key,
                                                  const std::string& text) {
  const auto colon = text.rfind(':');
  const std::string name = text.substr(0, colon);
  require(!name.empty(), table, str(table.path(key), ": a column has no name"));
  return {name, colon == std::string::npos ? "" : text.substr(colon + 1)};
}

// Where the date's format of "day:date:%Y-%m-%d" begins, which may hold colons, too: behind a colon
// that `date` follows. npos: it has none.
std::size_t find_date(const std::string& text) {
  const std::size_t at = text.find(":date:");
  return at == text.npos || text.find('%', at) == text.npos ? text.npos : at;
}

void refuse_date(const TomlTable& table, const std::string& key, const std::string& text) {
  require(find_date(text) == text.npos, table,
          str(table.path(key), ": \"", text,
              "\": dates as text are of csv; here a column of dates is int64, the seconds since "
              "1970-01-01 UTC"));
}

// ---- csv ----

// "date:%Y-%m-%d"
void set_date(const TomlTable& table, const std::string& text, CsvColumn& column) {
  const std::string place = str(table.path("columns"), ": \"", column.name, "\": ");
  column.dtype = DType::kInt64;
  column.date_format = text.substr(std::min<std::size_t>(5, text.size()));
  require(!column.date_format.empty(), table,
          place + "a date needs its format, as in \"date:%Y-%m-%d\"");
  try {
    const DateFormat is_right(column.date_format);
  } catch (const InvalidArgumentError& error) {
    require(false, table, place + error.what());
  }
}

void set_type(const TomlTable& table, const std::string& text, char separator, CsvColumn& column) {
  column.dtype = DType::kString;
  if (text.empty()) return;
  if (text == "date" || text.starts_with("date:")) return set_date(table, text, column);
  const TypeText type = parse_type(table, "columns", text);
  require(
      type.count == 0, table,
      str(table.path("columns"), ": \"", text, "\" of \"", column.name,
          "\": a cell holds one value, or any number of them (", dtype_name(type.dtype), "[])"));
  column.dtype = type.dtype;
  if (type.list) column.separator = separator;
}

// "age:int32"; "age", which is a string; "tags:string[]"; "day:date:%Y-%m-%d"; "-fnlwgt", which is
// read past.
CsvColumn parse_column(const TomlTable& table, std::string text, char separator) {
  CsvColumn column;
  column.skip = text.starts_with("-");
  if (column.skip) text.erase(0, 1);
  if (const std::size_t date = find_date(text); date != text.npos && date > 0) {
    column.name = text.substr(0, date);
    set_type(table, text.substr(date + 1), separator, column);
    return column;
  }
  const auto [name, type] = name_and_type(table, "columns", text);
  column.name = name;
  set_type(table, type, separator, column);
  return column;
}

// An unknown date is some date, and neither 0 nor any other day goes without saying.
void verify_default_date(const TomlTable& table, const CsvColumn& column) {
  if (column.date_format.empty()) return;
  const std::string place = str(table.path("columns"), ": \"", column.name, "\"");
  require(!column.missing_indicator || column.default_value, table,
          place + " has an indicator, and its unknown dates no value: give it a \"default\"");
  const DateFormat format(column.date_format);
  std::int64_t seconds = 0;
  if (column.default_value && !format.parse(*column.default_value, seconds))
    require(false, table, str(place, ": its default: ", format.complaint(*column.default_value)));
}

// If an indicator column marks missing values, their value may be anything: 0 unless given.
CsvColumn read_column(TomlTable& one, const TomlTable& table, char separator) {
  CsvColumn column;
  one.read("name", column.name);
  require(!column.name.empty(), table, str(table.path("columns"), ": a column has no name"));
  std::string type;
  one.read("dtype", type);
  set_type(table, type, read_character(one, "separator", separator), column);
  one.read("unknown", column.unknown);
  one.read("indicator", column.missing_indicator);
  column.default_value = read_default(one);
  const bool one_number = column.dtype != DType::kString && column.separator == 0;
  verify_default_date(table, column);
  if (column.missing_indicator && one_number && !column.default_value) column.default_value = "0";
  return column;
}

// A name may not hold a colon here, since the first one ends it.
RecordField record_field(const TomlTable& table, const std::string& text) {
  refuse_date(table, "fields", text);
  const auto colon = text.find(':');
  require(colon != std::string::npos, table,
          str(table.path("fields"), ": \"", text,
              "\" must read \"name:dtype\" or \"name:dtype[count]\""));
  const auto bracket = text.find('[');
  RecordField field;
  if (bracket != std::string::npos) field.count = read_count(table, "fields", text, bracket + 1);
  field.name = text.substr(0, colon);
  field.dtype = parse_dtype(
      text.substr(colon + 1, bracket == std::string::npos ? bracket : bracket - colon - 1));
  return field;
}

ExampleFeature example_feature(const TomlTable& table, const std::string& name,
                               const std::string& type_text) {
  require(!type_text.empty(), table,
          str(table.path("features"), ": \"", name, "\" needs a dtype: \"", name,
              ":float32\", int64 or string"));
  const TypeText type = parse_type(table, "features", type_text);
  ExampleFeature feature{.name = name, .dtype = type.dtype, .ragged = type.list};
  if (type.count > 0) feature.shape = {type.count};
  return feature;
}

}  // namespace

void read_columns(TomlTable& table, char separator, std::vector<CsvColumn>& columns) {
  each_column(
      table, "columns",
      [&](const TomlTable& here, const std::string& text) {
        columns.push_back(parse_column(here, text, separator));
      },
      [&](const TomlTable& here, TomlTable& one) {
        columns.push_back(read_column(one, here, separator));
      });
}

void read_fields(TomlTable& table, std::vector<RecordField>& fields) {
  std::vector<std::string> texts;
  table.read("fields", texts);
  for (const std::string& text : texts) fields.push_back(record_field(table, text));
}

void read_example_features(TomlTable& table, std::vector<ExampleFeature>& features) {
  each_column(
      table, "features",
      [&](const TomlTable& here, const std::string& text) {
        refuse_date(here, "features", text);
        const auto [name, type] = name_and_type(here, "features", text);
        features.push_back(example_feature(here, name, type));
      },
      [&](const TomlTable& here, TomlTable& one) {
        std::string name, type;
        one.read("name", name);
        one.read("dtype", type);
        refuse_date(here, "features", str(name, ":", type));
        require(!name.empty(), here, str(here.path("features"), ": a feature has no name"));
        features.push_back(example_feature(here, name, type));
        features.back().default_value = read_default(one);
      });
}

}  // namespace cairn::tools
