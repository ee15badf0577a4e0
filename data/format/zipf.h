// ZipfDistribution: ranks 1 .. n, of which rank k is drawn with a probability proportional to
// k^-exponent. Ids of click logs and words of texts are distributed about so.
//   Source  Hörmann, Derflinger, "Rejection-inversion to generate variates from monotone discrete
//           distributions", ACM Transactions on Modeling and Computer Simulation 6 (1996).
//   Thread  immutable; any.
#pragma once
#include <cstdint>

#include "core/base/random.h"

namespace cairn {

class ZipfDistribution {
 public:
  // n is at least 1, exponent at least 0 (0: uniform). A draw takes the same time for any n.
  //   Errors  InvalidArgument: they are not.
  ZipfDistribution(std::int64_t n, double exponent);
  // A rank in [1, n]. Takes random.uniform() once, or again where a draw is rejected, so that equal
  // seeds give equal ranks.
  std::int64_t operator()(Random& random) const;
  std::int64_t size() const { return n_; }

 private:
  double density(double x) const;   // x^-exponent
  double integral(double x) const;  // of the density, from 1 to x
  double inverse_integral(double y) const;

  std::int64_t n_;
  double exponent_;
  double from_, to_;  // values of the integral between which numbers are drawn
  double shortcut_;   // a draw this close below its rank is accepted without a computation
};

}  // namespace cairn
