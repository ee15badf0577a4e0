#include "tools/job/spec/job_dates.h"

#include <algorithm>
#include <chrono>

#include "core/base/error.h"
#include "tools/job/spec/job_format.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

constexpr const char* kAge = "age";

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(kDatePartLast); ++i)
    names.emplace_back(date_part_name(static_cast<DatePart>(i)));
  names.emplace_back(kAge);
  return names;
}

void add_part(const std::string& name, JobFeatures::Dates& made) {
  if (name == kAge) made.age = true;
  for (int i = 0; i <= static_cast<int>(kDatePartLast); ++i)
    if (const auto part = static_cast<DatePart>(i); name == date_part_name(part))
      made.parts.push_back(part);
}

void read_parts(const TomlTable& table, const std::string& key, const toml::node& value,
                JobFeatures::Dates& made) {
  const auto names = table.convert<std::vector<std::string>>(value, key);
  for (auto name = names.begin(); name != names.end(); ++name) {
    table.one_of(key, *name, part_names());
    if (std::find(names.begin(), name, *name) != name)
      table.fail(value, key, str("parts of a date, and \"", *name, "\" stands there twice"));
    add_part(*name, made);
  }
  if (names.empty()) table.fail(value, key, "at least one of day_of_week, hour, month and age");
}

std::int64_t seconds_of(const toml::date& date) {
  using namespace std::chrono;
  const sys_days days = year(date.year) / month(date.month) / day(date.day);
  return days.time_since_epoch().count() * kSecondsPerDay;
}

// A date of TOML, or a text like one.
std::int64_t read_reference(const TomlTable& table, const toml::node& value) {
  if (const toml::value<toml::date>* date = value.as_date()) return seconds_of(date->get());
  if (const toml::value<toml::date_time>* at = value.as_date_time()) {
    const toml::date_time& when = at->get();
    const std::int64_t minutes = when.time.hour * 60 + when.time.minute;
    return seconds_of(when.date) + minutes * 60 + when.time.second -
           (when.offset ? when.offset->minutes * 60 : 0);
  }
  const auto text = value.value_exact<std::string>();
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%d %H:%M:%S"})
    if (std::int64_t seconds = 0; text && DateFormat(format).parse(*text, seconds)) return seconds;
  table.fail(value, "reference", "a date, as in 2024-03-01 or \"2024-03-01 12:00:00\"");
}

void read_column(TomlTable& table, const std::string& key, const toml::node& value,
                 JobFeatures::Dates& made) {
  if (!value.is_table()) return read_parts(table, key, value, made);
  TomlTable one(value.as_table(), table.path(key), table.file());
  const toml::node* parts = one.node("parts");
  const toml::node* reference = one.node("reference");
  one.refuse_unknown();
  if (parts == nullptr)
    table.fail(value, key, "{parts = [...], reference = ...}, and it has no parts");
  read_parts(one, "parts", *parts, made);
  if (reference == nullptr) return;
  made.until = read_reference(one, *reference);
  if (!made.age)
    one.fail(*reference, "reference", "beside the part \"age\", which is counted to it");
}

// "" if the column has one int64 per example, or is not there; otherwise its type.
std::string wrong_type(const JobFormat& format, const std::string& column) {
  for (const auto& [name, dtype, single] : format.columns())
    if (name == column && !(dtype == DType::kInt64 && single))
      return str(dtype_name(dtype), single ? "" : "[]");
  return "";
}

}  // namespace

void read_dates(TomlTable dates, JobFeatures& features) {
  dates.each([&](const std::string& key, const toml::node& value) {
    read_column(dates, key, value, features.dates[key]);
  });
}

void verify_dates(const Job& job, const PlaceOf& place) {
  for (const auto& [column, dates] : job.features.dates)
    if (const std::string type = wrong_type(job.data.form(), column); !type.empty())
      throw InvalidArgumentError(
          str(place("features.dates." + column), ": the column is ", type,
              ", and one date per example is wanted: ", job.data.form().date_cure(column)));
  const CsvSchema* const cells = job.data.form().cells();
  if (cells == nullptr) return;
  for (const CsvColumn& column : cells->columns)
    if (!column.date_format.empty() && job.features.id_rows.contains(column.name))
      throw InvalidArgumentError(str(place("features.ids." + column.name), ": the column holds ",
                                     "dates, which are no ids: name it under features.dates"));
}

}  // namespace cairn::tools
