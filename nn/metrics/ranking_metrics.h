// Metrics of rankings: each example is a list of n items with scores, and the metric is the mean
// over the lists.
//
//   Shapes   scores [b, n]. The label is one of
//            - [b, n], the relevance of each item: 0, or more for better ones; items above 0 count
//              as relevant. Below 0: there is no such item, the list is shorter than n.
//            - int32 or int64, [b] or [b, 1]: the place in the list of the one relevant item.
//            Weights, if given, one per list.
//   Lists    without a relevant item (an id that is no place among them) are left out.
//   Ties     count against the model: of equal scores, less relevant items come first. A score
//            that is NaN is below all others. So a model that scores all items alike earns the
//            least.
//   Cost     b · n; but with a label [b, n] Ndcg, RecallAtK and GroupedAuc compare all pairs of a
//            list: b · n² numbers in memory. n must be known when the summary is recorded.
//   Result   NaN until a list counted.
//   Errors   InvalidArgument: shapes that do not fit, when the summary is recorded; k below 0, at
//            once.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nn/metrics/metrics.h"

namespace cairn::nn {

// The base of the metrics below, and of a program's own: the mean over the lists of one value each.
// Summary [2].
class ListMetric : public Metric {
 public:
  struct Values {
    Array values, counts;  // float32 [b] each; a list counts 1 or 0
  };
  // Recorded; `name` is the metric's, for errors.
  using Function =
      std::function<Values(const std::string& name, const Array& scores, const Array& label)>;

  //   Errors  InvalidArgument: the function is empty.
  ListMetric(std::string name, Function values, Direction direction = Direction::kUnknown);
  const std::string& name() const override { return name_; }
  Direction direction() const override { return direction_; }
  Array summary(const Array& prediction, const Array& label,
                const Array& weights = {}) const override;
  void add(const Tensor& summary) override { mean_.add(summary, name_); }
  void merge(const ListMetric& other) { mean_.merge(other.mean_); }
  double result() const override { return mean_.result(); }
  void reset() override { mean_.reset(); }
  std::unique_ptr<Metric> clone() const override {
    return std::make_unique<ListMetric>(name_, values_, direction_);
  }

 private:
  std::string name_;
  Function values_;
  Direction direction_;
  MeanAccumulator mean_;
};

// The options of metrics that look at the first k items; k = 0: at the whole list.
struct TopOptions {
  std::int64_t k = 0;
  std::string name = {};  // if empty, the metric's: "ndcg", or "ndcg@10" for k = 10
};

// The share of the pairs of a relevant and an irrelevant item that are in the right order, equal
// scores one half: the exact AUC of each list. Lists of one class are left out. Labels [b, n] only.
class GroupedAuc final : public ListMetric {
 public:
  explicit GroupedAuc(const std::string& name = "grouped_auc");
};

// The gains of the first k items, each divided by log2(1 + its rank, from 1 on), over the same sum
// of the best order.
//   Source  Järvelin, Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM
//           Transactions on Information Systems 20 (2002); the exponential gain: Burges et al.,
//           "Learning to rank using gradient descent", ICML 2005.
enum class Gain : std::uint8_t {
  kExponential,  // 2^relevance - 1
  kLinear,       // the relevance
};
struct NdcgOptions {
  std::int64_t k = 0;  // 0: the whole list
  Gain gain = Gain::kExponential;
  std::string name = {};  // if empty, "ndcg" or "ndcg@k"
};
class Ndcg final : public ListMetric {
 public:
  explicit Ndcg(NdcgOptions options = {});
};

// The share of a list's relevant items that are among the first k.
class RecallAtK final : public ListMetric {
 public:
  explicit RecallAtK(TopOptions options);  // "recall"
};

// 1 if a relevant item is among the first k, else 0.
class HitRate final : public ListMetric {
 public:
  explicit HitRate(TopOptions options);  // "hit_rate"
};

// The mean reciprocal rank: 1 over the rank, from 1 on, of the first relevant item; 0 if it is not
// among the first k.
class Mrr final : public ListMetric {
 public:
  explicit Mrr(TopOptions options = {});  // "mrr"
};

}  // namespace cairn::nn
