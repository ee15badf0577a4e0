// The optimizers: which update rule a variable's gradients go through, with which learning rate and
// constants.
//
//     nn::Adam optimizer({.learning_rate = 0.01f, .amsgrad = true});
//     nn::SGD other({.learning_rate = 0.1f, .momentum = 0.9f, .api = nn::Api::kKeras2});
//
// core/graph/update_rule.h says which paper each follows. Arguments and defaults are tf.keras's.
// Its `decay` is InverseTimeDecay({.initial_learning_rate = rate, .decay_steps = 1, .decay_rate =
// decay}).
//   Errors  InvalidArgument, from the constructor: constants out of range, a negative learning
//           rate.
#pragma once
#include "nn/optimizers/optimizer_base.h"

namespace cairn::nn {

// The reference has every optimizer twice, with the same arguments and defaults, and arithmetic
// that differs where gradients are sparse. kLegacy is tf.keras.optimizers.legacy, kKeras2 is
// tf.keras.optimizers of 2.11 to 2.15, and tf_keras:
//
//                        kLegacy                                    kKeras2
//   SGD with momentum,   given rows                                 every row, as from a dense
//   Adadelta, Adamax                                                gradient of zeros
//   FTRL                 given rows                                 every row: those never given
//                                                                   become 0
//   RMSprop              with momentum given rows; else every       every row's slots decay; with
//                        row's slots decay, given rows move         momentum every row moves
//   Nadam                every row's slots decay, given rows move;  every row moves; 0.96^t
//                        its momentum warms up by 0.96^(schedule_decay t)
//   Adagrad, RMSprop     epsilon beside the root (RMSprop with      epsilon under the root
//                        momentum: under it)
//   SGD, Adagrad: given rows in both, Adam: every row in both. Lion, which the reference has in its
//   newer API alone: given rows under kLegacy, every row under kKeras2.
//
// kLegacy is the default, since its rules suit large tables: the cost of a step is that of the rows
// that it names. With dense gradients the two agree except for where epsilon stands, for Nadam's
// warm-up, and in the last bits.
enum class Api { kLegacy, kKeras2 };

// Stochastic gradient descent: p -= rate * g. With momentum: m = momentum * m - rate * g, p += m;
// with nesterov p moves as if m had been updated once more. Slots: none, or one.
struct SgdOptions {
  LearningRate learning_rate = 0.01f;
  float momentum = 0;
  bool nesterov = false;
  ClippingOptions clipping = {};
  Api api = Api::kLegacy;
  std::string name = "sgd";
};
class Sgd final : public Optimizer {
 public:
  explicit Sgd(SgdOptions options = {});
};
using SGD = Sgd;  // the reference's spelling

// The step of each element shrinks with the root of the sum of its squared gradients. One slot.
struct AdagradOptions {
  LearningRate learning_rate = 0.001f;
  float initial_accumulator_value = 0.1f;
  float epsilon = 1e-7f;
  ClippingOptions clipping = {};
  Api api = Api::kLegacy;
  std::string name = "adagrad";
};
class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(AdagradOptions options = {});
};

// For embedding tables; has no form in the reference, and so no `api`.
struct RowwiseAdagradOptions {
  LearningRate learning_rate = 0.001f;
  float initial_accumulator_value = 0.1f;
  float epsilon = 1e-7f;
  ClippingOptions clipping = {};
  std::string name = "rowwise_adagrad";
};
// Adagrad with one accumulator per row, the mean of the squares of its gradients: an embedding
// table takes little more memory than its parameters.
//   Source  Gupta, Bengio, Weston, "Training Highly Multiclass Classifiers", JMLR 15 (2014).
class RowwiseAdagrad final : public Optimizer {
 public:
  explicit RowwiseAdagrad(RowwiseAdagradOptions options = {});
};

// As Adagrad with a moving average instead of a sum; `centered` uses the variance instead of the
// second moment. One to three slots.
struct RmsPropOptions {
  LearningRate learning_rate = 0.001f;
  double rho = 0.9;
  float momentum = 0;
  float epsilon = 1e-7f;
  bool centered = false;
  ClippingOptions clipping = {};
  Api api = Api::kLegacy;
  std::string name = "rmsprop";
};
class RmsProp final : public Optimizer {
 public:
  explicit RmsProp(RmsPropOptions options = {});
};
using RMSprop = RmsProp;  // the reference's spelling

// Moving averages of the gradient and of its square, with their bias corrected, as if they had not
// begun at zero. Two slots, three with amsgrad, which never lets the second moment shrink.
struct AdamOptions {
  LearningRate learning_rate = 0.001f;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  float epsilon = 1e-7f;
  bool amsgrad = false;
  ClippingOptions clipping = {};
  Api api = Api::kLegacy;  // both touch every row; they round 1 - beta differently
  std::string name = "adam";
};
// The reference's Adam: the moments of every row decay at every step, so a step touches whole
// tables. Use LazyAdam for large ones.
class Adam final : public Optimizer {
 public:
  explicit Adam(AdamOptions options = {});
};
// Adam on the rows that a step names; the others, moments included, stay as they are. Bias
// correction counts the variable's updates.
//   Errors  InvalidArgument: amsgrad, which has no lazy form.
//   Source  Kingma, Ba, "Adam", ICLR 2015; on given rows as tfa.optimizers.LazyAdam.
class LazyAdam final : public Optimizer {
 public:
  explicit LazyAdam(AdamOptions options = {});  // named "lazy_adam" unless another name is given
};

// Adam with the largest recent gradient in place of the second moment. Two slots.
struct AdamaxOptions {
  LearningRate learning_rate = 0.001f;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  float epsilon = 1e-7f;
  ClippingOptions clipping = {};
  Api api = Api::kLegacy;
  std::string name = "adamax";
};
class Adamax final : public Optimizer {
 public:
  explicit Adamax(AdamaxOptions options = {});
};

// Adam with Nesterov's momentum, which warms up. Two slots.
struct NadamOptions {
  LearningRate learning_rate = 0.001f;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  float epsilon = 1e-7f;
  // How fast kLegacy's momentum warms up; kKeras2 has 1 in its place.
  float schedule_decay = 0.004f;
  ClippingOptions clipping = {};
  Api api = Api::kLegacy;
  std::string name = "nadam";
};
class Nadam final : public Optimizer {
 public:
  explicit Nadam(NadamOptions options = {});
};

// Steps in the units of the parameter: the ratio of two moving averages. Two slots.
struct AdadeltaOptions {
  LearningRate learning_rate = 0.001f;
  double rho = 0.95;
  float epsilon = 1e-7f;
  ClippingOptions clipping = {};
  Api api = Api::kLegacy;
  std::string name = "adadelta";
};
class Adadelta final : public Optimizer {
 public:
  explicit Adadelta(AdadeltaOptions options = {});
};

// Options for a rule that the program made itself, by custom_rule() (core/graph/custom_rule.h).
struct CustomOptimizerOptions {
  UpdateRule rule;
  LearningRate learning_rate = 0.001f;
  ClippingOptions clipping = {};
  std::string name = "";  // "": the rule's
};
class CustomOptimizer final : public Optimizer {
 public:
  explicit CustomOptimizer(CustomOptimizerOptions options);
};

// FTRL-proximal: L1 makes parameters exactly 0, for sparse linear models. Two slots.
struct FtrlOptions {
  LearningRate learning_rate = 0.001f;
  // The power of the accumulator by which the rate shrinks; -0.5 is the paper's square root.
  float learning_rate_power = -0.5f;
  float initial_accumulator_value = 0.1f;
  // L1 and L2 are part of the rule's objective; l2_shrinkage is added to the gradient instead.
  float l1_regularization_strength = 0;
  float l2_regularization_strength = 0;
  float beta = 0;
  float l2_shrinkage_regularization_strength = 0;
  ClippingOptions clipping = {};
  Api api = Api::kLegacy;
  std::string name = "ftrl";
};
class Ftrl final : public Optimizer {
 public:
  explicit Ftrl(FtrlOptions options = {});
};

// Steps of one size: the sign of a moving average of the gradients, so rates are smaller than
// Adam's. One slot.
struct LionOptions {
  LearningRate learning_rate = 0.001f;
  double beta_1 = 0.9;   // the average's part in the step, beside the gradient
  double beta_2 = 0.99;  // its part in the next average
  ClippingOptions clipping = {};
  Api api = Api::kLegacy;
  std::string name = "lion";
};
class Lion final : public Optimizer {
 public:
  explicit Lion(LionOptions options = {});
};

}  // namespace cairn::nn
