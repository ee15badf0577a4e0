// One pass for everything that is asked: data may take long to read, and a pass for each column
// would read it as often.
#include "data/stage/fit.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "core/base/look_up.h"
#include "data/dataset/stage.h"

namespace cairn {
namespace {

constexpr std::int64_t kRowsRead = 4096;

// Mean and variance one value at a time: Welford, "Note on a method for calculating corrected sums
// of squares and products", 1962.
struct Moments {
  double count = 0, mean = 0, squares = 0;
  void add(double x) {
    count += 1;
    double from_mean = x - mean;
    mean += from_mean / count;
    squares += from_mean * (x - mean);
  }
};

// Lets the map be asked with a view, so that only new values are copied.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};
using Counts = std::unordered_map<std::string, std::int64_t, TextHash, std::equal_to<>>;

void add_number(Counts& counts, std::int64_t value) {
  char text[24];
  auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  ++counts[std::string(text, end)];
}

// Integers are counted by their decimal text, as features look them up.
void add_values(Counts& counts, const Tensor& column) {
  auto add_all = [&](auto values) {
    for (auto value : values) add_number(counts, static_cast<std::int64_t>(value));
  };
  switch (column.dtype()) {
    case DType::kString:
      for (const auto& text : column.string_values()) {
        auto place = counts.find(std::string_view(text));
        if (place == counts.end()) place = counts.emplace(text, 0).first;
        ++place->second;
      }
      break;
    case DType::kInt32: return add_all(column.values<std::int32_t>());
    case DType::kInt64: return add_all(column.values<std::int64_t>());
    case DType::kUint8: return add_all(column.values<std::uint8_t>());
    default: return add_all(column.values<bool>());
  }
}

// By falling count, then by text: the order must not depend on a hash table's, since ids are places
// in this list and models are saved with them.
std::vector<std::string> most_frequent(const Counts& counts, const VocabularyOptions& options) {
  std::vector<std::pair<std::int64_t, std::string>> ranked;
  for (const auto& [text, count] : counts)
    if (count >= options.min_count) ranked.emplace_back(-count, text);
  std::sort(ranked.begin(), ranked.end());
  ranked.resize(std::min(ranked.size(),
                         static_cast<std::size_t>(std::max<std::int64_t>(0, options.max_size))));
  std::vector<std::string> values;
  for (auto& [count, text] : ranked) values.push_back(std::move(text));
  return values;
}

void add_numbers(Moments& moments, const Tensor& column, const NumericInput& numeric) {
  auto add_all = [&](auto values) {
    for (auto value : values) {
      double x = static_cast<double>(value);
      if (numeric.days_until)
        x = (static_cast<double>(*numeric.days_until) - x) / static_cast<double>(kSecondsPerDay);
      moments.add(numeric.log1p ? std::copysign(std::log1p(std::fabs(x)), x) : x);
    }
  };
  switch (column.dtype()) {
    case DType::kFloat32: return add_all(column.values<float>());
    case DType::kFloat64: return add_all(column.values<double>());
    case DType::kInt32: return add_all(column.values<std::int32_t>());
    case DType::kInt64: return add_all(column.values<std::int64_t>());
    case DType::kUint8: return add_all(column.values<std::uint8_t>());
    default: return add_all(column.values<bool>());
  }
}

// A deviation whose reciprocal would not be finite counts as that of a constant column.
NumericInput standardised(NumericInput numeric, const Moments& moments) {
  const double deviation = std::sqrt(moments.squares / moments.count);
  numeric.mean = static_cast<float>(moments.mean);
  numeric.stddev = static_cast<float>(deviation);
  if (!std::isfinite(numeric.mean) || !std::isfinite(numeric.stddev))
    throw InvalidArgumentError(
        str("fit: \"", numeric.column, "\" has mean ", moments.mean, " and deviation ", deviation,
            ", which float32 cannot hold: give the column dtype float32, so that a cell out of its "
            "range is named"));
  if (numeric.stddev < std::numeric_limits<float>::min()) numeric.stddev = 1;
  return numeric;
}

// The ages that a request wants of a column of dates.
struct DatesSeen {
  Moments seconds;
  std::int64_t latest = std::numeric_limits<std::int64_t>::min();
  void add(const Tensor& column) {
    for (const std::int64_t date : column.values<std::int64_t>()) {
      seconds.add(static_cast<double>(date));
      latest = std::max(latest, date);
    }
  }
  // Which date is the latest is known only when all were seen, so that the moments of ages follow
  // from those of the dates.
  NumericInput age(const AgeRequest& request) const {
    constexpr double kDay = kSecondsPerDay;
    const std::int64_t until = request.until.value_or(latest);
    const Moments days{seconds.count, (static_cast<double>(until) - seconds.mean) / kDay,
                       seconds.squares / (kDay * kDay)};
    return standardised({.column = request.column, .days_until = until}, days);
  }
};

void check(const Dataset& dataset, const FitRequest& request) {
  const ElementSpec& element = dataset.element_spec();
  if (dataset.batched())
    throw InvalidArgumentError(
        "fit() reads example by example: give it the dataset before batch()");
  for (const auto& numeric : request.numeric)
    if (const TensorType& type = element.columns[element.find(numeric.column)].type;
        type.dtype == DType::kString || type.shape.rank() > 0)
      throw InvalidArgumentError(str("fit: \"", numeric.column, "\" is ", type.to_string(),
                                     ", not one number per example"));
  for (const auto& age : request.ages)
    if (const TensorType& type = element.columns[element.find(age.column)].type;
        type.dtype != DType::kInt64 || type.shape.rank() > 0)
      throw InvalidArgumentError(str("fit: an age of \"", age.column, "\", which is ",
                                     type.to_string(), ", not one int64 of seconds per example"));
  for (const auto& name : request.vocabularies)
    if (const DType dtype = element.columns[element.find(name)].type.dtype;
        dtype == DType::kFloat32 || dtype == DType::kFloat64)
      throw InvalidArgumentError(str("fit: a vocabulary of \"", name, "\", which is ",
                                     dtype_name(dtype),
                                     "; give it a string or integer dtype, or bucketise it"));
}

// Nearly always the file is empty or every line was left out, so the message has both.
[[noreturn]] void refuse_no_examples(const LinesRead& lines) {
  std::string why;
  for (const auto& path : lines.empty_files)
    why += str(why.empty() ? "; no rows are in " : ", ", path);
  if (!lines.first_skipped.empty())
    why += str("; ", lines.skipped, " lines were left out, the first one is ",
               lines.first_skipped.front());
  throw InvalidArgumentError("fit: the dataset holds no examples" + why);
}

}  // namespace

Fit fit(const Dataset& dataset, const FitRequest& request) {
  check(dataset, request);
  const ElementSpec& element = dataset.element_spec();
  std::vector<Moments> moments(request.numeric.size());
  std::vector<Counts> counts(request.vocabularies.size());
  std::vector<DatesSeen> dates(request.ages.size());
  Fit found;
  const auto layout = std::make_shared<const BlockLayout>(element);
  StagePtr stage = open_stages(dataset.last(), {.line_events = keep_in(found.lines)});
  for (Block block = stage->next(kRowsRead); !block.empty(); block = stage->next(kRowsRead)) {
    look_up();
    const Element all = block.pack(layout).batch();
    found.examples += block.size();
    for (std::size_t i = 0; i < moments.size(); ++i)
      add_numbers(moments[i], all[element.find(request.numeric[i].column)], request.numeric[i]);
    for (std::size_t i = 0; i < counts.size(); ++i)
      add_values(counts[i], all[element.find(request.vocabularies[i])]);
    for (std::size_t i = 0; i < dates.size(); ++i)
      dates[i].add(all[element.find(request.ages[i].column)]);
  }
  found.lines.skipped = stage->skipped();
  if (found.examples == 0) refuse_no_examples(found.lines);
  for (std::size_t i = 0; i < moments.size(); ++i)
    found.numeric.push_back(standardised(request.numeric[i], moments[i]));
  for (std::size_t i = 0; i < dates.size(); ++i)
    found.ages.push_back(dates[i].age(request.ages[i]));
  for (const auto& each : counts)
    found.vocabularies.push_back(most_frequent(each, request.vocabulary_options));
  return found;
}

std::vector<NumericInput> fit_numeric(const Dataset& dataset,
                                      const std::vector<NumericInput>& columns) {
  return fit(dataset, {.numeric = columns}).numeric;
}

std::vector<std::string> fit_vocabulary(const Dataset& dataset, const std::string& column,
                                        VocabularyOptions options) {
  return fit(dataset, {.vocabularies = {column}, .vocabulary_options = options})
      .vocabularies.front();
}

}  // namespace cairn
