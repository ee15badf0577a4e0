// From a job file to a dataset and a model: what the features are once the data was looked at, and
// the network over them.
//
// The order of a run is: fit_features(), which reads the data once; train_source() and
// eval_sources(), which describe datasets with those features; JobNetwork, which is called within
// a traced function.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/function.h"
#include "nn/layers/click_model.h"
#include "nn/layers/dense.h"
#include "nn/layers/wide.h"
#include "nn/optimizers/optimizer.h"
#include "tools/job/parts/deep_input.h"
#include "tools/job/parts/fitted_features.h"
#include "tools/job/parts/learning_rates.h"
#include "tools/job/parts/retrieval_network.h"
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_objective.h"

namespace cairn::tools {

// The model of the job over the features: what its Objective reads, [b, JobModel::outputs()].
class JobNetwork {
 public:
  JobNetwork(const Job& job, const FittedFeatures& features);
  Array logits(const Features& features) const;
  // One per example, [b].
  Array losses(const Batch& batch) const;
  // For two towers, which have no logits: they give each example's query and candidate vectors.
  const RetrievalNetwork& towers() const { return *towers_; }
  const Objective& objective() const { return objective_; }
  // Updates the wide part's variables through its optimizer, all others through the other one.
  void minimize(const Array& loss) const;
  LearningRates& learning_rates() { return *learning_rates_; }
  const LearningRates& learning_rates() const { return *learning_rates_; }

 private:
  void make_click_model(const Job& job);
  void verify_tables(const Job& job) const;
  void make_wide(const Job& job);
  // Which parts the kind of model has.
  bool click_on_, wide_on_, deep_on_;
  FittedFeatures features_;
  std::vector<IdFeature> embedded_;
  Objective objective_;
  std::shared_ptr<nn::ClickModel> click_;
  std::shared_ptr<RetrievalNetwork> towers_;
  std::optional<DeepInput> deep_input_;
  std::shared_ptr<nn::Mlp> tower_;
  std::vector<std::shared_ptr<nn::Wide>> wide_;  // one per output
  std::shared_ptr<nn::Dense> wide_numeric_;
  std::shared_ptr<nn::Optimizer> deep_optimizer_, wide_optimizer_;
  std::optional<LearningRates> learning_rates_;
};

}  // namespace cairn::tools
