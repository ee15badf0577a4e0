// Vocabulary values are bytes of the data, and JSON holds only valid text, so they are stored as
// base64.
#include "model/fitted_columns.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "data/dataset/stage_spec.h"
#include "data/feature/printable.h"
#include "storage/base64.h"

namespace cairn {
namespace {

// The same data gives the same mean on every machine but for the last bits.
constexpr double kRelative = 1e-5;

template <typename Values, typename Text>
std::string joined(const Values& values, const char* between, Text text) {
  std::string all;
  for (const auto& value : values) all += (all.empty() ? "" : between) + text(value);
  return all;
}

// As many digits as tell it from any other of its type.
std::string number_text(float value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string quoted(const std::string& text) { return str("\"", printable(text), "\""); }

std::string words_text(const FeatureColumn& column) {
  const Ngrams& ngrams = column.ngrams;
  std::string text = str("words and their sequences up to ", ngrams.words_max);
  if (ngrams.characters_max > 0)
    text += str(", characters ", ngrams.characters_min, " to ", ngrams.characters_max);
  return text + (ngrams.keep_case ? ", as written" : ", in small letters");
}

std::string numbers_text(const FeatureColumn& column) {
  return "the numbers " + joined(column.numerics, ", ", [](const NumericInput& input) {
           const std::string what = input.days_until ? "the age of " + input.column : input.column;
           return input.log1p ? "log1p of " + what : what;
         });
}

// The meaning of a column in words, without what was fitted to the data.
std::string meaning_of(const FeatureColumn& column) {
  const std::string inputs =
      joined(column.inputs, " and ", [](const std::string& name) { return name; });
  switch (column.kind) {
    case FeatureColumn::Kind::kNumeric: return numbers_text(column);
    case FeatureColumn::Kind::kVocabulary:
      return str("a vocabulary of ", inputs,
                 column.oov == Oov::kLast ? ", unknown values last" : "");
    case FeatureColumn::Kind::kHashed: return str(inputs, " hashed into ", column.buckets);
    case FeatureColumn::Kind::kBucketised:
      return str(inputs, " in buckets at ", joined(column.boundaries, ", ", number_text));
    case FeatureColumn::Kind::kCrossed: return str(inputs, " crossed into ", column.buckets);
    case FeatureColumn::Kind::kDatePart:
      return str("the ", date_part_name(column.part), " of ", inputs);
    case FeatureColumn::Kind::kWords:
      return str(inputs, " hashed into ", column.buckets, ": ", words_text(column));
    default: break;
  }
  return column.buckets > 0 ? str(inputs, " as ids of ", column.buckets, " rows")
                            : str(inputs, " as it is");
}

// ---- comparing ----

std::string column_text(const Json& column) {
  return str(quoted(column.value("name", "")), ", ", column.value("is", ""));
}

bool has(const Json& columns, const Json& wanted) {
  return std::ranges::any_of(columns, [&](const Json& column) {
    return column["name"] == wanted["name"] && column["rows"] == wanted["rows"];
  });
}

Json common(const Json& of, const Json& with) {
  Json some = Json::array();
  for (const Json& column : of)
    if (has(with, column)) some.push_back(column);
  return some;
}

std::string column_difference(Json saved, Json now, Compare which) {
  if (which == Compare::kCommon) {
    const Json all = saved;
    saved = common(saved, now);
    now = common(now, all);
  }
  for (std::size_t i = 0; i < std::max(saved.size(), now.size()); ++i) {
    if (i >= saved.size())
      return str("feature ", i + 1, " is ", column_text(now[i]),
                 ", and the checkpoint has no such feature");
    if (i >= now.size())
      return str("feature ", i + 1, " is ", column_text(saved[i]),
                 " in the checkpoint, and there is no such feature now");
    if (saved[i]["name"] != now[i]["name"] || saved[i]["is"] != now[i]["is"])
      return str("feature ", i + 1, " is ", column_text(saved[i]), " in the checkpoint and ",
                 column_text(now[i]), " now");
  }
  return "";
}

const Json* find_number(const Json& numbers, const Json& wanted) {
  for (const Json& one : numbers)
    if (one["column"] == wanted["column"] && one["log1p"] == wanted["log1p"] &&
        one.contains("days_until") == wanted.contains("days_until"))
      return &one;
  return nullptr;
}

std::string number_difference(const Json& saved, const Json& now) {
  for (const Json& own : now) {
    const Json* const then = find_number(saved, own);
    if (then == nullptr) continue;
    if (own.contains("days_until") && (*then)["days_until"] != own["days_until"])
      return str("column ", quoted(own.value("column", "")), ": ages are counted to ",
                 date_text((*then)["days_until"].get<std::int64_t>()), " in the checkpoint and to ",
                 date_text(own["days_until"].get<std::int64_t>()), " in the data now");
    const float scale = std::max(std::fabs(own.value("stddev", 1.0f)), 1e-30f);
    for (const auto& [key, word] : {std::pair("mean", "mean"), std::pair("stddev", "deviation")}) {
      const float was = then->value(key, 0.0f), is = own.value(key, 0.0f);
      if (std::fabs(was - is) > kRelative * std::max(scale, std::fabs(is)))
        return str("column ", quoted(own.value("column", "")), ": the ", word, " is ",
                   number_text(was), " in the checkpoint and ", number_text(is),
                   " in the data now");
    }
  }
  return "";
}

std::string value_text(const Json& values, std::size_t i) {
  return quoted(storage::from_base64(values[i].get<std::string>()));
}

std::string vocabulary_difference(const std::string& column, const Json& saved, const Json& now) {
  if (saved == now) return "";
  const std::string feature = str("feature ", quoted(column), ": ");
  for (std::size_t i = 0; i < std::max(saved.size(), now.size()); ++i) {
    if (i >= saved.size())
      return str(feature, "the vocabulary ends after ", i, " values in the checkpoint, and value ",
                 i + 1, " is ", value_text(now, i), " in the data now");
    if (i >= now.size())
      return str(feature, "value ", i + 1, " of the vocabulary is ", value_text(saved, i),
                 " in the checkpoint, and the data now has ", i, " values");
    if (saved[i] != now[i])
      return str(feature, "value ", i + 1, " of the vocabulary is ", value_text(saved, i),
                 " in the checkpoint and ", value_text(now, i), " in the data now");
  }
  return "";
}

void collect(const StageSpec& last, std::vector<FeatureColumn>& columns) {
  if (last.input) collect(*last.input, columns);
  for (const auto& other : last.others) collect(*other, columns);
  if (const auto* service = std::get_if<ServiceSpec>(&last.kind))
    collect(*service->dataset, columns);
  if (const auto* features = std::get_if<FeaturesSpec>(&last.kind))
    columns.insert(columns.end(), features->columns.begin(), features->columns.end());
}

}  // namespace

Json fitted_json(const std::vector<FeatureColumn>& columns) {
  Json numeric = Json::array(), vocabularies = Json::object(), all = Json::array();
  for (const FeatureColumn& column : columns) {
    all.push_back(
        {{"name", column.name},
         {"is", meaning_of(column)},
         {"rows", column.kind == FeatureColumn::Kind::kNumeric ? column.width() : column.ids()}});
    for (const NumericInput& input : column.numerics) {
      numeric.push_back({{"column", input.column},
                         {"mean", input.mean},
                         {"stddev", input.stddev},
                         {"log1p", input.log1p}});
      if (input.days_until) numeric.back()["days_until"] = *input.days_until;
    }
    if (column.kind != FeatureColumn::Kind::kVocabulary) continue;
    Json values = Json::array();
    for (const std::string& value : column.values) values.push_back(storage::to_base64(value));
    vocabularies[column.name] = std::move(values);
  }
  return {{"numeric", std::move(numeric)},
          {"vocabularies", std::move(vocabularies)},
          {"columns", std::move(all)}};
}

std::vector<FeatureColumn> feature_columns_of(const Dataset& dataset) {
  std::vector<FeatureColumn> columns;
  if (dataset.defined()) collect(*dataset.last(), columns);
  return columns;
}

std::string first_difference(const Json& saved, const Json& now, Compare which) {
  if (!saved.is_object()) return "";
  try {
    std::string found;
    if (saved.contains("columns"))
      found = column_difference(saved["columns"], now.at("columns"), which);
    if (found.empty() && saved.contains("numeric"))
      found = number_difference(saved["numeric"], now.at("numeric"));
    const Json known = saved.value("vocabularies", Json::object());
    for (const auto& [column, values] : now.at("vocabularies").items())
      if (found.empty() && known.contains(column))
        found = vocabulary_difference(column, known[column], values);
    return found;
  } catch (const Json::exception&) {
    return "what the checkpoint says of its features cannot be read";
  }
}

}  // namespace cairn
