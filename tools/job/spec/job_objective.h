// Objective: what a job's network is trained to say, by [model] objective:
//
//   binary      one logit: is the label 1? Sigmoid cross-entropy
//   regression  one number, which is the label's. The squared, Huber's or the absolute error
//   multiclass  a logit for each class; the label is a class id. Softmax cross-entropy
//   ranking     a score, which orders the examples of a list; the label is how relevant one is. A
//               softmax over the list, or BPR over its pairs
//   retrieval   a query's vector and a candidate's (RetrievalNetwork, with the loss); there is no
//               label
#pragma once
#include <string>
#include <vector>

#include "core/graph/array.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

// The names that model.objective may have.
const std::vector<std::string>& objectives();
// Those of regression that model.loss may have, the default first.
const std::vector<std::string>& regression_losses();
// Those of ranking.
const std::vector<std::string>& ranking_losses();

// Mean and deviation by which a label is standardised; 0 and 1: it is learnt as it is.
struct LabelScale {
  float mean = 0, stddev = 1;
};

// Its functions of arrays are called within a traced function.
//   Thread  one.
class Objective {
 public:
  // A job that was verified. The network learns (label - mean) / stddev; truths and predictions
  // are in the label's own unit.
  explicit Objective(const Job& job, LabelScale scale = {});
  // The target that is learnt, [b]: 0 or 1 by a threshold, a class id, or the label's number.
  Array truth(const Array& label) const;
  // One loss per example, [b], from the network's outputs, [b, outputs], and the truths. For
  // ranking, `groups` is int32 or int64 [b], with one number for all examples of a list.
  Array losses(const Array& outputs, const Array& truth, const Array& groups = {}) const;
  // The values that metrics evaluate: probabilities [b] or [b, classes], or numbers or scores [b].
  Array prediction(const Array& outputs) const;

 private:
  Array weighted(const Array& losses, const Array& truth) const;

  std::string objective_, loss_;
  float huber_delta_;
  LabelScale scale_;
  JobLabel label_;
  std::vector<float> class_weights_;
};

}  // namespace cairn::tools
