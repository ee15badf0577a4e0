#include "tools/evaluations.h"

#include <algorithm>
#include <cstdio>

#include "core/graph/ops.h"
#include "tools/job_warnings.h"

namespace cairn::tools {
Evaluations::Evaluations(const Job& job, const FittedFeatures& features, StepRunner& runner,
                         const JobNetwork& network, const std::optional<JudgedData>& judged)
    : job_(job), runner_(runner), metrics_(network.objective().metrics()), stopping_(job) {
  make_function(network, features);
  if (!judged) return;
  name_ = judged->name;
  const std::int64_t batch = job.evaluation.batch;
  batches_ = (cardinality(judged->data, &lines_) + batch - 1) / batch;
  refuse_empty_files(lines_, judged->key);
  if (batches_ == 0)
    throw InvalidArgumentError(str("the ", name_, " data, of ", judged->key,
                                   ", holds no examples. ",
                                   skipped_rows_text(lines_, judged->key)));
  data_ = runner_.test_data(judged->data.batch(batch).repeat(), name_);
}

// A model whose output is not finite ends the run instead of being scored.
void Evaluations::make_function(const JobNetwork& network, const FittedFeatures& features) {
  function_ = runner_.strategy().function(
      [this, &network, &features](Iterator input) {
        Batch batch = input.get_next();
        const Array outputs = check_numerics(network.logits(batch.features), "the model's output");
        const Array prediction = network.objective().prediction(outputs);
        const Array truth = network.objective().truth(batch.label);
        const Array weights = features.weights_of(batch.features);
        Outputs summaries;
        for (const auto& metric : metrics_)
          summaries.emplace_back(metric->name(), metric->summary(prediction, truth, weights));
        return summaries;
      },
      "evaluate");
}

void Evaluations::begin(std::int64_t step, std::int64_t every) {
  every_ = every;
  next_ = every > 0 ? (step / every + 1) * every : 0;
  last_at_ = system_clock().now();
}

void Evaluations::schedule_if_due(std::int64_t step) {
  if (every_ == 0 || step < next_) return;
  schedule(step);
  next_ += every_;
}

void Evaluations::schedule_if_time(std::int64_t step) {
  const double every = job_.evaluation.every.seconds;
  if (every <= 0) return;
  const std::chrono::duration<double> since = system_clock().now() - last_at_;
  if (runner_.as_the_chief_says(since.count() > every)) schedule(step);
}

void Evaluations::schedule(std::int64_t step) {
  if (!have_data()) return;
  Scheduled evaluation;
  evaluation.step = step;
  last_at_ = system_clock().now();
  for (std::int64_t i = 0; i < batches_; ++i)
    evaluation.parts.push_back(runner_.schedule(function_, data_));
  scheduled_.push_back(std::move(evaluation));
}

// Summaries are added only once all of them are there: the metrics have one state, and a later
// evaluation must not find half of an earlier one in it.
std::optional<std::string> Evaluations::next_ended(bool wait) {
  while (!scheduled_.empty()) {
    const auto& parts = scheduled_.front().parts;
    const auto waiting = std::find_if(parts.begin(), parts.end(),
                                      [](const StepResult& part) { return !part.ready(); });
    if (waiting == parts.end()) {
      const Scheduled ended = std::move(scheduled_.front());
      scheduled_.pop_front();
      return finish(ended);
    }
    if (!wait || !waiting->ready_soon()) return std::nullopt;
  }
  return std::nullopt;
}

std::string Evaluations::finish(const Scheduled& evaluation) {
  for (auto& metric : metrics_) metric->reset();
  for (const StepResult& part : evaluation.parts) {
    const auto summaries = part.get_all();
    for (std::size_t i = 0; i < metrics_.size(); ++i) metrics_[i]->add(summaries[i]);
  }
  newest_.clear();
  newest_step_ = evaluation.step;
  std::string text = str("step ", evaluation.step, ", ", name_, " data:");
  for (const auto& metric : metrics_) {
    newest_.emplace_back(metric->name(), metric->result());
    char number[32];
    std::snprintf(number, sizeof number, "%.4f", metric->result());
    text += str("  ", metric->name(), " ", number);
  }
  return text;
}

}  // namespace cairn::tools
