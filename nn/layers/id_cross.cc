#include "nn/layers/id_cross.h"

#include <utility>

#include "core/base/error.h"
#include "core/graph/ops.h"

namespace cairn::nn {
namespace {

constexpr std::int64_t kCombinationsMax = std::int64_t{1} << 31;  // times kMixer stays below 2^63
// A hash of a combination is id * kMixer modulo kPrime, in recorded int64 arithmetic: the factor is
// the upper half of Knuth's multiplier for MMIX, the modulus the Mersenne prime 2^31 - 1. Both are
// part of every trained model and may never change.
constexpr std::int64_t kMixer = 0x5851F42D;
constexpr std::int64_t kPrime = 0x7FFFFFFF;

}  // namespace

// Divides before it multiplies, so that the bound is checked without overflow. Buckets that are as
// many as the combinations save nothing, so each combination then has its own id.
IdCross::IdCross(std::vector<std::int64_t> rows, std::int64_t buckets)
    : column_rows_(std::move(rows)) {
  if (column_rows_.size() < 2) throw InvalidArgumentError("a cross needs at least two columns");
  for (const std::int64_t of_column : column_rows_) {
    if (of_column < 1)
      throw InvalidArgumentError(
          str("a column of a cross has ", of_column, " rows, it must have at least 1"));
    if (of_column > kCombinationsMax / combinations_)
      throw InvalidArgumentError("a cross has more than 2^31 combinations; hash its columns first");
    combinations_ *= of_column;
  }
  buckets_ = buckets > 0 && buckets < combinations_ ? buckets : combinations_;
}

// The number of the combination, as digits whose bases are the columns' rows. If it is hashed: a
// multiplication alone would leave the last column's low bits in place for round numbers of
// buckets, so a prime modulus comes between.
Array IdCross::operator()(const std::vector<Array>& ids) const {
  CAIRN_CHECK(ids.size() == column_rows_.size(), "ids of ", ids.size(), " columns for a cross of ",
              column_rows_.size());
  Array id = ids[0];
  for (std::size_t i = 1; i < ids.size(); ++i) id = id * Array(column_rows_[i]) + ids[i];
  if (buckets_ == combinations_) return id;
  return floor_mod(floor_mod(id * Array(kMixer), Array(kPrime)), Array(buckets_));
}

}  // namespace cairn::nn
