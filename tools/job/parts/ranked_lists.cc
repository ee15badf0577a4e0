#include "tools/job/parts/ranked_lists.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/graph/array.h"

namespace cairn::tools {
namespace {

// Numbers that a metric may hold at once: of lists of n items it compares n · n pairs.
constexpr std::int64_t kPairsMax = std::int64_t{1} << 24;

}  // namespace

void RankedLists::add(std::span<const std::int64_t> lists, std::span<const float> relevance,
                      std::span<const float> weights) {
  for (const float each : relevance) {
    if (!(each >= 0))  // not so if it is NaN
      throw InvalidArgumentError(
          str(data_, ": example ", relevance_.size() + 1, " has the label ", each,
              ": the relevance of an item is a number from 0 on, larger for better ones"));
    relevance_.push_back(each);
  }
  list_of_.insert(list_of_.end(), lists.begin(), lists.end());
  weights_.insert(weights_.end(), weights.begin(), weights.end());
}

void RankedLists::finish() {
  order_.resize(list_of_.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto list_of = [this](std::int64_t i) { return list_of_[static_cast<std::size_t>(i)]; };
  std::ranges::stable_sort(order_, {}, list_of);
  for (std::size_t i = 0; i < order_.size(); ++i)
    if (i == 0 || list_of(order_[i]) != list_of(order_[i - 1]))
      begins_.push_back(static_cast<std::int64_t>(i));
  begins_.push_back(static_cast<std::int64_t>(order_.size()));
  by_length_.resize(begins_.size() - 1);
  std::iota(by_length_.begin(), by_length_.end(), 0);
  std::ranges::stable_sort(by_length_, {}, [this](std::size_t list) { return length(list); });
  if (by_length_.empty() || length(by_length_.back()) <= kRowsMax) return;
  throw InvalidArgumentError(
      str(data_, ": example ", order_[static_cast<std::size_t>(begins_[by_length_.back()])] + 1,
          " begins a list of ", length(by_length_.back()), " rows: at most ", kRowsMax,
          " can be judged, since metrics compare all pairs of a list"));
}

// Lists of about the same length at once, each filled up to the longest.
RankedLists::Metrics RankedLists::evaluate(
    std::span<const float> scores, const std::vector<std::unique_ptr<nn::Metric>>& metrics) const {
  for (const auto& metric : metrics) metric->reset();
  for (std::size_t begin = 0; begin < by_length_.size();) {
    std::size_t end = begin + 1;
    const auto pairs_with = [&](std::size_t last) {
      const std::int64_t n = length(by_length_[last]);
      return n * n * static_cast<std::int64_t>(last + 1 - begin);
    };
    while (end < by_length_.size() && pairs_with(end) <= kPairsMax) ++end;
    evaluate_some(scores, std::span(by_length_).subspan(begin, end - begin), metrics);
    begin = end;
  }
  Metrics results;
  for (const auto& metric : metrics) results.emplace_back(metric->name(), metric->result());
  return results;
}

void RankedLists::evaluate_some(std::span<const float> scores, std::span<const std::size_t> some,
                                const std::vector<std::unique_ptr<nn::Metric>>& metrics) const {
  // One item would be read as the place of the relevant one.
  const std::int64_t n = std::max<std::int64_t>(length(some.back()), 2);
  const auto lists = static_cast<std::int64_t>(some.size());
  std::vector<float> score(static_cast<std::size_t>(lists * n), 0.0f);
  std::vector<float> relevance(score.size(), -1.0f);  // there is no such item
  std::vector<float> weight(some.size(), 0.0f);
  for (std::size_t row = 0; row < some.size(); ++row) {
    const std::int64_t items = length(some[row]);
    for (std::int64_t i = 0; i < items; ++i) {
      const auto example =
          static_cast<std::size_t>(order_[static_cast<std::size_t>(begins_[some[row]] + i)]);
      const auto at = static_cast<std::size_t>(static_cast<std::int64_t>(row) * n + i);
      score[at] = scores[example];
      relevance[at] = relevance_[example];
      if (!weights_.empty()) weight[row] += weights_[example] / static_cast<float>(items);
    }
  }
  const Array all = Tensor::of<float>({lists, n}, score);
  const Array truth = Tensor::of<float>({lists, n}, relevance);
  Array weights;
  if (!weights_.empty()) weights = Tensor::of<float>({lists}, weight);
  for (const auto& metric : metrics) metric->add(metric->summary(all, truth, weights).eval());
}

}  // namespace cairn::tools
