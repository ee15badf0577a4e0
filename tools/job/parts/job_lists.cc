#include "tools/job/parts/job_lists.h"

#include <span>
#include <unordered_map>

#include "core/graph/ops.h"
#include "data/dataset/dataset_iterator.h"
#include "tools/job/spec/job_objective.h"

namespace cairn::tools {
namespace {

constexpr std::int64_t kReadAtOnce = 4096;

// A batch's lists or candidates, and its weights.
struct ListedBatch {
  Tensor groups, weights;
  Tensor label;  // as it stands there; undefined: there is none
};

template <typename See>
void for_each_batch(const FittedFeatures& features, const Dataset& examples, See see) {
  const Dataset batches = examples.batch(kReadAtOnce);
  const ElementSpec& spec = batches.element_spec();
  const auto elements = open(batches);
  while (const auto batch = elements->next()) {
    const auto column = [&](const std::string& name) { return (*batch)[spec.find(name)]; };
    ListedBatch listed{cast(Array(column(features.group)), DType::kInt64).eval(), {}, {}};
    if (!spec.label.empty()) listed.label = column(spec.label);
    if (!features.weight.empty())
      listed.weights = cast(Array(column(features.weight)), DType::kFloat32).eval();
    see(listed);
  }
}

std::span<const float> weights_in(const ListedBatch& batch) {
  return batch.weights.defined() ? batch.weights.values<float>() : std::span<const float>();
}

// Looks at examples one after another.
class Order {
 public:
  explicit Order(const Job& job) : job_(job) {}

  void see(std::int64_t list, float relevance) {
    ++number_;
    if (!(relevance >= 0))  // not so if it is NaN
      throw InvalidArgumentError(str("data.train: example ", number_, " has the label ", relevance,
                                     ", and model.objective is \"ranking\": the relevance of an "
                                     "item is a number from 0 on, larger for better ones"));
    if (list == list_) {
      differ_ = differ_ || relevance != relevance_;
      return;
    }
    list_ = list;
    relevance_ = relevance;
    const auto [began, is_new] = begun_.emplace(list, number_);
    if (is_new) return;
    throw InvalidArgumentError(
        str("data.group: examples ", began->second, " and ", number_,
            " of data.train have one value of \"", job_.data.group,
            "\", and others lie between them: sort the files by that column"));
  }
  void verify_that_some_differ() const {
    if (differ_) return;
    throw InvalidArgumentError(
        str("data.group: no two examples of data.train that lie one after another have one value "
            "of \"",
            job_.data.group, "\" and different labels: there is no order to learn"));
  }

 private:
  const Job& job_;
  std::int64_t number_ = 0, list_ = -1;
  float relevance_ = 0;  // of the list's first example
  bool differ_ = false;
  std::unordered_map<std::int64_t, std::int64_t> begun_;  // by list, with which example
};

}  // namespace

RankedLists read_lists(const Job& job, const FittedFeatures& features, const Dataset& examples,
                       const std::string& key) {
  RankedLists lists(key);
  const Objective objective(job);
  for_each_batch(features, examples, [&](const ListedBatch& batch) {
    const Tensor relevance = objective.truth(batch.label).eval();
    lists.add(batch.groups.values<std::int64_t>(), relevance.values<float>(), weights_in(batch));
  });
  lists.finish();
  return lists;
}

Retrieval read_candidates(const FittedFeatures& features, const Dataset& examples) {
  Retrieval retrieval;
  for_each_batch(features, examples, [&retrieval](const ListedBatch& batch) {
    retrieval.add(batch.groups.values<std::int64_t>(), weights_in(batch));
  });
  return retrieval;
}

void verify_training_lists(const Job& job, const FittedFeatures& features) {
  if (job.model.objective != "ranking") return;
  Order order(job);
  const Objective objective(job);
  for_each_batch(features, train_source(job, features), [&](const ListedBatch& batch) {
    const Tensor truth = objective.truth(batch.label).eval();
    const auto lists = batch.groups.values<std::int64_t>();
    const auto relevance = truth.values<float>();
    for (std::size_t i = 0; i < lists.size(); ++i) order.see(lists[i], relevance[i]);
  });
  order.verify_that_some_differ();
}

}  // namespace cairn::tools
