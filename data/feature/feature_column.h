// Feature columns: how raw columns become what a model reads, dense float32 vectors and int64 ids.
// A column is a description, like a Dataset; what it needs to know about the data (mean,
// vocabulary) is found once by fit() (data/stage/fit.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/feature/date_format.h"

namespace cairn {

// One input of a numeric feature: (t(x) - mean) / stddev, where t is the identity, or x -> sign(x)
// log(1 + |x|). With `days_until` x is first the age of a date in days, see there.
struct NumericInput {
  std::string column;
  float mean = 0;
  float stddev = 1;  // > 0
  bool log1p = false;
  // The column is of dates, int64 seconds since 1970, and x the days from each of them to this one,
  // with their fractions: (days_until - date) / 86400.
  std::optional<std::int64_t> days_until = std::nullopt;
  bool operator==(const NumericInput&) const = default;
};

// Where the id of a value outside the vocabulary lies: before the others (0, values from 1), or
// behind them (n).
enum class Oov : std::uint8_t { kFirst = 0, kLast = 1 };

// Says how a text is split. A word is a run of letters, digits and non-ASCII characters. Pieces are
// sequences of 1 to `words_max` consecutive words and, within each word enclosed in "<" and ">",
// sequences of `characters_min` to `characters_max` consecutive characters.
struct Ngrams {
  std::int64_t words_max = 1;                           // 0: no words
  std::int64_t characters_min = 0, characters_max = 0;  // 0: no characters
  bool keep_case = false;                               // false: ASCII letters are lowered
  bool operator==(const Ngrams&) const = default;
};

// Made by the factories below. Inputs name columns of the stage below; a crossed feature's may also
// name features that stand earlier in the same list (a raw column wins where both have the name).
struct FeatureColumn {
  // The numbers are those of the wire format; never renumber.
  enum class Kind : std::uint8_t {
    kNumeric = 0,
    kVocabulary = 1,
    kHashed = 2,
    kBucketised = 3,
    kCrossed = 4,
    kAsIs = 5,
    kWords = 6,
    kDatePart = 7
  };

  Kind kind = Kind::kNumeric;
  std::string name;                    // of the column it makes
  std::vector<std::string> inputs;     // all kinds but kNumeric
  std::vector<NumericInput> numerics;  // kNumeric
  std::vector<std::string> values;     // kVocabulary, distinct
  Oov oov = Oov::kFirst;
  std::int64_t buckets = 0;              // kHashed, kCrossed, kWords; kAsIs: how many ids there are
  std::vector<float> boundaries;         // kBucketised, ascending
  Ngrams ngrams;                         // kWords
  DatePart part = DatePart::kDayOfWeek;  // kDatePart
  // kAsIs: a value that stands for "no id" and is left out, so that the feature is ragged.
  std::optional<std::int64_t> padding;

  // The number of different ids: the rows that an embedding of this feature needs. 0 for kNumeric.
  std::int64_t ids() const;
  // Columns of the dense result; 1 for id features.
  std::int64_t width() const {
    return kind == Kind::kNumeric ? static_cast<std::int64_t>(numerics.size()) : 1;
  }
  bool operator==(const FeatureColumn&) const = default;

  // float32 [b, inputs]: the inputs side by side.
  static FeatureColumn numeric(std::vector<NumericInput> inputs, std::string name = "numeric");
  // int64 [b]; of a ragged column: ragged. The column is a string or an integer (matched by its
  // decimal text).
  static FeatureColumn vocabulary(std::string column, std::vector<std::string> values,
                                  Oov oov = Oov::kFirst, std::string name = "");
  // int64 [b] in [0, buckets): the hash of a string or integer; of a ragged column: ragged.
  static FeatureColumn hashed(std::string column, std::int64_t buckets, std::string name = "");
  // int64 [b] in [0, boundaries.size()]: how many boundaries are <= x. Named COLUMN_bucket unless
  // `name` is given.
  static FeatureColumn bucketised(std::string column, std::vector<float> boundaries,
                                  std::string name = "");
  // int64 [b] in [0, buckets): a hash of the inputs together, in their order. Named A_x_B unless
  // `name` is given.
  static FeatureColumn crossed(std::vector<std::string> columns, std::int64_t buckets,
                               std::string name = "");
  // The column unchanged, numbers of any shape or ragged: what the model reads as it is, or ids in
  // [0, ids) already. Cells of a CSV file outside of that are bad ones; other sources have bounds
  // of their own (RecordField::ids, ExampleFeature::ids). With `padding`, of whole numbers of shape
  // [] or [k] or ragged: ragged, without the values that equal it.
  static FeatureColumn as_is(std::string column, std::int64_t ids = 0, std::string name = "",
                             std::optional<std::int64_t> padding = std::nullopt);
  // Ragged int64 in [0, buckets): the hashes of a text's words and n-grams, in their order. A word
  // has the id that hashed() gives it.
  static FeatureColumn words(std::string column, std::int64_t buckets, Ngrams ngrams = {},
                             std::string name = "");
  // int64 [b] in [0, date_part_ids(part)), of a column of dates (CsvColumn::date_format) or of any
  // other int64 column of seconds since 1970-01-01 UTC. Named COLUMN_day_of_week, COLUMN_hour or
  // COLUMN_month unless `name` is given.
  static FeatureColumn date_part(std::string column, DatePart part, std::string name = "");
};

// Checks the parts of a feature that need no knowledge of its input: names, numbers, vocabularies.
void check_feature(const FeatureColumn& feature);

}  // namespace cairn
