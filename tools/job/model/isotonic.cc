#include "tools/job/model/isotonic.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/graph/ops.h"

namespace cairn::tools {
namespace {

// Neighbours by their predictions that are given one probability.
struct Pool {
  float first = 0, last = 0;  // predictions
  double weight = 0, sum = 0;
  double mean() const { return sum / weight; }
  void take(const Pool& next) {
    last = next.last;
    weight += next.weight;
    sum += next.sum;
  }
};

// One for each prediction that there is, ascending. Examples without weight say nothing.
std::vector<Pool> ties(const CalibrationSample& sample) {
  std::vector<std::size_t> order(sample.probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return sample.probabilities[i]; });
  std::vector<Pool> pools;
  for (const std::size_t i : order) {
    const float at = sample.probabilities[i];
    const double weight = sample.weight(i);
    if (weight == 0) continue;
    const Pool one{at, at, weight, weight * sample.labels[i]};
    if (!pools.empty() && pools.back().last == at)
      pools.back().take(one);
    else
      pools.push_back(one);
  }
  return pools;
}

// Afterwards the means ascend strictly: pools of one mean are one, too.
std::vector<Pool> without_violators(const std::vector<Pool>& all) {
  std::vector<Pool> pools;
  for (const Pool& next : all) {
    pools.push_back(next);
    while (pools.size() > 1 && pools[pools.size() - 2].mean() >= pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().take(last);
    }
  }
  return pools;
}

// Two neighbours become one where that adds least to the squared error (Ward's criterion), so that
// the rare pools with high probabilities stay apart, and the means still ascend.
class Thinning {
 public:
  explicit Thinning(std::vector<Pool> pools)
      : pools_(std::move(pools)), next_(pools_.size() + 1), before_(pools_.size() + 1) {
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      next_[i] = i + 1;
      before_[i + 1] = i;
    }
    for (std::size_t i = 0; i + 1 < pools_.size(); ++i) pairs_.emplace(cost(i), i);
  }

  std::vector<Pool> down_to(std::size_t most) {
    for (std::size_t left = pools_.size(); left > most; --left) join(pairs_.begin()->second);
    std::vector<Pool> kept;
    for (std::size_t i = 0; i < pools_.size(); i = next_[i]) kept.push_back(pools_[i]);
    return kept;
  }

 private:
  // By how much the squared error grows when pool i is joined with the next one.
  double cost(std::size_t i) const {
    const Pool &a = pools_[i], &b = pools_[next_[i]];
    const double apart = b.mean() - a.mean();
    return a.weight * b.weight / (a.weight + b.weight) * apart * apart;
  }

  void join(std::size_t i) {
    const std::size_t gone = next_[i], behind = next_[gone];
    pairs_.erase({cost(i), i});
    if (behind < pools_.size()) pairs_.erase({cost(gone), gone});
    if (i > 0) pairs_.erase({cost(before_[i]), before_[i]});
    pools_[i].take(pools_[gone]);
    next_[i] = behind;
    before_[behind] = i;
    if (behind < pools_.size()) pairs_.emplace(cost(i), i);
    if (i > 0) pairs_.emplace(cost(before_[i]), before_[i]);
  }

  std::vector<Pool> pools_;
  std::vector<std::size_t> next_, before_;          // beside pools_, and one for the end
  std::set<std::pair<double, std::size_t>> pairs_;  // their costs, and the first of each pair
};

// ---- what is recorded of points ----

// How many of `sorted`, [..., n], are at most x, [b, 1]: int32 [b].
Array count_at_most(const Array& sorted, const Array& x) {
  return reduce_sum(cast(greater_equal(x, sorted), DType::kInt32), {1});
}

Array constant_of(const std::vector<float>& values, const Shape& shape) {
  return {Tensor::of<float>(shape, values)};
}

}  // namespace

IsotonicPoints fit_isotonic(const CalibrationSample& sample) {
  verify_sample(sample);
  std::vector<Pool> pools = without_violators(ties(sample));
  if (pools.size() > kIsotonicPointsMax / 2)
    pools = Thinning(std::move(pools)).down_to(kIsotonicPointsMax / 2);
  IsotonicPoints points;
  const auto add = [&points](float prediction, double probability) {
    points.predictions.push_back(prediction);
    points.probabilities.push_back(static_cast<float>(probability));
  };
  for (const Pool& pool : pools) {
    add(pool.first, pool.mean());
    if (pool.last > pool.first) add(pool.last, pool.mean());
  }
  return points;
}

// A prediction is looked up in two steps, among every 32nd point and then among 32 of them:
// comparing it with all at once would write a number per example and point. Points at infinity
// fill the table behind the last one, so that predictions beyond it have gone 0 of the way to the
// next.
Array calibrated(const IsotonicPoints& points, const Array& probability) {
  constexpr std::size_t kRow = 32;
  static_assert(kIsotonicPointsMax <= kRow * kRow);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = points.predictions, y = points.probabilities, heads;
  CAIRN_CHECK(!x.empty() && x.size() == y.size() && x.size() <= kIsotonicPointsMax,
              "a calibration of ", x.size(), " points");
  const std::size_t rows = x.size() / kRow + 1;
  x.resize(rows * kRow + 1, kInfinity);
  y.resize(rows * kRow + 1, y.back());
  for (std::size_t row = 0; row < rows; ++row) heads.push_back(x[row * kRow]);
  const auto size = static_cast<std::int64_t>(rows * kRow);
  const auto table = [&](std::vector<float> values, std::size_t first, const Shape& shape) {
    return constant_of({values.begin() + static_cast<std::ptrdiff_t>(first),
                        values.begin() + static_cast<std::ptrdiff_t>(first) + size},
                       shape);
  };
  const auto of_row = static_cast<std::int64_t>(kRow), row_count = static_cast<std::int64_t>(rows);

  const Array p = maximum(probability, Array(points.predictions.front()));
  const Array column = reshape(p, {-1, 1});
  const Array row = count_at_most(constant_of(heads, {row_count}), column) - 1;
  const Array in_row = gather(table(x, 0, {row_count, of_row}), row);
  const Array place = row * of_row + count_at_most(in_row, column) - 1;
  const Array x0 = gather(table(x, 0, {size}), place), x1 = gather(table(x, 1, {size}), place);
  const Array y0 = gather(table(y, 0, {size}), place), y1 = gather(table(y, 1, {size}), place);
  return minimum(y0 + (p - x0) / (x1 - x0) * (y1 - y0), y1);
}

}  // namespace cairn::tools
