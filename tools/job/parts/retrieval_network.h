// RetrievalNetwork: the network of model.kind = "two_tower", which finds candidates for queries: a
// tower over the features of model.query, and one over those of model.candidate.
//   Thread  one, as everything that records.
#pragma once
#include "nn/layers/two_tower.h"
#include "tools/job/parts/deep_input.h"
#include "tools/job/parts/fitted_features.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

class RetrievalNetwork {
 public:
  RetrievalNetwork(const Job& job, const FittedFeatures& features);
  // One per example, [b]: the cross-entropy of its candidate among those of the batch, whose scores
  // are corrected by their shares of the training data (nn/losses/ranking_losses.h).
  Array losses(const Features& features) const;
  // [b, d] each.
  Array queries(const Features& features) const { return towers_.embed_query(query_(features)); }
  Array candidates(const Features& features) const {
    return towers_.embed_candidate(candidate_(features));
  }

 private:
  FittedFeatures features_;
  DeepInput query_, candidate_;
  nn::TwoTower towers_;
};

}  // namespace cairn::tools
