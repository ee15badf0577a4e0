#include "tools/judge.h"

#include <cmath>

#include "core/graph/ops.h"
#include "data/dataset_iterator.h"
#include "tools/job_lists.h"

namespace cairn::tools {
namespace {

// A model whose output is not finite ends the run instead of being scored.
Array outputs_of(const JobNetwork& network, const Batch& batch) {
  return check_numerics(network.logits(batch.features), "the model's output");
}

class PointwiseJudge final : public Judge {
 public:
  PointwiseJudge(const Job& job, const FittedFeatures& features, const JobNetwork& network)
      : batch_(job.evaluation.batch),
        features_(features),
        metrics_(network.objective().metrics()) {}
  Dataset batches(const Dataset& data) const override { return data.batch(batch_); }
  Outputs summaries(const JobNetwork& network, const Batch& batch) const override {
    const Array prediction = network.objective().prediction(outputs_of(network, batch));
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

// Every example brings its number. A batch's scores lie in the places of its examples, and behind
// them the batch's own number, told by its first example: so they add up over the pieces of a
// batch, and it does not matter in which order batches are judged.
class ListJudge final : public Judge {
 public:
  ListJudge(const Job& job, const FittedFeatures& features, const JobNetwork& network,
            const std::optional<JudgedData>& judged)
      : batch_(job.evaluation.batch), metrics_(network.objective().metrics()) {
    if (!judged) return;
    lists_ = read_lists(job, features, judged->data, judged->key);
    scores_.resize(static_cast<std::size_t>(lists_.examples()));
  }
  Dataset batches(const Dataset& data) const override {
    const Dataset numbers = Dataset::range(lists_.examples())
                                .batch(batch_)
                                .map([](const Features& each) {
                                  return Outputs{{kNumber, each["value"]}};
                                })
                                .unbatch();
    return Dataset::zip({data, numbers}).batch(batch_);
  }
  Outputs summaries(const JobNetwork& network, const Batch& batch) const override {
    const Array score = network.objective().prediction(outputs_of(network, batch));
    const Array number = batch.features[kNumber], size(batch_);
    const Array place = floor_mod(number, size);
    const Array of_batch = cast(div(number - place, size), DType::kFloat32);
    const Array first = cast(equal(place, Array(std::int64_t{0})), DType::kFloat32);
    return {{"scores", concat({unsorted_segment_sum(score, place, batch_),
                               reshape(reduce_sum(first * of_batch), {1})},
                              0)}};
  }
  void reset() override {}
  void add(const std::vector<Tensor>& summaries) override {
    const auto told = summaries.front().values<float>();
    const auto begin = static_cast<std::size_t>(std::llround(told.back()) * batch_);
    CAIRN_CHECK(begin < scores_.size(), "a batch behind the end of the data");
    const std::size_t end = std::min(begin + static_cast<std::size_t>(batch_), scores_.size());
    std::copy_n(told.begin(), end - begin, scores_.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  Metrics result() const override { return lists_.judge(scores_, metrics_); }

 private:
  std::int64_t batch_;
  std::vector<std::unique_ptr<nn::Metric>> metrics_;
  RankedLists lists_{"the data"};
  std::vector<float> scores_;
};

}  // namespace

std::unique_ptr<Judge> make_judge(const Job& job, const FittedFeatures& features,
                                  const JobNetwork& network,
                                  const std::optional<JudgedData>& judged) {
  if (job.model.objective == "ranking")
    return std::make_unique<ListJudge>(job, features, network, judged);
  return std::make_unique<PointwiseJudge>(job, features, network);
}

}  // namespace cairn::tools
