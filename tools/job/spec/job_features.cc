#include "tools/job/spec/job_features.h"

#include "core/base/error.h"
#include "tools/job/spec/job_dates.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

void read_crosses(TomlTable& table, JobFeatures& features) {
  const toml::node* list = table.node("crosses");
  if (list == nullptr) return;
  const char* const wanted = "a list of {columns = [...], buckets = n, deep = true or false}";
  const toml::array* array = list->as_array();
  if (array == nullptr) table.fail(*list, "crosses", wanted);
  for (const toml::node& item : *array) {
    if (!item.is_table()) table.fail(item, "crosses", wanted);
    TomlTable one(item.as_table(), table.path("crosses"), table.file());
    JobFeatures::Cross cross;
    one.read("columns", cross.columns);
    one.read("buckets", cross.buckets);
    one.read("deep", cross.deep);
    one.refuse_unknown();
    cross.place = table.place(item);
    if (cross.columns.size() < 2) table.fail(item, "crosses", "over at least two columns");
    features.crosses.push_back(std::move(cross));
  }
}

// 65536, or {buckets = 65536, words = 2, characters = [3, 5]}.
JobFeatures::Text read_text(TomlTable& texts, const std::string& key, const toml::node& value) {
  JobFeatures::Text text;
  if (!value.is_table()) {
    text.buckets = texts.convert<std::int64_t>(value, key);
    return text;
  }
  TomlTable one(value.as_table(), texts.path(key), texts.file());
  one.read("buckets", text.buckets);
  one.read("words", text.ngrams.words_max);
  one.read("keep_case", text.ngrams.keep_case);
  std::vector<std::int64_t> characters;
  one.read("characters", characters);
  one.refuse_unknown();
  if (characters.empty()) return text;
  if (characters.size() > 2)
    texts.fail(*value.as_table()->get("characters"), key + ".characters",
               "a number of characters, or the least and the most");
  text.ngrams.characters_min = characters.front();
  text.ngrams.characters_max = characters.back();
  return text;
}

// 1000; [1000, 50], of a column with two values; or {rows = 1000, padding = -1}.
void read_ids(TomlTable& ids, const std::string& key, const toml::node& value,
              JobFeatures& features) {
  std::vector<std::int64_t>& rows = features.id_rows[key];
  if (!value.is_table()) {
    rows = ids.convert<std::vector<std::int64_t>>(value, key);
    return;
  }
  TomlTable one(value.as_table(), ids.path(key), ids.file());
  one.read("rows", rows);
  if (rows.empty()) ids.fail(value, key, "{rows = ..., padding = ...}, and it has no rows");
  if (const toml::node* padding = one.node("padding")) {
    const auto number = padding->value_exact<std::int64_t>();
    if (!number) one.fail(*padding, "padding", "a whole number");
    features.id_padding[key] = *number;
    if (rows.size() > 1)
      one.fail(*padding, "padding",
               "of a column with one number of rows: values with tables of their own each have "
               "their place, and what is left out has none");
  }
  one.refuse_unknown();
}

}  // namespace

IdRange JobFeatures::id_range(const std::string& column) const {
  const auto rows = id_rows.find(column);
  if (rows == id_rows.end()) return {};
  const auto padding = id_padding.find(column);
  return {rows->second,
          padding == id_padding.end() ? std::nullopt : std::optional(padding->second)};
}

std::string JobFeatures::Cross::name() const {
  std::string made;
  for (const std::string& column : columns) made += (made.empty() ? "" : "_x_") + column;
  return made;
}

std::vector<std::string> id_feature_names(const JobFeatures& features) {
  std::vector<std::string> names = features.vocabulary;
  for (const auto& [column, buckets] : features.hashed) names.push_back(column);
  for (const auto& [column, boundaries] : features.bucketised) names.push_back(column + "_bucket");
  for (const auto& [column, text] : features.text) names.push_back(column);
  for (const auto& column : features.ids) {
    const std::size_t rows = features.id_rows.at(column).size();
    if (rows == 1) names.push_back(column);
    for (std::size_t i = 1; rows > 1 && i <= rows; ++i) names.push_back(str(column, "_", i));
  }
  for (const auto& [column, dates] : features.dates)
    for (const DatePart part : dates.parts) names.push_back(str(column, "_", date_part_name(part)));
  return names;
}

// Some of the tables have columns' names as keys, so each() visits them and no key in them is
// unknown.
void for_each_named_column(
    const JobFeatures& features,
    const std::function<void(const std::string& key, const std::string& column)>& see) {
  for (const auto& column : features.numeric) see("features.numeric", column);
  for (const auto& column : features.log1p) see("features.log1p", column);
  for (const auto& column : features.plain) see("features.plain", column);
  for (const auto& column : features.vocabulary) see("features.vocabulary", column);
  for (const auto& [column, buckets] : features.hashed) see("features.hashed", column);
  for (const auto& [column, boundaries] : features.bucketised) see("features.bucketised", column);
  for (const auto& [column, text] : features.text) see("features.text", column);
  for (const auto& column : features.ids) see("features.ids", column);
  for (const auto& [column, dates] : features.dates) see("features.dates", column);
  for (const auto& cross : features.crosses)
    for (const auto& column : cross.columns) see("features.crosses", column);
}

void read_features(TomlTable table, JobFeatures& features) {
  table.read("numeric", features.numeric);
  table.read("log1p", features.log1p);
  table.read("plain", features.plain);
  table.read("vocabulary", features.vocabulary);
  table.read("vocabulary_min_count", features.vocabulary_min_count);
  TomlTable hashed = table.table("hashed");
  hashed.each([&](const std::string& key, const toml::node& value) {
    features.hashed[key] = hashed.convert<std::int64_t>(value, key);
  });
  TomlTable bucketised = table.table("bucketised");
  bucketised.each([&](const std::string& key, const toml::node& value) {
    features.bucketised[key] = bucketised.convert<std::vector<float>>(value, key);
  });
  TomlTable text = table.table("text");
  text.each([&](const std::string& key, const toml::node& value) {
    features.text[key] = read_text(text, key, value);
  });
  TomlTable ids = table.table("ids");
  ids.each([&](const std::string& key, const toml::node& value) {
    features.ids.push_back(key);
    read_ids(ids, key, value, features);
  });
  read_dates(table.table("dates"), features);
  read_crosses(table, features);
  table.refuse_unknown();
}

}  // namespace cairn::tools
