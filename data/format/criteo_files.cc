// Click logs as files: the binary records that training reads, and lines in the form of Criteo's
// own. Examples are made one by one, judged, and written a megabyte at a time, so that a file may
// be far larger than memory.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/base/error.h"
#include "core/disk/output_file.h"
#include "data/format/criteo_like.h"

namespace cairn {
namespace {

constexpr std::size_t kBytesAtOnce = std::size_t{1} << 20;

struct Record {
  float label;
  float dense[kCriteoCounts];
  std::int32_t ids[kCriteoIds];
};
static_assert(sizeof(Record) == 160);

// How well the hidden logits sort and predict the labels that were drawn from them. The area under
// the curve is computed from counts of positives and negatives in buckets of the probability: pairs
// in different buckets are decided, those in one bucket count half.
class Judge {
 public:
  void add(const CriteoExample& example) {
    const double p = 1 / (1 + std::exp(-static_cast<double>(example.logit)));
    const bool positive = example.label > 0;
    loss_ -= std::log(std::max(1e-12, positive ? p : 1 - p));
    (positive ? positives_
              : negatives_)[std::min(kBuckets - 1, static_cast<std::size_t>(p * kBuckets))] += 1;
  }
  CriteoSummary summary() const {
    CriteoSummary made;
    double positives = 0, negatives = 0, pairs = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      pairs += positives_[i] * (negatives + negatives_[i] / 2);
      positives += positives_[i];
      negatives += negatives_[i];
    }
    made.rows = static_cast<std::int64_t>(positives + negatives);
    if (made.rows == 0) return made;
    made.positives = positives / (positives + negatives);
    made.log_loss = loss_ / (positives + negatives);
    made.auc = positives == 0 || negatives == 0 ? 0.5 : pairs / (positives * negatives);
    return made;
  }

 private:
  static constexpr std::size_t kBuckets = 1 << 14;
  std::vector<double> positives_ = std::vector<double>(kBuckets),
                      negatives_ = std::vector<double>(kBuckets);
  double loss_ = 0;
};

// Little-endian, as the source reads it (data/format/records.cc); the struct has no gaps.
void append_record(const CriteoExample& example, std::string& out) {
  Record record{};
  record.label = example.label;
  for (std::size_t i = 0; i < kCriteoCounts; ++i)
    record.dense[i] = std::log1p(static_cast<float>(example.counts[i]));
  std::copy(example.ids.begin(), example.ids.end(), record.ids);
  out.append(reinterpret_cast<const char*>(&record), sizeof record);
}

void append_line(const CriteoExample& example, std::string& out) {
  out += example.label > 0 ? '1' : '0';
  for (std::int32_t count : example.counts) out.append(1, '\t').append(std::to_string(count));
  for (std::int32_t id : example.ids) {
    char digits[10];
    std::snprintf(digits, sizeof digits, "\t%08x", static_cast<unsigned>(id));
    out += digits;
  }
  out += '\n';
}

// The file appears whole or not at all: OutputFile replaces it in finish().
template <typename Append>
CriteoSummary write(const CriteoLike& clicks, std::int64_t begin, std::int64_t end,
                    const std::string& path, Append append) {
  if (begin < 0 || end < begin)
    throw InvalidArgumentError(
        str("rows ", begin, " to ", end,
            " of the click logs: the first must not be negative nor beyond the last"));
  OutputFile file(path);
  Judge judge;
  std::string bytes;
  for (std::int64_t row = begin; row < end; ++row) {
    const CriteoExample example = clicks.example(row);
    judge.add(example);
    append(example, bytes);
    if (bytes.size() < kBytesAtOnce) continue;
    file.write(bytes);
    bytes.clear();
  }
  file.write(bytes);
  file.finish();
  return judge.summary();
}

}  // namespace

RecordSchema criteo_record_schema() {
  return {{{"label", DType::kFloat32},
           {"dense", DType::kFloat32, static_cast<std::int64_t>(kCriteoCounts)},
           {"ids", DType::kInt32, static_cast<std::int64_t>(kCriteoIds)}},
          "label"};
}

CsvSchema criteo_tsv_schema() {
  CsvSchema schema;
  schema.columns.push_back({.name = "label", .dtype = DType::kFloat32});
  for (std::size_t i = 1; i <= kCriteoCounts; ++i)
    schema.columns.push_back({.name = str("I", i), .dtype = DType::kInt32, .default_value = "0"});
  for (std::size_t i = 1; i <= kCriteoIds; ++i)
    schema.columns.push_back({.name = str("C", i), .dtype = DType::kString});
  schema.label.column = "label";
  schema.delimiter = '\t';
  return schema;
}

CriteoSummary write_criteo_records(const CriteoLike& clicks, std::int64_t begin, std::int64_t end,
                                   const std::string& path) {
  return write(clicks, begin, end, path, append_record);
}

CriteoSummary write_criteo_tsv(const CriteoLike& clicks, std::int64_t begin, std::int64_t end,
                               const std::string& path) {
  return write(clicks, begin, end, path, append_line);
}

}  // namespace cairn
