// Layers that bring activations to mean 0 and variance 1.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "nn/base/layer.h"
#include "nn/base/layer_name.h"
#include "nn/layers/regularizers.h"

namespace cairn::nn {

struct LayerNormalizationOptions {
  float epsilon = 1e-3f;
  bool center = true;     // has beta
  bool scale = true;      // has gamma
  std::string name = "";  // "layer_normalization", or as the model names it
};

// (x - mean) / sqrt(variance + epsilon) · gamma + beta, with mean and variance of each example's
// last axis: x float32 [..., n]. Variables NAME/gamma (ones) and NAME/beta (zeros), [n] each.
//   Errors  InvalidArgument: epsilon not above 0; x not float32 [..., n] with n known.
//   Source  Ba, Kiros, Hinton, arXiv:1607.06450.
class LayerNormalization {
 public:
  explicit LayerNormalization(LayerNormalizationOptions options = {});
  Array operator()(const Array& x) const;
  // InvalidArgument: the layer was not called in this scope yet.
  std::vector<Variable> variables() const { return variables_.made(name_.get()); }
  const LayerName& layer_name() const { return name_; }

 private:
  LayerNormalizationOptions options_;
  LayerName name_;
  LayerVariables variables_;
};

// The reference's arguments, with its defaults.
struct BatchNormalizationOptions {
  float momentum = 0.99f;  // of a moving average, what remains of it at a step; in [0, 1]
  float epsilon = 1e-3f;
  bool center = true;  // has beta
  bool scale = true;   // has gamma
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  std::string name = "";  // "batch_normalization", or as the model names it
};

// (x - mean) / sqrt(variance + epsilon) · gamma + beta for each channel, the last axis: x float32
// [..., c]. Variables [c] each: NAME/gamma (ones), NAME/beta (zeros), and NAME/moving_mean (zeros)
// and NAME/moving_variance (ones), which are not trainable.
//   Training   (nn/base/training_scope.h) normalises by the replica's own batch, and moves each
//              moving average once per call towards the batch's value: moving -= (1 - momentum) ·
//              (moving - value). With replicas in sync that is the mean of their values; the moving
//              averages that the call reads are those of before. Asynchronous closures' moves add
//              up. Of images, rank 4, the variance that enters the average is that of the sample,
//              divided by n - 1, as in the reference, and the batch's, divided by n, otherwise.
//   Otherwise  normalises by the moving averages, and moves nothing.
//   Errors     InvalidArgument: momentum outside [0, 1], epsilon not above 0; x not float32 [...,
//              c] of rank 2 or above with c known. When run: a batch whose mean or variance is not
//              finite, which leaves the averages as they were. FailedPrecondition: training in the
//              cross-replica context of several replicas.
//   Source     Ioffe, Szegedy, arXiv:1502.03167.
class BatchNormalization {
 public:
  explicit BatchNormalization(BatchNormalizationOptions options = {});
  Array operator()(const Array& x) const;
  // gamma and beta, if there are any, then the moving mean and the moving variance.
  // InvalidArgument: the layer was not called in this scope yet.
  std::vector<Variable> variables() const { return variables_.made(name_.get()); }
  Variable moving_mean() const;
  Variable moving_variance() const;
  const LayerName& layer_name() const { return name_; }

 private:
  std::vector<Variable> make(VariableCreator& creator, std::int64_t channels) const;
  Array of_batch(const Array& x, const Array& gamma, const Array& beta,
                 const std::vector<Variable>& variables) const;
  void move(const Variable& moving, const Array& value, const char* what) const;

  BatchNormalizationOptions options_;
  LayerName name_;
  LayerVariables variables_;
};

}  // namespace cairn::nn
