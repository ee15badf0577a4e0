#include "tools/job/parts/retrieval_network.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "nn/layers/dense.h"
#include "nn/losses/ranking_losses.h"

namespace cairn::tools {
namespace {

std::set<std::string> set_of(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

nn::Layer tower(const Job& job, const std::string& name) {
  return nn::Mlp(
      nn::MlpOptions{.units = job.model.hidden, .name = name + "/tower", .seed = job.model.seed});
}

nn::TwoTowerOptions towers_of(const Job& job) {
  return {.query = tower(job, "query"),
          .candidate = tower(job, "candidate"),
          .temperature = static_cast<float>(job.model.temperature),
          .normalize = job.model.normalize};
}

}  // namespace

RetrievalNetwork::RetrievalNetwork(const Job& job, const FittedFeatures& features)
    : features_(features),
      query_(job, features, "query", set_of(job.model.query)),
      candidate_(job, features, "candidate", set_of(job.model.candidate)),
      towers_(towers_of(job)) {}

Array RetrievalNetwork::losses(const Features& features) const {
  const Array ids = features_.groups_of(features);
  const CandidateShares& shares = *features_.shares;
  const Array place = find_key(ids, Array(shares.candidates));
  const Array log_share = gather(Array(shares.log_share), place);
  return nn::in_batch_softmax(towers_(query_(features), candidate_(features)),
                              {.log_probability = log_share, .ids = ids});
}

}  // namespace cairn::tools
