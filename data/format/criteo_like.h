// CriteoLike: made-up click logs of the shape of Criteo's: 13 counts, 26 ids over tables of given
// sizes, and a label.
//
//     CriteoLike clicks({.seed = 1, .exponent = 1.05});
//     write_criteo_records(clicks, 0, 1'000'000, "train.bin");
//
// Ids follow a power law and are scattered over their table, so that frequent rows are not
// neighbours. The label is drawn from a hidden model with an effect of each count, of each id, and
// of pairs of ids: a model that learns those pairs beats one that does not, and none can beat the
// hidden one. An example is a function of (seed, its row), so any number of rows can be made, in
// any pieces.
//   Thread  immutable; any.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset/schema.h"
#include "data/format/zipf.h"

namespace cairn {

constexpr std::size_t kCriteoCounts = 13, kCriteoIds = 26;

// The tables of the Kaggle display advertising challenge, none larger than rows_max: 10,569,296
// rows in all by default.
std::vector<std::int64_t> criteo_table_rows(std::int64_t rows_max = 2'000'000);

struct CriteoLikeOptions {
  std::uint64_t seed = 1;
  double exponent = 1;  // of the power law of the ids; 0: uniform
  std::vector<std::int64_t> table_rows = criteo_table_rows();
};

struct CriteoExample {
  float label = 0;
  std::array<std::int32_t, kCriteoCounts> counts{};
  std::array<std::int32_t, kCriteoIds> ids{};
  // The hidden model's logit: the label was drawn with the probability 1 / (1 + exp(-logit)).
  float logit = 0;
};

class CriteoLike {
 public:
  //   Errors  InvalidArgument: not 26 tables, one of them empty or beyond int32; an exponent below
  //           0.
  explicit CriteoLike(CriteoLikeOptions options);
  CriteoExample example(std::int64_t row) const;
  const CriteoLikeOptions& options() const { return options_; }

 private:
  struct Table {
    ZipfDistribution ranks;
    std::uint64_t factor, offset;  // rank to id, one to one
    std::uint64_t effects;         // the key under which its ids' effects are drawn
  };
  std::int32_t draw_id(const Table& table, Random& random) const;
  float hidden_logit(const CriteoExample& example) const;

  CriteoLikeOptions options_;
  std::vector<Table> tables_;
  std::array<float, kCriteoCounts> count_weights_{};
};

// ---- files ----
//
// Records of 160 bytes, little-endian: float32 label, float32 dense[13] (log(1 + count)), int32
// ids[26].
RecordSchema criteo_record_schema();
// Lines as Criteo's own: label, 13 counts, 26 ids as 8 hexadecimal digits, separated by tabs. With
// `log1p` on the counts and the ids hashed these are the columns of a real file as well: I1 .. I13,
// C1 .. C26.
CsvSchema criteo_tsv_schema();

// How far a file's labels can be known at all: how well the hidden model itself predicts them.
struct CriteoSummary {
  std::int64_t rows = 0;
  double positives = 0;  // share
  double log_loss = 0;
  double auc = 0;  // to 1e-4
};

// Writes rows [begin, end) to a file, which appears whole or not at all (core/disk/output_file.h).
//   Errors  InvalidArgument: the range; and those of writing: PermissionDenied, NotFound (the
//           folder), ResourceExhausted (the disk is full).
CriteoSummary write_criteo_records(const CriteoLike& clicks, std::int64_t begin, std::int64_t end,
                                   const std::string& path);
CriteoSummary write_criteo_tsv(const CriteoLike& clicks, std::int64_t begin, std::int64_t end,
                               const std::string& path);

}  // namespace cairn
