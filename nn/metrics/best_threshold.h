// BestThreshold: the probability above which a binary model's examples are best called positive.
//
//     nn::BestThreshold threshold({.goal = nn::ThresholdGoal::kF1});
//     ... summaries of the validation data, as of any metric (nn/metrics/metrics.h) ...
//     const double above = threshold.result();
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "nn/metrics/metrics.h"

namespace cairn::nn {

// The quantity that the threshold is to maximise.
enum class ThresholdGoal : std::uint8_t {
  kF1,                // 2 · precision · recall / (precision + recall)
  kAccuracy,          // the share of the examples that are right
  kBalancedAccuracy,  // the mean of the shares of positives and of negatives that are right
  kRecall,            // the share of positives found, at a precision of at least `least`
  kPrecision,         // the precision, at a recall of at least `least`
};

struct BestThresholdOptions {
  ThresholdGoal goal = ThresholdGoal::kF1;
  double least = 0;
  std::string name = "threshold";
};

// The summary is that of Auc: a histogram of the predictions of each class. The threshold lies
// between two of its 16,384 buckets, in the middle of the empty ones if there are such, so that the
// summaries of all data together tell how many examples of each class lie above it. Of thresholds
// that are equally good, it is the largest.
//   Result  NaN: both classes have not been seen, or no threshold is as good as `least`.
class BestThreshold final : public Metric {
 public:
  explicit BestThreshold(BestThresholdOptions options = {});
  const std::string& name() const override { return options_.name; }
  NeededLabels needed_labels() const override { return NeededLabels::kBothClasses; }
  Array summary(const Array& prediction, const Array& label,
                const Array& weights = {}) const override {
    return histogram_.summary(prediction, label, weights);
  }
  MetricInput input(const Array&) const override { return MetricInput::kProbabilities; }
  void add(const Tensor& summary) override { histogram_.add(summary); }
  double result() const override;
  void reset() override { histogram_.reset(); }
  std::unique_ptr<Metric> clone() const override {
    return std::make_unique<BestThreshold>(options_);
  }

 private:
  BestThresholdOptions options_;
  Auc histogram_;
};

}  // namespace cairn::nn
