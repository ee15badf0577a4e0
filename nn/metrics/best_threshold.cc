#include "nn/metrics/best_threshold.h"

#include <limits>
#include <optional>

namespace cairn::nn {
namespace {

constexpr double kNoThreshold = std::numeric_limits<double>::quiet_NaN();

// The weights of the examples on either side of a threshold.
struct Split {
  double true_positives = 0, false_positives = 0;
  double positives = 0, negatives = 0;  // of all examples

  double precision() const { return true_positives / (true_positives + false_positives); }
  double recall() const { return true_positives / positives; }
};

// Nothing: the split is not as good as it has to be.
std::optional<double> value_of(const BestThresholdOptions& options, const Split& split) {
  const double right_negatives = split.negatives - split.false_positives;
  switch (options.goal) {
    case ThresholdGoal::kF1:
      return 2 * split.true_positives /
             (split.true_positives + split.false_positives + split.positives);
    case ThresholdGoal::kAccuracy:
      return (split.true_positives + right_negatives) / (split.positives + split.negatives);
    case ThresholdGoal::kBalancedAccuracy:
      return (split.recall() + right_negatives / split.negatives) / 2;
    case ThresholdGoal::kRecall:
      return split.precision() >= options.least ? std::optional(split.recall()) : std::nullopt;
    case ThresholdGoal::kPrecision:
      return split.recall() >= options.least ? std::optional(split.precision()) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

BestThreshold::BestThreshold(BestThresholdOptions options)
    : options_(std::move(options)), histogram_({.name = options_.name}) {}

// From the highest bucket down. A threshold below the lowest one that holds examples would call all
// of them positive, which 0 may not do: of a prediction that is 0 it says no.
double BestThreshold::result() const {
  const std::vector<double>&positives = histogram_.positives(), &negatives = histogram_.negatives();
  Split split;
  for (std::size_t i = 0; i < positives.size(); ++i) {
    split.positives += positives[i];
    split.negatives += negatives[i];
  }
  if (split.positives <= 0 || split.negatives <= 0) return kNoThreshold;
  double best = -1, threshold = kNoThreshold;
  for (std::size_t i = positives.size(); i-- > 0;) {
    if (positives[i] <= 0 && negatives[i] <= 0) continue;
    split.true_positives += positives[i];
    split.false_positives += negatives[i];
    const std::optional<double> value = value_of(options_, split);
    if (!value || *value <= best) continue;
    std::size_t next = i;  // the bucket behind the empty ones below this one
    while (next > 0 && positives[next - 1] <= 0 && negatives[next - 1] <= 0) --next;
    best = *value;
    threshold = next == 0 ? 0 : histogram_.least_of((static_cast<double>(next) + i) / 2);
  }
  return threshold;
}

}  // namespace cairn::nn
