#include "tools/job/parts/retrieval.h"

#include <algorithm>

#include "core/graph/ops.h"

namespace cairn::tools {
namespace {

// How many scores are computed at once.
constexpr std::int64_t kScoresMax = std::int64_t{1} << 22;

}  // namespace

void Retrieval::add(std::span<const std::int64_t> candidates, std::span<const float> weights) {
  for (const std::int64_t candidate : candidates) {
    const auto [found, is_new] = places_.emplace(candidate, this->candidates());
    if (is_new) first_.push_back(place_of_.size());
    place_of_.push_back(found->second);
  }
  weights_.insert(weights_.end(), weights.begin(), weights.end());
}

Retrieval::Metrics Retrieval::evaluate(
    std::span<const float> vectors, const std::vector<std::unique_ptr<nn::Metric>>& metrics) const {
  for (const auto& metric : metrics) metric->reset();
  const std::size_t width = vectors.size() / std::max<std::size_t>(place_of_.size(), 1) / 2;
  const auto of_example = [&](std::size_t example, std::size_t which) {
    return vectors.subspan((2 * example + which) * width, width);
  };
  const auto rows = [&](std::int64_t n, std::vector<float> values) {
    return Array(Tensor::of<float>({n, static_cast<std::int64_t>(width)}, values));
  };
  std::vector<float> all;
  for (const std::size_t example : first_) {
    const auto vector = of_example(example, 1);
    all.insert(all.end(), vector.begin(), vector.end());
  }
  const Array index = rows(candidates(), std::move(all));
  const std::int64_t at_once =
      std::max<std::int64_t>(1, kScoresMax / std::max<std::int64_t>(candidates(), 1));
  for (std::int64_t begin = 0; begin < examples(); begin += at_once) {
    const std::int64_t end = std::min(begin + at_once, examples());
    std::vector<float> queries;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto vector = of_example(static_cast<std::size_t>(i), 0);
      queries.insert(queries.end(), vector.begin(), vector.end());
    }
    const Array scores = matmul(rows(end - begin, std::move(queries)), index, false, true).eval();
    const auto some = [begin, end](const auto& values) {
      return std::vector(values.begin() + begin, values.begin() + end);
    };
    const Array places = Tensor::of<std::int64_t>({end - begin}, some(place_of_));
    Array weights;
    if (!weights_.empty()) weights = Tensor::of<float>({end - begin}, some(weights_));
    for (const auto& metric : metrics) metric->add(metric->summary(scores, places, weights).eval());
  }
  Metrics results;
  for (const auto& metric : metrics) results.emplace_back(metric->name(), metric->result());
  return results;
}

}  // namespace cairn::tools
