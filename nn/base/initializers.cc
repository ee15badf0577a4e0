#include "nn/base/initializers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "nn/base/names.h"

namespace cairn::nn {
namespace {

// The deviation of a standard normal that is drawn again beyond ±2.
constexpr float kTruncatedDeviation = 0.87962566103423978f;

enum class Fan { kIn, kMean };

// Uniform or normal of variance scale / fan.
Initializer of_variance(float scale, Fan which, bool uniform, std::int64_t fan_in,
                        std::int64_t fan_out, std::uint64_t seed) {
  const double fan =
      which == Fan::kIn ? static_cast<double>(fan_in) : 0.5 * static_cast<double>(fan_in + fan_out);
  const float variance = static_cast<float>(scale / std::max(fan, 1.0));
  if (!uniform)
    return Initializer::truncated_normal(0, std::sqrt(variance) / kTruncatedDeviation, seed);
  const float limit = std::sqrt(3 * variance);
  return Initializer::uniform(-limit, limit, seed);
}

InitializerRule by_variance(float scale, Fan which, bool uniform) {
  return [=](std::int64_t fan_in, std::int64_t fan_out, std::uint64_t seed) {
    return of_variance(scale, which, uniform, fan_in, fan_out, seed);
  };
}

const std::map<std::string, InitializerRule>& rules() {
  using Number = std::int64_t;
  using Seed = std::uint64_t;
  static const std::map<std::string, InitializerRule> all{
      {"glorot_normal", by_variance(1, Fan::kMean, false)},
      {"glorot_uniform",
       [](Number in, Number out, Seed seed) { return Initializer::glorot_uniform(in, out, seed); }},
      {"he_normal", by_variance(2, Fan::kIn, false)},
      {"he_uniform", by_variance(2, Fan::kIn, true)},
      {"lecun_normal", by_variance(1, Fan::kIn, false)},
      {"lecun_uniform", by_variance(1, Fan::kIn, true)},
      {"ones", constant(1)},
      {"random_normal",
       [](Number, Number, Seed seed) { return Initializer::normal(0, 0.05f, seed); }},
      {"random_uniform",
       [](Number, Number, Seed seed) { return Initializer::uniform(-0.05f, 0.05f, seed); }},
      {"truncated_normal",
       [](Number, Number, Seed seed) { return Initializer::truncated_normal(0, 0.05f, seed); }},
      {"zeros", [](Number, Number, Seed) { return Initializer::zeros(); }},
  };
  return all;
}

using Rows = std::vector<std::vector<double>>;

// Gram and Schmidt, each row against those before it. Random rows are nearly never dependent; two
// passes keep them orthogonal to the last digits.
void make_orthonormal(Rows& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t j = 0; j < i; ++j) {
        double product = 0;
        for (std::size_t k = 0; k < rows[i].size(); ++k) product += rows[i][k] * rows[j][k];
        for (std::size_t k = 0; k < rows[i].size(); ++k) rows[i][k] -= product * rows[j][k];
      }
    double squares = 0;
    for (const double value : rows[i]) squares += value * value;
    for (double& value : rows[i]) value /= std::sqrt(squares);
  }
}

}  // namespace

InitializerRule initializer(const std::string& name) {
  return find_named(rules(), "initializer", name);
}

InitializerRule constant(float value) {
  return
      [value](std::int64_t, std::int64_t, std::uint64_t) { return Initializer::constant(value); };
}

Initializer orthogonal(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  if (rows < 1 || columns < 1)
    throw InvalidArgumentError(
        str("an orthogonal matrix has at least one row and column, got ", rows, " x ", columns));
  const bool wide = rows <= columns;
  const std::int64_t count = std::min(rows, columns), width = std::max(rows, columns);
  const std::uint64_t key = random_key(seed, "orthogonal");
  Rows vectors(static_cast<std::size_t>(count), std::vector<double>(width));
  std::uint64_t drawn = 0;
  for (auto& vector : vectors)
    for (double& value : vector) value = double{standard_normal(philox(key, drawn++, 0))};
  make_orthonormal(vectors);
  Tensor matrix(DType::kFloat32, Shape{rows, columns});
  const auto values = matrix.mutable_values<float>();
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      values[static_cast<std::size_t>(r * columns + c)] =
          static_cast<float>(wide ? vectors[r][c] : vectors[c][r]);
  return Initializer::from(std::move(matrix));
}

Initializer KernelInitializer::resolve(std::int64_t fan_in, std::int64_t fan_out,
                                       std::uint64_t seed) const {
  return rule_ ? rule_(fan_in, fan_out, seed) : Initializer::glorot_uniform(fan_in, fan_out, seed);
}

}  // namespace cairn::nn
