// Ranks without a sort: the rank of an item is the number of items that come before it, which
// comparisons and a sum give.
#include "nn/metrics/ranking_metrics.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/graph/ops.h"
#include "nn/base/example_pairs.h"
#include "nn/base/layer.h"
#include "nn/metrics/metric_inputs.h"

namespace cairn::nn {
namespace {

Array truth_as_float(const Array& truth) { return cast(truth, DType::kFloat32); }

// The items of each list, float32 [b, n] each.
struct Items {
  Array scores, relevance;
  Array present;              // 1, or 0 where the list is shorter
  bool one_relevant = false;  // the label was a place
};

std::int64_t known_length(const std::string& what, const Array& scores) {
  if (scores.shape()[1] == Shape::kUnknown)
    throw InvalidArgumentError(str(what, ": the length of the lists must be known; the scores are ",
                                   scores.type().to_string()));
  return scores.shape()[1];
}

Items items_of(const std::string& metric, const Array& prediction, const Array& label) {
  const std::string what = metric_text(metric);
  check_pair_defined(what, prediction, label);
  if (prediction.rank() != 2) refuse_pair(what, prediction, label);
  Items items;
  Array scores = to_float(prediction);
  // NaN alone differs from itself.
  const float lowest = -std::numeric_limits<float>::infinity();
  items.scores = where(equal(scores, scores), scores, lowest);
  items.one_relevant = label.rank() == 1 ||
                       (label.rank() == 2 && label.shape()[1] == 1 && prediction.shape()[1] != 1);
  if (items.one_relevant) {
    items.relevance = one_hot(class_ids(what, prediction, label), known_length(what, prediction));
    items.present = ones_like(items.relevance);
    return items;
  }
  auto [unused, y] = one_row_each(what, prediction, label);
  items.relevance = y;
  items.present = truth_as_float(greater_equal(y, 0.0f));
  return items;
}

Array relevant_items(const Items& items) { return truth_as_float(greater(items.relevance, 0.0f)); }

Array any_relevant(const Items& items) { return reduce_max(relevant_items(items), {1}); }

// [b]: how many items come before the first relevant one. Before it come the irrelevant items
// whose scores are no lower than the highest of a relevant one.
Array before_first(const Items& items) {
  const float lowest = -std::numeric_limits<float>::infinity();
  Array is_relevant = relevant_items(items);
  Array best = reduce_max(where(greater(is_relevant, 0.0f), items.scores, lowest), {1}, true);
  Array ahead = truth_as_float(greater_equal(items.scores, best));
  return reduce_sum(ahead * (1.0f - is_relevant) * items.present, {1});
}

// bool [n, n]: where the column is before the row.
Array earlier_place(std::int64_t n) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < place.size(); ++i) place[i] = static_cast<std::int64_t>(i);
  const Tensor places = Tensor::of<std::int64_t>(Shape{n}, place);
  return less(expand_dims(places, 0), expand_dims(places, 1));
}

// [b, n]: how many items are before each one if they are ordered by `first`, the highest first,
// then by `then`, the lowest first, then by their places.
Array before_each(const Array& first, const Array& then, const Array& present, std::int64_t n) {
  // The item whose rank is asked for is in a row, what it is compared with in a column.
  Array a = expand_dims(first, 2), b = expand_dims(first, 1);
  Array c = expand_dims(then, 2), d = expand_dims(then, 1);
  Array wins = logical_or(less(d, c), logical_and(equal(d, c), earlier_place(n)));
  Array before = logical_or(greater(b, a), logical_and(equal(b, a), wins));
  return reduce_sum(truth_as_float(before) * expand_dims(present, 1), {2});
}

Array ranks_of(const std::string& metric, const Items& items) {
  const std::int64_t n = known_length(metric_text(metric), items.scores);
  return before_each(items.scores, items.relevance, items.present, n);
}

// 1 where fewer than k items are before.
Array among_first(const Array& before, std::int64_t k) {
  return k == 0 ? ones_like(before) : truth_as_float(less(before, static_cast<float>(k)));
}

// 1 / log2(1 + rank) for the first k, else 0.
Array discounts(const Array& before, std::int64_t k) {
  return std::log(2.0f) / log(before + 2.0f) * among_first(before, k);
}

Array gains_of(const Items& items, Gain gain) {
  Array relevance = relu(items.relevance);  // absent items have none
  return gain == Gain::kLinear ? relevance : expm1(relevance * std::log(2.0f));
}

// A list whose divisor is 0 does not count, so that any finite number will do.
Array ratio_of(const Array& a, const Array& b) { return a / where(greater(b, 0.0f), b, 1.0f); }

void check_k(const std::string& metric, std::int64_t k) {
  if (k < 0)
    throw InvalidArgumentError(
        str(metric_text(metric), ": k must be at least 1, or 0 for the whole list; got ", k));
}

std::string name_at(const std::string& given, const char* metric, std::int64_t k) {
  if (!given.empty()) return given;
  return k == 0 ? metric : str(metric, "@", k);
}

// ---- what each metric is of the lists ----

using ListValues = ListMetric::Values;

ListValues grouped_auc_of_lists(const std::string& metric, const Array& scores,
                                const Array& label) {
  Items items = items_of(metric, scores, label);
  if (items.one_relevant) refuse_pair(metric_text(metric), scores, label);
  Array good = relevant_items(items), bad = items.present - good;
  // The scores of relevant items in rows, of irrelevant ones in columns.
  Array a = expand_dims(items.scores, 2), b = expand_dims(items.scores, 1);
  Array order = truth_as_float(greater(a, b)) + truth_as_float(equal(a, b)) * 0.5f;
  Array right = reduce_sum(order * expand_dims(good, 2) * expand_dims(bad, 1), {1, 2});
  Array pairs = reduce_sum(good, {1}) * reduce_sum(bad, {1});
  return {ratio_of(right, pairs), truth_as_float(greater(pairs, 0.0f))};
}

ListValues ndcg_of_lists(const std::string& metric, const Array& scores, const Array& label,
                         std::int64_t k, Gain gain) {
  Items items = items_of(metric, scores, label);
  Array counts = any_relevant(items);
  if (items.one_relevant) return {discounts(before_first(items), k), counts};
  const std::int64_t n = known_length(metric_text(metric), scores);
  Array gain_of_each = gains_of(items, gain);
  Array best = before_each(items.relevance, zeros_like(items.relevance), items.present, n);
  Array got = reduce_sum(gain_of_each * discounts(ranks_of(metric, items), k), {1});
  return {ratio_of(got, reduce_sum(gain_of_each * discounts(best, k), {1})), counts};
}

ListValues recall_of_lists(const std::string& metric, const Array& scores, const Array& label,
                           std::int64_t k) {
  Items items = items_of(metric, scores, label);
  Array counts = any_relevant(items);
  if (items.one_relevant) return {among_first(before_first(items), k), counts};
  Array is_relevant = relevant_items(items);
  Array found = reduce_sum(is_relevant * among_first(ranks_of(metric, items), k), {1});
  return {ratio_of(found, reduce_sum(is_relevant, {1})), counts};
}

ListValues hit_rate_of_lists(const std::string& metric, const Array& scores, const Array& label,
                             std::int64_t k) {
  Items items = items_of(metric, scores, label);
  return {among_first(before_first(items), k), any_relevant(items)};
}

ListValues mrr_of_lists(const std::string& metric, const Array& scores, const Array& label,
                        std::int64_t k) {
  Items items = items_of(metric, scores, label);
  Array before = before_first(items);
  return {among_first(before, k) / (before + 1.0f), any_relevant(items)};
}

// The function of a metric whose only option is k.
template <ListValues (*values)(const std::string&, const Array&, const Array&, std::int64_t)>
ListMetric::Function at_k(std::int64_t k) {
  return [k](const std::string& metric, const Array& scores, const Array& label) {
    return values(metric, scores, label, k);
  };
}

}  // namespace

ListMetric::ListMetric(std::string name, Function values, Direction direction)
    : name_(std::move(name)), values_(std::move(values)), direction_(direction) {
  if (!values_) throw InvalidArgumentError(metric_text(name_) + " has no function");
}

Array ListMetric::summary(const Array& prediction, const Array& label, const Array& weights) const {
  const Values lists = values_(name_, prediction, label);
  return mean_summary(lists.values, lists.counts * metric_weights(name_, weights, lists.counts));
}

GroupedAuc::GroupedAuc(const std::string& name)
    : ListMetric(name, grouped_auc_of_lists, Direction::kRises) {}

Ndcg::Ndcg(NdcgOptions options)
    : ListMetric(
          name_at(options.name, "ndcg", options.k),
          [k = options.k, gain = options.gain](const std::string& metric, const Array& scores,
                                               const Array& label) {
            return ndcg_of_lists(metric, scores, label, k, gain);
          },
          Direction::kRises) {
  check_k(name(), options.k);
}

RecallAtK::RecallAtK(TopOptions options)
    : ListMetric(name_at(options.name, "recall", options.k), at_k<recall_of_lists>(options.k),
                 Direction::kRises) {
  check_k(name(), options.k);
}

HitRate::HitRate(TopOptions options)
    : ListMetric(name_at(options.name, "hit_rate", options.k), at_k<hit_rate_of_lists>(options.k),
                 Direction::kRises) {
  check_k(name(), options.k);
}

Mrr::Mrr(TopOptions options)
    : ListMetric(name_at(options.name, "mrr", options.k), at_k<mrr_of_lists>(options.k),
                 Direction::kRises) {
  check_k(name(), options.k);
}

}  // namespace cairn::nn
