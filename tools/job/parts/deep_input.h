// DeepInput: what a tower of dense layers reads: the embeddings of an example's ids, and its
// numbers, side by side.
//   Thread  one, as everything that records.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "nn/layers/embedding.h"
#include "tools/job/parts/fitted_features.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

// How the vectors of a bag's ids are combined into one.
Combiner combiner_of(const Job& job);

// All numbers of an example side by side, float32 [b, n]: the standardised ones, and the plain
// ones. Undefined if there are none. `of`: those of these columns alone; empty: all.
Array numbers_of(const FittedFeatures& fitted, const Features& features,
                 const std::set<std::string>& of = {});

class DeepInput {
 public:
  // The input takes the features that `of` names, or all if it is empty. `part` begins the names of
  // their tables, "PART/FEATURE".
  DeepInput(const Job& job, const FittedFeatures& fitted, const std::string& part,
            const std::set<std::string>& of = {});
  // float32 [b, n].
  //   Errors  InvalidArgument: there is no such feature.
  Array operator()(const Features& features) const;

 private:
  FittedFeatures fitted_;
  std::string part_;
  std::set<std::string> of_;
  std::vector<IdFeature> ids_;
  std::vector<nn::Embedding> embeddings_;
};

}  // namespace cairn::tools
