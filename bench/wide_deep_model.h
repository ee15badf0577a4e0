// Wide & Deep as other systems' benchmarks have it: eight tables [1000, 8], a wide table [28000, 1]
// summed over ten ids, a linear part over the numbers, an MLP 72-128-64-1; Adagrad on everything.
#pragma once
#include <string>
#include <vector>

#include "bench/training.h"
#include "bench/wide_deep_data.h"
#include "nn/nn.h"

namespace cairn::bench {

class WideDeepModel {
 public:
  WideDeepModel();
  Array logits(const Features& features) const;

 private:
  std::vector<nn::Embedding> tables_;
  nn::Embedding wide_;
  nn::Dense wide_numbers_;
  nn::Mlp tower_;
};

// It on the records of `data`, trained by Adagrad.
TrainedModel trained_wide_deep(const std::string& data, std::int64_t prefetch,
                               std::int64_t batch = kWideDeepBatch);

}  // namespace cairn::bench
