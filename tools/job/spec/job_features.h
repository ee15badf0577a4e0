// [features] of a job file: how columns become numbers and ids. A column may serve several
// features.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/feature/feature_column.h"
#include "data/feature/id_range.h"

namespace cairn::tools {

class TomlTable;

struct JobFeatures {
  std::vector<std::string> numeric;  // standardised over the training data
  std::vector<std::string> log1p;    // log(1 + x) first, then standardised
  std::vector<std::string> plain;    // as they are
  // One id per value that occurs in the training data, and 0 for all others.
  std::vector<std::string> vocabulary;
  std::int64_t vocabulary_min_count = 1;
  std::map<std::string, std::int64_t> hashed;            // column -> buckets
  std::map<std::string, std::vector<float>> bucketised;  // column -> boundaries
  // Columns of texts, whose words and n-grams are hashed.
  struct Text {
    std::int64_t buckets = 0;
    Ngrams ngrams;
  };
  std::map<std::string, Text> text;
  // Id features whose combinations have weights of their own in the wide part.
  struct Cross {
    std::vector<std::string> columns;  // names of id features
    std::int64_t buckets = 1000;
    bool deep = false;         // their combinations also have vectors, as an id feature does
    std::string place;         // "FILE:LINE"
    std::string name() const;  // "a_x_b"
  };
  std::vector<Cross> crosses;
  std::vector<std::string> ids;  // columns that hold ids already
  // How many rows: one number for all values of a field, or one per value.
  std::map<std::string, std::vector<std::int64_t>> id_rows;
  // By column, where one was given: the value that stands for "no id".
  std::map<std::string, std::int64_t> id_padding;
  // Columns of dates, and what models read of each.
  struct Dates {
    std::vector<DatePart> parts;  // each an id feature, COLUMN_day_of_week say
    bool age = false;             // in days, standardised: COLUMN_age
    // The date that ages are counted to, in seconds since 1970; none: the latest of the training
    // data.
    std::optional<std::int64_t> until;
  };
  std::map<std::string, Dates> dates;
  // The range of a column's values; any number if `ids` does not name the column.
  IdRange id_range(const std::string& column) const;
};

// The names of the features that are ids, those of crosses left out.
std::vector<std::string> id_feature_names(const JobFeatures& features);

// Calls `see` with each column that is named, and the key that names it. Crosses name features,
// some of which are called otherwise than their columns (id_feature_names()).
void for_each_named_column(
    const JobFeatures& features,
    const std::function<void(const std::string& key, const std::string& column)>& see);

//   Errors  InvalidArgument: file, line and what is wrong.
void read_features(TomlTable table, JobFeatures& features);

}  // namespace cairn::tools
