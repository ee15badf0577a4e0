// The pairwise products of an example's vectors. An example is a matrix product too small for
// oneDNN: it is laid out in scratch that is padded to whole tiles (tile.h), so that no loop has a
// tail. Register tiles took this from 6.2 ms to 1.4, and its gradient from 5.2 to 2.0, in a step of
// DLRM with 2,048 examples (bench/notebook.md).
//   Source  the interaction of DLRM: Naumov et al., "Deep learning recommendation model for
//           personalization and recommendation systems", arXiv:1906.00091.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/clones.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/cpu/tile.h"

namespace cairn {
namespace {

constexpr std::int64_t kTileRows = 4;

std::int64_t rounded(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

// [batch, f, d], and what an example takes in scratch: f vectors above one another, their d
// elements, f vectors side by side.
struct Vectors {
  explicit Vectors(const Shape& shape)
      : batch(shape[0]),
        f(batch == 0 ? 0 : shape[1]),
        d(shape[2]),
        pairs(f * (f - 1) / 2),
        rows(rounded(f, 8)),
        width(rounded(d, kTileColumns)),
        across(rounded(f, kTileColumns)) {}
  std::int64_t batch, f, d, pairs;
  std::int64_t rows, width, across;
};

// Zeros, with room for a row of a tile behind them.
std::vector<float> scratch(std::int64_t n) {
  return std::vector<float>(static_cast<std::size_t>(n + kTileColumns));
}

struct Forward {
  explicit Forward(const Shape& shape)
      : of(shape),
        x(scratch(of.rows * of.width)),
        columns(scratch(of.width * of.across)),
        band(scratch(kTileRows * of.across)),
        products(scratch(of.pairs)) {}
  const Vectors of;
  std::vector<float> x;        // [rows, width]
  std::vector<float> columns;  // [width, across]: the vectors side by side
  // [kTileRows, across]: products of a tile's rows with those before them
  std::vector<float> band;
  std::vector<float> products;  // of each vector with those before it
};

struct Backward {
  explicit Backward(const Shape& shape)
      : of(shape),
        x(scratch(of.rows * of.width)),
        dy(scratch(of.pairs)),
        lower(scratch(of.rows * of.across)),
        dx(scratch(of.rows * of.width)) {}
  const Vectors of;
  std::vector<float> x;      // [rows, width]
  std::vector<float> dy;     // of the products
  std::vector<float> lower;  // [rows, across]: dy below the diagonal
  std::vector<float> dx;     // [rows, width]
};

// `n` floats of each of `rows` rows.
CAIRN_INLINE void copy_rows(const float* from, std::int64_t from_row, float* to,
                            std::int64_t to_row, std::int64_t rows, std::int64_t n) {
  if (from_row == n && to_row == n) {
    std::memcpy(to, from, static_cast<std::size_t>(rows * n) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < rows; ++i)
    std::memcpy(to + i * to_row, from + i * from_row, static_cast<std::size_t>(n) * sizeof(float));
}

// Copies up to 7 floats more than `n`: both sides have room behind, and what is written there is
// overwritten later.
CAIRN_INLINE void copy_eights(const float* from, float* to, std::int64_t n) {
  for (std::int64_t j = 0; j < n; j += 8) __builtin_memcpy(to + j, from + j, 8 * sizeof(float));
}

// to[k][i] = from[i][k], eight rows by four columns at a time.
CAIRN_INLINE void transpose(const float* from, std::int64_t from_row, float* to,
                            std::int64_t to_row, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; i += 8)
    for (std::int64_t k = 0; k < columns; k += 4) {
      Float8 pairs[4];  // of rows r and r + 4
      for (std::int64_t r = 0; r < 4; ++r) {
        const float* row = from + (i + r) * from_row + k;
        Float4 upper, lower;
        load_floats(upper, row);
        load_floats(lower, row + 4 * from_row);
        pairs[r] = __builtin_shufflevector(upper, lower, 0, 1, 2, 3, 4, 5, 6, 7);
      }
      const Float8 &a = pairs[0], &b = pairs[1], &c = pairs[2], &d = pairs[3];
      const Float8 ab_low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13),
                   ab_high = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
      const Float8 cd_low = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13),
                   cd_high = __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
      float* column = to + k * to_row + i;
      store_floats(column, __builtin_shufflevector(ab_low, cd_low, 0, 1, 8, 9, 4, 5, 12, 13));
      store_floats(column + to_row,
                   __builtin_shufflevector(ab_low, cd_low, 2, 3, 10, 11, 6, 7, 14, 15));
      store_floats(column + 2 * to_row,
                   __builtin_shufflevector(ab_high, cd_high, 0, 1, 8, 9, 4, 5, 12, 13));
      store_floats(column + 3 * to_row,
                   __builtin_shufflevector(ab_high, cd_high, 2, 3, 10, 11, 6, 7, 14, 15));
    }
}

// Products of the vectors with one another, up to the diagonal.
CAIRN_CLONES void dots(Forward& s, const float* x, float* out) {
  const Vectors v = s.of;
  float *const rows = s.x.data(), *const columns = s.columns.data(), *const band = s.band.data(),
               *const products = s.products.data();
  for (std::int64_t b = 0; b < v.batch; ++b, x += v.f * v.d, out += v.pairs) {
    copy_rows(x, v.d, rows, v.width, v.f, v.d);
    transpose(rows, v.width, columns, v.across, v.rows, v.width);
    float* to = products;
    for (std::int64_t i = 0; i < v.f; i += kTileRows) {
      for (std::int64_t j = 0; j < i + kTileRows - 1; j += kTileColumns) {
        Tile<kTileRows> tile;
        tile.add({rows + i * v.width, v.width, 1}, columns + j, v.across, v.d);
        tile.store(band + j, v.across);
      }
      for (std::int64_t r = i; r < std::min(v.f, i + kTileRows); to += r, ++r)
        copy_eights(band + (r - i) * v.across, to, r);
    }
    std::memcpy(out, products, static_cast<std::size_t>(v.pairs) * sizeof(float));
  }
}

// dx = (lower + transposed lower) · x.
CAIRN_CLONES void dots_grad(Backward& s, const float* dy, const float* x, float* dx) {
  const Vectors v = s.of;
  float *const rows = s.x.data(), *const gradients = s.dy.data(), *const lower = s.lower.data(),
               *const made = s.dx.data();
  for (std::int64_t b = 0; b < v.batch; ++b, dy += v.pairs, x += v.f * v.d, dx += v.f * v.d) {
    copy_rows(x, v.d, rows, v.width, v.f, v.d);
    std::memcpy(gradients, dy, static_cast<std::size_t>(v.pairs) * sizeof(float));
    const float* from = gradients;
    for (std::int64_t i = 0; i < v.f; from += i, ++i) {
      copy_eights(from, lower + i * v.across, i);
      store_floats(lower + i * v.across + i, Float4{});  // as far as a tile looks past the diagonal
    }
    for (std::int64_t i = 0; i < v.f; i += kTileRows)
      for (std::int64_t k = 0; k < v.width; k += kTileColumns) {
        Tile<kTileRows> tile;
        tile.add({lower + i * v.across, v.across, 1}, rows + k, v.width, i + kTileRows);
        tile.add({lower + i * v.across + i, 1, v.across}, rows + i * v.width + k, v.width,
                 v.rows - i);
        tile.store(made + i * v.width + k, v.width);
      }
    copy_rows(made, v.width, dx, v.d, v.f, v.d);
  }
}

KernelRun prepare_dots(const KernelTypes& types) {
  return [s = std::make_shared<Forward>(types.inputs[0].shape)](const KernelCall& call) {
    dots(*s, input_of<float>(call, 0), output_of<float>(call));
  };
}

KernelRun prepare_dots_grad(const KernelTypes& types) {
  return [s = std::make_shared<Backward>(types.inputs[1].shape)](const KernelCall& call) {
    dots_grad(*s, input_of<float>(call, 0), input_of<float>(call, 1), output_of<float>(call));
  };
}

constexpr CpuKernel kRecommendationKernels[] = {{"dot_interaction", prepare_dots},
                                                {"dot_interaction_grad", prepare_dots_grad}};

}  // namespace

std::span<const CpuKernel> recommendation_kernels() { return kRecommendationKernels; }

}  // namespace cairn
