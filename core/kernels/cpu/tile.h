// A tile of a matrix product whose sums stay in registers: the inner loop of every product that we
// compute ourselves. It is written with the compiler's vector type, because its loop vectoriser
// does not keep an array of sums in registers.
//
// With kRows = 4 a tile has 8 sums of 8 floats. Two vectors of b and one broadcast factor of a come
// to that, 11 of the 16 registers of AVX2, so that nothing spills.
#pragma once
#include <cstdint>

#include "core/base/clones.h"

namespace cairn {

// Two registers of AVX2; other instruction sets take as many of theirs as it needs. Rows lie at any
// address, so vectors are copied from there and to there, which is one instruction each. They are
// passed by reference, because one of eight that is returned would travel in another way with AVX
// than without.
using Float8 = float __attribute__((vector_size(32)));
using Float4 = float __attribute__((vector_size(16)));
template <typename Vector>
CAIRN_INLINE void load_floats(Vector& to, const float* from) {
  __builtin_memcpy(&to, from, sizeof to);
}
template <typename Vector>
CAIRN_INLINE void store_floats(float* to, const Vector& from) {
  __builtin_memcpy(to, &from, sizeof from);
}

constexpr std::int64_t kTileColumns = 16;  // two Float8; scratch is padded to whole tiles

// The first factor as it lies: element (i, k) is data[i * row + k * column], so that a transposed
// matrix needs no copy.
struct Factor {
  const float* data;
  std::int64_t row, column;
};

// kRows x kTileColumns sums. Each sum adds its products in ascending order of k, so results do not
// depend on how a matrix is cut into tiles.
template <int kRows>
struct Tile {
  Float8 sums[kRows][2];

  CAIRN_INLINE Tile() {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) sums[i][0] = sums[i][1] = Float8{};
  }
  // Adds a · b over `n` columns of a and rows of b, which are `b_row` apart; a has kRows rows and b
  // at least kTileColumns columns.
  CAIRN_INLINE void add(const Factor& a, const float* b, std::int64_t b_row, std::int64_t n) {
    const float* from = a.data;
    for (std::int64_t k = 0; k < n; ++k, from += a.column, b += b_row) {
      Float8 left, right;
      load_floats(left, b);
      load_floats(right, b + 8);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const float factor = from[i * a.row];
        sums[i][0] += factor * left;
        sums[i][1] += factor * right;
      }
    }
  }
  // Writes the sums to rows that are `row` floats apart.
  CAIRN_INLINE void store(float* to, std::int64_t row) const {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      store_floats(to + i * row, sums[i][0]);
      store_floats(to + i * row + 8, sums[i][1]);
    }
  }
};

}  // namespace cairn
