// Ids of a power law: the k-th most frequent comes in proportion to 1 / k^exponent.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/random.h"

namespace cairn::testing {

class ZipfIds {
 public:
  ZipfIds(std::size_t ids, double exponent, std::uint64_t seed) : random_(seed) {
    double sum = 0;
    for (std::size_t rank = 1; rank <= ids; ++rank) {
      sum += std::pow(static_cast<double>(rank), -exponent);
      sums_.push_back(sum);
    }
  }
  std::uint64_t next() {
    const double at = random_.uniform() * sums_.back();
    const auto found = std::upper_bound(sums_.begin(), sums_.end() - 1, at);
    return static_cast<std::uint64_t>(found - sums_.begin());
  }

 private:
  Random random_;
  std::vector<double> sums_;
};

}  // namespace cairn::testing
