// Evaluator: evaluates a job's model on test data, batch by batch, and computes the metrics.
//
//   binary, regression, multiclass  each metric's own summary of a batch, which add up; those of
//                                   lists, which a binary job may name, as of a ranking
//   ranking                         the score of every example: a list may lie in several batches,
//                                   so that metrics are computed once all scores are there
//   retrieval                       the vectors of every example's query and candidate: all
//                                   candidates of the data are ranked for each query
//   Thread  one.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "model/steps/step_runner.h"
#include "tools/job/parts/job_model.h"
#include "tools/job/spec/job_metrics.h"

namespace cairn::tools {

inline constexpr const char* kThreshold = "threshold";

class Evaluator {
 public:
  using Metrics = MetricResults;
  virtual ~Evaluator() = default;
  // The examples as summaries() wants them, in batches; of data with the job's features.
  virtual Dataset batches(const Dataset& data) const = 0;
  // Recorded: float32, of which those of a batch's pieces add up to the batch's.
  virtual Outputs summaries(const JobNetwork& network, const Batch& batch) const = 0;
  // Takes those of every batch of the data once, in any order, behind a reset().
  virtual void reset() = 0;
  virtual void add(const std::vector<Tensor>& summaries) = 0;
  virtual Metrics result() const = 0;
};

// Makes the evaluate for the job's objective. If model.threshold is a rule, the validation data has
// the metric kThreshold as well. All references outlive the evaluate. `evaluated`: with the job's
// features; empty: there is no data. For metrics of lists the data is read once, for its lists and
// labels or candidates, which stay in memory.
//   Errors  for metrics of lists, those of RankedLists and of reading the data.
std::unique_ptr<Evaluator> make_judge(const Job& job, const FittedFeatures& features,
                                      const std::optional<EvaluationData>& evaluated);

}  // namespace cairn::tools
