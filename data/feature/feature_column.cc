// The factories check at once, so that a wrong feature fails where the program makes it;
// check_feature() runs again when a description comes over the wire.
#include "data/feature/feature_column.h"

#include <cmath>
#include <set>

#include "core/base/error.h"
#include "data/feature/dataset_bounds.h"

namespace cairn {
namespace {

using Kind = FeatureColumn::Kind;

FeatureColumn make(Kind kind, std::vector<std::string> inputs, std::string name) {
  FeatureColumn made;
  made.kind = kind;
  made.inputs = std::move(inputs);
  made.name = std::move(name);
  return made;
}

}  // namespace

FeatureColumn FeatureColumn::numeric(std::vector<NumericInput> inputs, std::string name) {
  FeatureColumn made = make(Kind::kNumeric, {}, std::move(name));
  made.numerics = std::move(inputs);
  check_feature(made);
  return made;
}

FeatureColumn FeatureColumn::vocabulary(std::string column, std::vector<std::string> values,
                                        Oov oov, std::string name) {
  FeatureColumn made = make(Kind::kVocabulary, {column}, name.empty() ? column : name);
  made.values = std::move(values);
  made.oov = oov;
  check_feature(made);
  return made;
}

FeatureColumn FeatureColumn::hashed(std::string column, std::int64_t buckets, std::string name) {
  FeatureColumn made = make(Kind::kHashed, {column}, name.empty() ? column : name);
  made.buckets = buckets;
  check_feature(made);
  return made;
}

FeatureColumn FeatureColumn::bucketised(std::string column, std::vector<float> boundaries,
                                        std::string name) {
  FeatureColumn made = make(Kind::kBucketised, {column}, name.empty() ? column + "_bucket" : name);
  made.boundaries = std::move(boundaries);
  check_feature(made);
  return made;
}

FeatureColumn FeatureColumn::crossed(std::vector<std::string> columns, std::int64_t buckets,
                                     std::string name) {
  if (name.empty())
    for (const auto& column : columns) name += (name.empty() ? "" : "_x_") + column;
  FeatureColumn made = make(Kind::kCrossed, std::move(columns), std::move(name));
  made.buckets = buckets;
  check_feature(made);
  return made;
}

FeatureColumn FeatureColumn::as_is(std::string column, std::int64_t ids, std::string name,
                                   std::optional<std::int64_t> padding) {
  FeatureColumn made = make(Kind::kAsIs, {column}, name.empty() ? column : name);
  made.buckets = ids;
  made.padding = padding;
  check_feature(made);
  return made;
}

FeatureColumn FeatureColumn::words(std::string column, std::int64_t buckets, Ngrams ngrams,
                                   std::string name) {
  FeatureColumn made = make(Kind::kWords, {column}, name.empty() ? column : name);
  made.buckets = buckets;
  made.ngrams = ngrams;
  check_feature(made);
  return made;
}

FeatureColumn FeatureColumn::date_part(std::string column, DatePart part, std::string name) {
  FeatureColumn made =
      make(Kind::kDatePart, {column}, name.empty() ? str(column, "_", date_part_name(part)) : name);
  made.part = part;
  check_feature(made);
  return made;
}

// The rows that an embedding needs: a vocabulary has one id more than values, for those outside of
// it, and n boundaries make n + 1 buckets.
std::int64_t FeatureColumn::ids() const {
  switch (kind) {
    case Kind::kNumeric: return 0;
    case Kind::kVocabulary: return static_cast<std::int64_t>(values.size()) + 1;
    case Kind::kBucketised: return static_cast<std::int64_t>(boundaries.size()) + 1;
    case Kind::kDatePart: return date_part_ids(part);
    case Kind::kHashed:
    case Kind::kAsIs:
    case Kind::kWords:
    case Kind::kCrossed: return buckets;
  }
  return 0;
}

namespace {

constexpr std::int64_t kNgramsMax = 16;

// Why it does not make sense; empty: it does.
std::string complaint(const Ngrams& ngrams) {
  const auto [words, least, most, keep] = ngrams;
  if (words < 0 || words > kNgramsMax || least < 0 || most > kNgramsMax || least > most)
    return str("n-grams are of 1 to ", kNgramsMax, " words or characters, the least first");
  if ((least == 0) != (most == 0)) return "n-grams of characters begin at 1";
  if (words == 0 && most == 0) return "neither words nor characters are wanted";
  return "";
}

}  // namespace

// NaN fails every comparison, so each test is written such that NaN is refused: "not above 0"
// instead of "0 or below".
void check_feature(const FeatureColumn& feature) {
  auto fail = [&](auto&&... what) {
    throw InvalidArgumentError(str("feature \"", feature.name, "\": ", what...));
  };
  std::size_t inputs =
      feature.kind == Kind::kNumeric ? feature.numerics.size() : feature.inputs.size();
  if (inputs == 0) fail("it names no columns");
  if (inputs > kDatasetColumnsMax) fail("it names more than ", kDatasetColumnsMax, " columns");
  switch (feature.kind) {
    case Kind::kNumeric:
      for (const auto& numeric : feature.numerics)
        if (!(numeric.stddev > 0) || !std::isfinite(numeric.stddev) || !std::isfinite(numeric.mean))
          fail("\"", numeric.column, "\" has mean ", numeric.mean, " and stddev ", numeric.stddev,
               "; both must be finite, stddev above 0");
      break;
    case Kind::kVocabulary: {
      if (feature.values.empty())
        fail("the vocabulary is empty; fit one with fit_vocabulary(), or use hashed()");
      if (feature.values.size() > kVocabularyValuesMax)
        fail("the vocabulary has more than ", kVocabularyValuesMax, " values; use hashed()");
      std::set<std::string_view> seen;
      for (const auto& value : feature.values)
        if (!seen.insert(value).second) fail("the vocabulary holds \"", value, "\" twice");
      break;
    }
    case Kind::kBucketised:
      if (feature.boundaries.empty()) fail("it has no boundaries");
      for (std::size_t i = 0; i < feature.boundaries.size(); ++i)
        if (!std::isfinite(feature.boundaries[i]) ||
            (i > 0 && feature.boundaries[i - 1] >= feature.boundaries[i]))
          fail("boundaries must be finite and ascend, number ", i, " does not");
      break;
    case Kind::kCrossed:
      if (feature.inputs.size() < 2) fail("a cross wants two columns or more");
      [[fallthrough]];
    case Kind::kWords:
      if (feature.kind == Kind::kWords)
        if (const std::string why = complaint(feature.ngrams); !why.empty()) fail(why);
      [[fallthrough]];
    case Kind::kHashed:
      if (feature.buckets < 1) fail("buckets is ", feature.buckets, ", it must be at least 1");
      break;
    case Kind::kAsIs:
      if (feature.buckets < 0) fail("ids is ", feature.buckets, ", it must be at least 0");
      break;
    case Kind::kDatePart: break;
  }
  if (feature.padding && feature.kind != Kind::kAsIs) fail("only a column as it is has padding");
  if (feature.kind != Kind::kCrossed && feature.kind != Kind::kNumeric &&
      feature.inputs.size() != 1)
    fail("it wants one column");
}

}  // namespace cairn
