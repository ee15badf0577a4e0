#include "data/format/zipf.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace cairn {

ZipfDistribution::ZipfDistribution(std::int64_t n, double exponent) : n_(n), exponent_(exponent) {
  if (n < 1)
    throw InvalidArgumentError(str("a Zipf distribution over ", n, " ranks; at least 1 is wanted"));
  if (!(exponent >= 0) || !std::isfinite(exponent))
    throw InvalidArgumentError(
        str("a Zipf distribution with exponent ", exponent, "; at least 0 is wanted"));
  from_ = integral(1.5) - 1;
  to_ = integral(static_cast<double>(n) + 0.5);
  shortcut_ = 2 - inverse_integral(integral(2.5) - density(2));
}

// Draws from a continuous density above the histogram, by inverting its integral, and rejects what
// lies between the two.
std::int64_t ZipfDistribution::operator()(Random& random) const {
  for (;;) {
    const double y = to_ + random.uniform() * (from_ - to_);
    const double x = inverse_integral(y);
    const std::int64_t rank = std::clamp(static_cast<std::int64_t>(x + 0.5), std::int64_t{1}, n_);
    const auto k = static_cast<double>(rank);
    if (k - x <= shortcut_ || y >= integral(k + 0.5) - density(k)) return rank;
  }
}

double ZipfDistribution::density(double x) const { return std::exp(-exponent_ * std::log(x)); }

// (x^(1 - exponent) - 1) / (1 - exponent) and its limit, the logarithm: near it the quotient would
// lose its digits.
double ZipfDistribution::integral(double x) const {
  const double log_x = std::log(x), t = (1 - exponent_) * log_x;
  return std::abs(t) > 1e-8 ? std::expm1(t) / t * log_x : (1 + t / 2) * log_x;
}

double ZipfDistribution::inverse_integral(double y) const {
  const double t = std::max(-1.0, (1 - exponent_) * y);
  return std::exp(std::abs(t) > 1e-8 ? std::log1p(t) / t * y : (1 - t / 2) * y);
}

}  // namespace cairn
