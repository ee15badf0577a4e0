// RankedLists: the lists of a ranking's data, whose items are examples of their own, and the
// metrics of scores for them.
//   Thread  one.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "nn/metrics/metrics.h"

namespace cairn::tools {

class RankedLists {
 public:
  using Metrics = std::vector<std::pair<std::string, double>>;
  // The rows of a list, at most: metrics compare all of its pairs.
  static constexpr std::int64_t kRowsMax = 4096;

  // `data` is what errors call the data: "data.test".
  explicit RankedLists(std::string data) : data_(std::move(data)) {}

  // The next examples, in the order of the data: to which list each belongs, and how relevant it
  // is. Weights, if given: a list has the mean of its examples'.
  //   Errors  InvalidArgument, naming the example by its number, from 1 on: a relevance below 0, or
  //           none.
  void add(std::span<const std::int64_t> lists, std::span<const float> relevance,
           std::span<const float> weights = {});
  // Orders them by list: to be called once, behind the last add().
  //   Errors  InvalidArgument: a list has more than kRowsMax rows.
  void finish();

  std::int64_t examples() const { return static_cast<std::int64_t>(relevance_.size()); }
  std::int64_t lists() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
  // The results of these metrics of lists for a score per example, in the order of the data. Lists
  // whose rows are all alike count as the metric says.
  Metrics evaluate(std::span<const float> scores,
                   const std::vector<std::unique_ptr<nn::Metric>>& metrics) const;

 private:
  std::int64_t length(std::size_t list) const { return begins_[list + 1] - begins_[list]; }
  void evaluate_some(std::span<const float> scores, std::span<const std::size_t> some,
                     const std::vector<std::unique_ptr<nn::Metric>>& metrics) const;

  std::string data_;
  std::vector<std::int64_t> list_of_;
  std::vector<float> relevance_, weights_;
  std::vector<std::int64_t> order_;   // examples, list by list
  std::vector<std::int64_t> begins_;  // where each list begins in it; and its end
  std::vector<std::size_t> by_length_;
};

}  // namespace cairn::tools
