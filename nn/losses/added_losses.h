// AddedLosses: what layers add to a model's loss while they are called, such as regularization
// terms: the reference's `add_loss` and `model.losses`.
//
//   nn::AddedLosses added;
//   Array loss = mean(nn::mean_squared_error(network(x), y));
//   for (const Array& term : added.terms()) loss = loss + term;
//
// Model does so by itself.
//   Thread  each thread has its own.
#pragma once
#include <string>
#include <vector>

#include "core/graph/array.h"

namespace cairn::nn {

class AddedLosses {
 public:
  // Collects what is added on this thread from now on, until it is destroyed. Where collectors
  // nest, the innermost one gets it.
  AddedLosses();
  ~AddedLosses();
  AddedLosses(const AddedLosses&) = delete;
  AddedLosses& operator=(const AddedLosses&) = delete;

  // In the order in which they were added.
  const std::vector<Array>& terms() const { return terms_; }

 private:
  friend void add_loss(const std::string& key, const Array& loss);
  AddedLosses* const outer_;
  std::vector<std::string> keys_;
  std::vector<Array> terms_;
};

// Adds `loss`, a float32 scalar that is the same for every replica, to the collector that is open;
// without one it has no effect. Of equal keys, which a layer that is called twice gives, the first
// counts alone.
//   Errors  InvalidArgument: it is no float32 scalar.
void add_loss(const std::string& key, const Array& loss);

}  // namespace cairn::nn
