#include "nn/layers/embedding_table.h"

#include <bit>
#include <utility>

namespace cairn::nn {
namespace {

constexpr std::uint64_t kElementsMost = std::uint64_t{1} << 46;  // of a variable

std::int64_t rows_for(std::int64_t dim) {
  const auto width = static_cast<std::uint64_t>(std::max<std::int64_t>(dim, 1));
  return static_cast<std::int64_t>(
      std::bit_floor(std::max<std::uint64_t>(kElementsMost / width, 1)));
}

// The rows divided by the golden ratio: those of keys that follow one another lie far apart.
std::int64_t factor_for(std::int64_t rows) {
  return static_cast<std::int64_t>(static_cast<double>(rows) * 0.6180339887498949) | 1;
}

// Each round doubles the bits that are right, of which an odd number has three to begin with.
std::int64_t inverse_of(std::int64_t odd, std::int64_t modulus) {
  const auto factor = static_cast<std::uint64_t>(odd);
  std::uint64_t inverse = factor;
  for (int bits = 3; bits < 64; bits *= 2) inverse *= 2 - factor * inverse;
  return static_cast<std::int64_t>(inverse & static_cast<std::uint64_t>(modulus - 1));
}

std::int64_t product(std::int64_t a, std::int64_t b, std::int64_t modulus) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b) &
                                   static_cast<std::uint64_t>(modulus - 1));
}

}  // namespace

EmbeddingTable::EmbeddingTable(EmbeddingTableOptions options)
    : rows_(rows_for(options.dim)),
      factor_(factor_for(rows_)),
      inverse_(inverse_of(factor_, rows_)),
      embedding_({.name = options.name.empty() ? "embedding_table" : std::move(options.name),
                  .rows = rows_,
                  .dim = options.dim,
                  .combiner = options.combiner,
                  .initializer = std::move(options.initializer),
                  .seed = options.seed,
                  .hashed = true,
                  .policy = options.policy,
                  .rows_regularizer = std::move(options.rows_regularizer),
                  .activity_regularizer = std::move(options.activity_regularizer)}) {}

Array EmbeddingTable::rows_of(const Array& keys) const {
  if (!keys.defined() || (keys.dtype() != DType::kInt32 && keys.dtype() != DType::kInt64))
    return keys;  // which the embedding refuses
  const Array wide = keys.dtype() == DType::kInt64 ? keys : cast(keys, DType::kInt64);
  return floor_mod(wide * Array(factor_), Array(rows_));
}

Array EmbeddingTable::operator()(const Ids& keys) const {
  return embedding_(Ids{rows_of(keys.values), keys.row_splits, keys.weights});
}

std::int64_t EmbeddingTable::row_of(std::int64_t key) const { return product(key, factor_, rows_); }

std::int64_t EmbeddingTable::key_of(std::int64_t row) const {
  return product(row, inverse_, rows_);
}

}  // namespace cairn::nn
