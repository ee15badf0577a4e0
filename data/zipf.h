// ZipfDistribution: ranks 1 .. n of which rank k comes with probability proportional to
// k^-exponent.
//   Source  Hörmann, Derflinger, "Rejection-inversion to generate variates from monotone discrete
//           distributions", ACM Transactions on Modeling and Computer Simulation 6 (1996).
// Immutable. Thread: any.
#pragma once
#include <cstdint>

#include "core/base/random.h"

namespace cairn {

class ZipfDistribution {
 public:
  // n of at least 1, exponent of at least 0 (0: uniform). A draw takes the same time for any n.
  //   Errors  InvalidArgument.
  ZipfDistribution(std::int64_t n, double exponent);
  std::int64_t operator()(Random& random) const;
  std::int64_t size() const { return n_; }

 private:
  double density(double x) const;   // x^-exponent
  double integral(double x) const;  // of the density, from 1 to x
  double inverse_integral(double y) const;

  std::int64_t n_;
  double exponent_;
  double from_, to_;  // the integral's values between which is drawn
  double shortcut_;   // so close below a rank every draw is taken
};

}  // namespace cairn
