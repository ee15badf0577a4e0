#include "tools/job/run/evaluator.h"

#include <cmath>

#include "core/graph/ops.h"
#include "data/dataset/dataset_iterator.h"
#include "nn/metrics/best_threshold.h"
#include "tools/job/parts/job_lists.h"

namespace cairn::tools {
namespace {

// A model whose output is not finite ends the run instead of being scored.
Array outputs_of(const JobNetwork& network, const Batch& batch) {
  return check_numerics(network.logits(batch.features), "the model's output");
}

Array predictions_of(const JobNetwork& network, const Batch& batch) {
  return network.objective().prediction(outputs_of(network, batch));
}

class PointwiseJudge final : public Evaluator {
 public:
  PointwiseJudge(const Job& job, const FittedFeatures& features,
                 const std::optional<EvaluationData>& evaluated)
      : batch_(job.evaluation.batch),
        features_(features),
        metrics_(make_metrics(job, MetricOf::kExamples)) {
    if (!job.model.threshold.rule.empty() && evaluated && evaluated->name == kValidation)
      metrics_.push_back(std::make_unique<nn::BestThreshold>(meaning_of(job.model.threshold.rule)));
  }
  Dataset batches(const Dataset& data) const override { return data.batch(batch_); }
  Outputs summaries(const JobNetwork& network, const Batch& batch) const override {
    return summaries_of(predictions_of(network, batch), network, batch);
  }
  Outputs summaries_of(const Array& prediction, const JobNetwork& network,
                       const Batch& batch) const {
    const Array truth = network.objective().truth(batch.label);
    const Array weights = features_.weights_of(batch.features);
    Outputs summaries;
    for (const auto& metric : metrics_)
      summaries.emplace_back(metric->name(), metric->summary(prediction, truth, weights));
    return summaries;
  }
  void reset() override {
    for (auto& metric : metrics_) metric->reset();
  }
  void add(const std::vector<Tensor>& summaries) override {
    for (std::size_t i = 0; i < metrics_.size(); ++i) metrics_[i]->add(summaries[i]);
  }
  Metrics result() const override {
    Metrics results;
    for (const auto& metric : metrics_) results.emplace_back(metric->name(), metric->result());
    return results;
  }

 private:
  std::int64_t batch_;
  const FittedFeatures& features_;
  std::vector<std::unique_ptr<nn::Metric>> metrics_;
};

constexpr const char* kNumber = "data.number";

// Evaluators by values that the network gives for every example, equally many for each. The
// examples are numbered: a batch's summary holds the values in the places of its examples, and
// behind them the batch's number, which its first example gives. So the summaries of a batch's
// pieces add up, and it does not matter in which order batches are evaluated.
class NumberedJudge : public Evaluator {
 public:
  explicit NumberedJudge(const Job& job)
      : batch_(job.evaluation.batch), metrics_(make_metrics(job, MetricOf::kLists)) {}
  Dataset batches(const Dataset& data) const override {
    const Dataset numbers = Dataset::range(examples())
                                .batch(batch_)
                                .map([](const Features& each) {
                                  return Outputs{{kNumber, each["value"]}};
                                })
                                .unbatch();
    return Dataset::zip({data, numbers}).batch(batch_);
  }
  Outputs summaries(const JobNetwork& network, const Batch& batch) const override {
    return numbered(values_of(network, batch), batch);
  }
  // `values`: float32 [b, n].
  Outputs numbered(const Array& values, const Batch& batch) const {
    const Array number = batch.features[kNumber], size(batch_);
    const Array place = floor_mod(number, size);
    const Array of_batch = cast(div(number - place, size), DType::kFloat32);
    const Array first = cast(equal(place, Array(std::int64_t{0})), DType::kFloat32);
    return {{"values", concat({reshape(unsorted_segment_sum(values, place, batch_), {-1}),
                               reshape(reduce_sum(first * of_batch), {1})},
                              0)}};
  }
  void reset() override {}
  void add(const std::vector<Tensor>& summaries) override {
    const auto told = summaries.front().values<float>();
    const std::size_t width = (told.size() - 1) / static_cast<std::size_t>(batch_);
    values_.resize(static_cast<std::size_t>(examples()) * width);
    const std::size_t begin =
        static_cast<std::size_t>(std::llround(told.back())) * (told.size() - 1);
    CAIRN_CHECK(begin < values_.size(), "a batch behind the end of the data");
    const std::size_t end = std::min(begin + told.size() - 1, values_.size());
    std::copy_n(told.begin(), end - begin, values_.begin() + static_cast<std::ptrdiff_t>(begin));
  }

 protected:
  using Values = std::vector<float>;
  using OfLists = std::vector<std::unique_ptr<nn::Metric>>;
  virtual std::int64_t examples() const = 0;
  virtual Array values_of(const JobNetwork& network, const Batch& batch) const = 0;
  const Values& values() const { return values_; }
  const OfLists& metrics() const { return metrics_; }

 private:
  std::int64_t batch_;
  OfLists metrics_;
  Values values_;  // of all examples, one after another
};

class ListJudge final : public NumberedJudge {
 public:
  ListJudge(const Job& job, const FittedFeatures& features,
            const std::optional<EvaluationData>& evaluated)
      : NumberedJudge(job) {
    if (evaluated) lists_ = read_lists(job, features, evaluated->data, evaluated->key);
  }
  Metrics result() const override { return lists_.evaluate(values(), metrics()); }

 private:
  std::int64_t examples() const override { return lists_.examples(); }
  Array values_of(const JobNetwork& network, const Batch& batch) const override {
    return expand_dims(predictions_of(network, batch), 1);
  }

  RankedLists lists_{"the data"};
};

// Evaluators a binary model that has metrics of examples and of lists: the network runs once for
// both.
class BinaryJudge final : public Evaluator {
 public:
  BinaryJudge(const Job& job, const FittedFeatures& features,
              const std::optional<EvaluationData>& evaluated)
      : job_(job), examples_(job, features, evaluated), lists_(job, features, evaluated) {}
  Dataset batches(const Dataset& data) const override { return lists_.batches(data); }
  Outputs summaries(const JobNetwork& network, const Batch& batch) const override {
    const Array prediction = predictions_of(network, batch);
    Outputs both = lists_.numbered(expand_dims(prediction, 1), batch);
    for (auto& summary : examples_.summaries_of(prediction, network, batch))
      both.push_back(std::move(summary));
    return both;
  }
  void reset() override {
    lists_.reset();
    examples_.reset();
  }
  void add(const std::vector<Tensor>& summaries) override {
    lists_.add({summaries.front()});
    examples_.add({summaries.begin() + 1, summaries.end()});
  }
  Metrics result() const override { return in_order(job_, examples_.result(), lists_.result()); }

 private:
  const Job& job_;
  PointwiseJudge examples_;
  ListJudge lists_;
};

class RetrievalJudge final : public NumberedJudge {
 public:
  RetrievalJudge(const Job& job, const FittedFeatures& features,
                 const std::optional<EvaluationData>& evaluated)
      : NumberedJudge(job) {
    if (evaluated) retrieval_ = read_candidates(features, evaluated->data);
  }
  Metrics result() const override { return retrieval_.evaluate(values(), metrics()); }

 private:
  std::int64_t examples() const override { return retrieval_.examples(); }
  Array values_of(const JobNetwork& network, const Batch& batch) const override {
    const Array both = concat(
        {network.towers().queries(batch.features), network.towers().candidates(batch.features)}, 1);
    return check_numerics(both, "the towers' vectors");
  }

  Retrieval retrieval_;
};

}  // namespace

std::unique_ptr<Evaluator> make_judge(const Job& job, const FittedFeatures& features,
                                      const std::optional<EvaluationData>& evaluated) {
  if (job.model.objective == "ranking")
    return std::make_unique<ListJudge>(job, features, evaluated);
  if (job.model.objective == "retrieval")
    return std::make_unique<RetrievalJudge>(job, features, evaluated);
  if (!metric_of_lists(job).empty()) return std::make_unique<BinaryJudge>(job, features, evaluated);
  return std::make_unique<PointwiseJudge>(job, features, evaluated);
}

}  // namespace cairn::tools
