// How the features of an example interact: dot products, cross layers, factorization machines.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/ops.h"
#include "nn/layers/dense.h"

namespace cairn::nn {

// DLRM's interaction of an example's f vectors, each [b, d]: their pairwise dot products, [b, f (f
// - 1) / 2], with the first vector (that of the dense features) in front of them if `keep_first`.
//   Source  Naumov et al., "Deep learning recommendation model for personalization and
//           recommendation systems", 2019.
//   Errors  InvalidArgument: fewer than two vectors.
struct DotInteractionOptions {
  bool keep_first = true;
};
class DotInteraction {
 public:
  explicit DotInteraction(DotInteractionOptions options = {}) : options_(options) {}
  Array operator()(const std::vector<Array>& vectors) const;

 private:
  DotInteractionOptions options_;
};

struct CrossNetworkOptions {
  int layers = 3;
  std::string name = "";  // "cross", or as the model names it
  std::uint64_t seed = 0;
};

// The cross network of DCN-v2: x[l + 1] = x[0] (kernel[l] x[l] + bias[l]) + x[l], [b, n] -> [b, n].
// Dense layers of its own named NAME/dense_0, NAME/dense_1, ...
//   Source  Wang et al., "DCN V2: Improved deep & cross network and practical lessons for web-scale
//           learning to rank systems", WWW 2021, equation 1.
//   Errors  InvalidArgument: layers below 1; x not [batch, n] with n known.
class CrossNetwork {
 public:
  explicit CrossNetwork(CrossNetworkOptions options = {});
  Array operator()(const Array& x) const;
  const std::vector<Dense>& layers() const { return *layers_; }  // none before the first call
  std::vector<Variable> variables() const;
  const LayerName& layer_name() const { return name_; }

 private:
  CrossNetworkOptions options_;
  LayerName name_;
  // Made when n is known; shared by copies.
  std::shared_ptr<std::vector<Dense>> layers_ = std::make_shared<std::vector<Dense>>();
};

struct CrossOptions {
  // Above 0: the kernel is a product of two, [n, projection_dim] and [projection_dim, n].
  std::int64_t projection_dim = 0;
  std::string name = "";  // "cross", or as the model names it
  std::uint64_t seed = 0;
};

// One stage of such a network, for programs that put something of their own between them: x0
// (kernel x + bias) + x, both [b, n] -> [b, n]. It has Dense layers of its own: NAME/dense_0 and,
// with a projection, NAME/dense_1.
//   Source  as CrossNetwork; with a projection its equation 2.
//   Errors  InvalidArgument: a projection below 0; x0 and x not both [batch, n] with n known.
class Cross {
 public:
  explicit Cross(CrossOptions options = {});
  Array operator()(const Array& x0, const Array& x) const;
  Array operator()(const Array& x0) const { return (*this)(x0, x0); }  // the first stage
  std::vector<Variable> variables() const;                             // none before the first call
  const LayerName& layer_name() const { return name_; }

 private:
  CrossOptions options_;
  LayerName name_;
  std::shared_ptr<std::vector<Dense>> layers_ = std::make_shared<std::vector<Dense>>();
};

// The pairwise dot products of an example's vectors, summed: each [b, d] -> [b, 1].
//   Source  Rendle, "Factorization machines", ICDM 2010, lemma 3.1: half of (sum of v)^2 - sum of
//           v^2.
//   Errors  InvalidArgument: fewer than two vectors.
Array factorization_machine(const std::vector<Array>& vectors);
// The same as a layer. Nothing in it is learnt: what is learnt are the vectors.
struct FactorizationMachine {
  Array operator()(const std::vector<Array>& vectors) const {
    return factorization_machine(vectors);
  }
};

}  // namespace cairn::nn
