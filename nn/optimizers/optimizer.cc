// From options to rules. An optimizer has no arithmetic of its own: it names a kind and its
// constants (core/graph/rules/rule_def.cc), and the shards compute
// (core/kernels/cpu/apply_rule.cc). Which kind stands for which API is the table in
// nn/optimizers/optimizer.h.
#include "nn/optimizers/optimizer.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/element.h"
#include "nn/optimizers/optimizer_names.h"

namespace cairn::nn {
namespace {

float flag(bool on) { return on ? 1.0f : 0.0f; }

// A rule's share (see RuleKind): the newer optimizers compute 1 - beta in double, the legacy ones
// in float32, which 0 stands for. The last bits of a trained model depend on it.
float share(double decay, Api api) {
  return api == Api::kLegacy ? 0.0f : static_cast<float>(1.0 - decay);
}

UpdateRule sgd_rule(const SgdOptions& o) {
  if (o.nesterov && o.momentum == 0)
    throw InvalidArgumentError("SGD: nesterov wants a momentum above 0");
  if (o.momentum == 0) return {RuleKind::kSgd, {}};
  return make_rule(o.api == Api::kLegacy ? RuleKind::kMomentum : RuleKind::kMomentumTable,
                   {{"momentum", o.momentum}, {"nesterov", flag(o.nesterov)}});
}

UpdateRule adagrad_rule(const AdagradOptions& o) {
  return make_rule(RuleKind::kAdagrad, {{"initial_accumulator", o.initial_accumulator_value},
                                        {"epsilon", o.epsilon},
                                        {"epsilon_under_root", flag(o.api == Api::kKeras2)}});
}

UpdateRule rmsprop_rule(const RmsPropOptions& o) {
  const auto rho = static_cast<float>(o.rho);
  if (o.momentum == 0)
    return make_rule(o.centered ? RuleKind::kRmsPropCentered : RuleKind::kRmsProp,
                     {{"rho", rho},
                      {"epsilon", o.epsilon},
                      {"epsilon_under_root", flag(o.api == Api::kKeras2)},
                      {"share", share(o.rho, o.api)}});
  const RuleKind rows =
      o.centered ? RuleKind::kRmsPropCenteredMomentum : RuleKind::kRmsPropMomentum;
  const RuleKind table =
      o.centered ? RuleKind::kRmsPropCenteredMomentumTable : RuleKind::kRmsPropMomentumTable;
  return make_rule(o.api == Api::kLegacy ? rows : table, {{"rho", rho},
                                                          {"epsilon", o.epsilon},
                                                          {"momentum", o.momentum},
                                                          {"share", share(o.rho, o.api)}});
}

UpdateRule adam_rule(RuleKind kind, const AdamOptions& o) {
  return make_rule(kind, {{"beta_1", static_cast<float>(o.beta_1)},
                          {"beta_2", static_cast<float>(o.beta_2)},
                          {"epsilon", o.epsilon},
                          {"share_1", share(o.beta_1, o.api)},
                          {"share_2", share(o.beta_2, o.api)}});
}

UpdateRule lazy_adam_rule(const AdamOptions& o) {
  if (o.amsgrad) throw InvalidArgumentError("LazyAdam: there is no amsgrad; take Adam");
  return adam_rule(RuleKind::kLazyAdam, o);
}

UpdateRule adamax_rule(const AdamaxOptions& o) {
  return make_rule(o.api == Api::kLegacy ? RuleKind::kAdamax : RuleKind::kAdamaxTable,
                   {{"beta_1", static_cast<float>(o.beta_1)},
                    {"beta_2", static_cast<float>(o.beta_2)},
                    {"epsilon", o.epsilon},
                    {"share_1", share(o.beta_1, o.api)}});
}

UpdateRule nadam_rule(const NadamOptions& o) {
  const bool newer = o.api == Api::kKeras2;
  return make_rule(RuleKind::kNadam, {{"beta_1", static_cast<float>(o.beta_1)},
                                      {"beta_2", static_cast<float>(o.beta_2)},
                                      {"epsilon", o.epsilon},
                                      {"schedule_decay", newer ? 1.0f : o.schedule_decay},
                                      {"moves_every_row", flag(newer)}});
}

UpdateRule adadelta_rule(const AdadeltaOptions& o) {
  return make_rule(
      o.api == Api::kLegacy ? RuleKind::kAdadelta : RuleKind::kAdadeltaTable,
      {{"rho", static_cast<float>(o.rho)}, {"epsilon", o.epsilon}, {"share", share(o.rho, o.api)}});
}

UpdateRule ftrl_rule(const FtrlOptions& o) {
  return make_rule(o.api == Api::kLegacy ? RuleKind::kFtrl : RuleKind::kFtrlTable,
                   {{"learning_rate_power", o.learning_rate_power},
                    {"initial_accumulator", o.initial_accumulator_value},
                    {"l1", o.l1_regularization_strength},
                    {"l2", o.l2_regularization_strength},
                    {"beta", o.beta},
                    {"l2_shrinkage", o.l2_shrinkage_regularization_strength}});
}

}  // namespace

CustomOptimizer::CustomOptimizer(CustomOptimizerOptions o)
    : Optimizer(o.name.empty() ? std::string(rule_name(o.rule)) : o.name, o.rule, o.learning_rate,
                o.clipping) {}

Sgd::Sgd(SgdOptions o) : Optimizer(o.name, sgd_rule(o), o.learning_rate, o.clipping) {}

Adagrad::Adagrad(AdagradOptions o)
    : Optimizer(o.name, adagrad_rule(o), o.learning_rate, o.clipping) {}

RowwiseAdagrad::RowwiseAdagrad(RowwiseAdagradOptions o)
    : Optimizer(
          o.name,
          make_rule(RuleKind::kRowwiseAdagrad,
                    {{"initial_accumulator", o.initial_accumulator_value}, {"epsilon", o.epsilon}}),
          o.learning_rate, o.clipping) {}

RmsProp::RmsProp(RmsPropOptions o)
    : Optimizer(o.name, rmsprop_rule(o), o.learning_rate, o.clipping) {}

Adam::Adam(AdamOptions o)
    : Optimizer(o.name, adam_rule(o.amsgrad ? RuleKind::kAmsgrad : RuleKind::kAdam, o),
                o.learning_rate, o.clipping) {}

LazyAdam::LazyAdam(AdamOptions o)
    : Optimizer(o.name == "adam" ? "lazy_adam" : o.name, lazy_adam_rule(o), o.learning_rate,
                o.clipping) {}

Adamax::Adamax(AdamaxOptions o) : Optimizer(o.name, adamax_rule(o), o.learning_rate, o.clipping) {}

Nadam::Nadam(NadamOptions o) : Optimizer(o.name, nadam_rule(o), o.learning_rate, o.clipping) {}

Adadelta::Adadelta(AdadeltaOptions o)
    : Optimizer(o.name, adadelta_rule(o), o.learning_rate, o.clipping) {}

Ftrl::Ftrl(FtrlOptions o) : Optimizer(o.name, ftrl_rule(o), o.learning_rate, o.clipping) {}

// ---- by names ----

namespace {

using MakeOptimizer = std::function<std::shared_ptr<Optimizer>()>;

template <typename O>
MakeOptimizer maker_of() {
  return [] { return std::make_shared<O>(); };
}

const std::map<std::string, MakeOptimizer>& known_optimizers() {
  static const std::map<std::string, MakeOptimizer> all = {
      {"sgd", maker_of<Sgd>()},
      {"adam", maker_of<Adam>()},
      {"rmsprop", maker_of<RmsProp>()},
      {"adagrad", maker_of<Adagrad>()},
      {"adamax", maker_of<Adamax>()},
      {"adadelta", maker_of<Adadelta>()},
      {"nadam", maker_of<Nadam>()},
      {"ftrl", maker_of<Ftrl>()},
      {"lazy_adam", maker_of<LazyAdam>()},
      {"rowwise_adagrad", maker_of<RowwiseAdagrad>()}};
  return all;
}

}  // namespace

std::shared_ptr<Optimizer> make_optimizer(const std::string& name) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto found = known_optimizers().find(lower);
  if (found != known_optimizers().end()) return found->second();
  std::vector<std::string> names;
  for (const auto& [each, made] : known_optimizers()) names.push_back(each);
  const std::string near = nearest_name(lower, names);
  throw InvalidArgumentError(str("there is no optimizer \"", name, "\"",
                                 near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

}  // namespace cairn::nn
