// From options to rules. An optimizer has no arithmetic of its own: it names a kind and its
// constants (core/graph/rules/rule_def.cc), and the shards compute
// (core/kernels/cpu/apply_rule.cc). Which kind stands for which API is the table in
// nn/optimizers/optimizer.h.
#include "nn/optimizers/optimizer.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
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

UpdateRule lion_rule(const LionOptions& o) {
  return make_rule(
      o.api == Api::kLegacy ? RuleKind::kLion : RuleKind::kLionTable,
      {{"beta_1", static_cast<float>(o.beta_1)}, {"beta_2", static_cast<float>(o.beta_2)}});
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

Lion::Lion(LionOptions o) : Optimizer(o.name, lion_rule(o), o.learning_rate, o.clipping) {}

// ---- by names ----

namespace {

// An argument by name, and the option that it sets.
template <typename Options>
struct Argument {
  std::string name;
  std::variant<float Options::*, double Options::*, bool Options::*> option;
};

template <typename Options>
Options options_of(const OptimizerSettings& settings,
                   const std::vector<Argument<Options>>& arguments) {
  Options options;
  if (settings.learning_rate) options.learning_rate = *settings.learning_rate;
  options.clipping = settings.clipping;
  if (!settings.name.empty()) options.name = settings.name;
  if constexpr (requires { options.api; }) options.api = settings.api;
  for (const auto& [name, option] : arguments)
    if (const auto given = settings.arguments.find(name); given != settings.arguments.end())
      std::visit(
          [&](auto member) {
            options.*member = static_cast<std::decay_t<decltype(options.*member)>>(given->second);
          },
          option);
  return options;
}

// An entry of the table. The type of an option decides between a number and a flag.
template <typename Made, typename Options>
OptimizerKind kind(const char* name, std::vector<Argument<Options>> arguments) {
  OptimizerKind made{.name = name};
  for (const auto& [argument, option] : arguments)
    (std::holds_alternative<bool Options::*>(option) ? made.flags : made.numbers)
        .push_back(argument);
  made.make = [arguments = std::move(arguments)](const OptimizerSettings& settings) {
    return std::make_shared<Made>(options_of(settings, arguments));
  };
  return made;
}

}  // namespace

bool OptimizerKind::takes(const std::string& argument) const {
  return std::ranges::find(numbers, argument) != numbers.end() ||
         std::ranges::find(flags, argument) != flags.end();
}

// Names are tf.keras's, except l1, l2 and l2_shrinkage, which are long there.
const std::vector<OptimizerKind>& optimizer_kinds() {
  using AdamArguments = std::vector<Argument<AdamOptions>>;
  static const AdamArguments adam = {{"beta_1", &AdamOptions::beta_1},
                                     {"beta_2", &AdamOptions::beta_2},
                                     {"epsilon", &AdamOptions::epsilon},
                                     {"amsgrad", &AdamOptions::amsgrad}};
  static const std::vector<OptimizerKind> all = {
      kind<Sgd, SgdOptions>(
          "sgd", {{"momentum", &SgdOptions::momentum}, {"nesterov", &SgdOptions::nesterov}}),
      kind<Adagrad, AdagradOptions>(
          "adagrad", {{"initial_accumulator_value", &AdagradOptions::initial_accumulator_value},
                      {"epsilon", &AdagradOptions::epsilon}}),
      kind<RowwiseAdagrad, RowwiseAdagradOptions>(
          "rowwise_adagrad",
          {{"initial_accumulator_value", &RowwiseAdagradOptions::initial_accumulator_value},
           {"epsilon", &RowwiseAdagradOptions::epsilon}}),
      kind<RmsProp, RmsPropOptions>("rmsprop", {{"rho", &RmsPropOptions::rho},
                                                {"momentum", &RmsPropOptions::momentum},
                                                {"epsilon", &RmsPropOptions::epsilon},
                                                {"centered", &RmsPropOptions::centered}}),
      kind<Adam>("adam", adam),
      // there is no lazy AMSGrad
      kind<LazyAdam>("lazy_adam", AdamArguments(adam.begin(), adam.end() - 1)),
      kind<Adamax, AdamaxOptions>("adamax", {{"beta_1", &AdamaxOptions::beta_1},
                                             {"beta_2", &AdamaxOptions::beta_2},
                                             {"epsilon", &AdamaxOptions::epsilon}}),
      kind<Nadam, NadamOptions>("nadam", {{"beta_1", &NadamOptions::beta_1},
                                          {"beta_2", &NadamOptions::beta_2},
                                          {"epsilon", &NadamOptions::epsilon},
                                          {"schedule_decay", &NadamOptions::schedule_decay}}),
      kind<Adadelta, AdadeltaOptions>(
          "adadelta", {{"rho", &AdadeltaOptions::rho}, {"epsilon", &AdadeltaOptions::epsilon}}),
      kind<Ftrl, FtrlOptions>(
          "ftrl", {{"learning_rate_power", &FtrlOptions::learning_rate_power},
                   {"initial_accumulator_value", &FtrlOptions::initial_accumulator_value},
                   {"l1", &FtrlOptions::l1_regularization_strength},
                   {"l2", &FtrlOptions::l2_regularization_strength},
                   {"beta", &FtrlOptions::beta},
                   {"l2_shrinkage", &FtrlOptions::l2_shrinkage_regularization_strength}}),
      kind<Lion, LionOptions>(
          "lion", {{"beta_1", &LionOptions::beta_1}, {"beta_2", &LionOptions::beta_2}})};
  return all;
}

std::shared_ptr<Optimizer> make_optimizer(const std::string& name) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  std::vector<std::string> names;
  for (const OptimizerKind& each : optimizer_kinds()) {
    if (each.name == lower) return each.make({});
    names.push_back(each.name);
  }
  const std::string near = nearest_name(lower, names);
  throw InvalidArgumentError(str("there is no optimizer \"", name, "\"",
                                 near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

}  // namespace cairn::nn
