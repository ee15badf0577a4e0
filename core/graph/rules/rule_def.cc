#include "core/graph/rules/rule_def.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace cairn {
namespace {

using enum ConstantRange;

// The share of a new gradient that enters a moving average: see RuleKind.
float share_of(float share, float decay) { return share != 0 ? share : 1 - decay; }

// 1 - beta^t: what a moving average that began at zero lacks after t steps.
double bias(float beta, std::int64_t t) {
  return 1 - std::pow(static_cast<double>(beta), static_cast<double>(t));
}

RuleRates sgd_rates(const RuleConstants&, const RuleInputs& in) {
  return {.rate = in.learning_rate};
}

RuleRates momentum_rates(const RuleConstants& c, const RuleInputs& in) {
  return {.rate = in.learning_rate, .momentum = c["momentum"]};
}

RuleRates adagrad_rates(const RuleConstants& c, const RuleInputs& in) {
  return {.rate = in.learning_rate, .epsilon = c["epsilon"]};
}

RuleRates adam_rates(const RuleConstants& c, const RuleInputs& in) {
  const float beta_1 = c["beta_1"], beta_2 = c["beta_2"];
  const double alpha = in.learning_rate * std::sqrt(bias(beta_2, in.t)) / bias(beta_1, in.t);
  return {.rate = static_cast<float>(alpha),
          .share_1 = share_of(c["share_1"], beta_1),
          .share_2 = share_of(c["share_2"], beta_2),
          .epsilon = c["epsilon"]};
}

RuleRates adamax_rates(const RuleConstants& c, const RuleInputs& in) {
  const float beta_1 = c["beta_1"];
  return {.rate = static_cast<float>(in.learning_rate / bias(beta_1, in.t)),
          .share_1 = share_of(c["share_1"], beta_1),
          .beta_2 = c["beta_2"],
          .epsilon = c["epsilon"]};
}

// Nadam's momentum warms up; at step t it is beta_1 (1 - 0.96^(decay t) / 2) (Dozat, 2016).
double nadam_momentum(double beta_1, double decay, double t) {
  return beta_1 * (1 - 0.5 * std::pow(0.96, decay * t));
}

// The product of the momenta of steps 1 to t. Below 2^-30, 1 less the product is 1 in float32,
// whatever follows; and once the warm-up is over, what follows is a power. So few steps are
// multiplied out, however large t is.
double nadam_product(double beta_1, double decay, std::int64_t t) {
  const double factor = std::pow(0.96, decay);
  double product = 1, warm_up = factor;
  for (std::int64_t i = 1; i <= t && product > 0x1p-30; ++i, warm_up *= factor) {
    if (warm_up < 0x1p-30) return product * std::pow(beta_1, static_cast<double>(t - i + 1));
    product *= beta_1 * (1 - 0.5 * warm_up);
  }
  return product;
}

RuleRates nadam_rates(const RuleConstants& c, const RuleInputs& in) {
  const float beta_1 = c["beta_1"], beta_2 = c["beta_2"], decay = c["schedule_decay"];
  const auto t = static_cast<double>(in.t);
  const double now = nadam_momentum(beta_1, decay, t), next = nadam_momentum(beta_1, decay, t + 1);
  const double product = nadam_product(beta_1, decay, in.t);
  const double correction = 1 / (1 - std::pow(static_cast<double>(beta_2), t));
  return {.rate = static_cast<float>(in.learning_rate * (1 - now) / (1 - product)),
          .moment = static_cast<float>(in.learning_rate * next / (1 - product * next)),
          .correction = static_cast<float>(correction),
          .share_1 = 1 - beta_1,
          .share_2 = 1 - beta_2,
          .epsilon = c["epsilon"]};
}

// RMSProp without momentum and Adadelta have the same.
RuleRates averaged_rates(const RuleConstants& c, const RuleInputs& in) {
  return {
      .rate = in.learning_rate, .share_1 = share_of(c["share"], c["rho"]), .epsilon = c["epsilon"]};
}

RuleRates rmsprop_momentum_rates(const RuleConstants& c, const RuleInputs& in) {
  RuleRates rates = averaged_rates(c, in);
  rates.momentum = c["momentum"];
  return rates;
}

RuleRates ftrl_rates(const RuleConstants& c, const RuleInputs& in) {
  return {.rate = in.learning_rate,
          .power = -c["learning_rate_power"],
          .l1 = c["l1"],
          .l2 = c["l2"] + c["beta"] / (2 * in.learning_rate),
          .shrinkage = c["l2_shrinkage"]};
}

RuleRates lion_rates(const RuleConstants& c, const RuleInputs& in) {
  const float beta_1 = c["beta_1"], beta_2 = c["beta_2"];
  return {.rate = in.learning_rate,
          .share_1 = 1 - beta_1,
          .share_2 = 1 - beta_2,
          .beta_2 = beta_2,
          .momentum = beta_1};
}

RuleRates custom_rates(const RuleConstants&, const RuleInputs& in) {
  return {.rate = in.learning_rate, .t = static_cast<float>(in.t)};
}

constexpr RuleDef assignment(RuleKind kind, std::string_view name, EqualIds equal) {
  return {.kind = kind, .name = name, .loop = kind, .assigns = true, .equal_ids = equal};
}

// The same rule under another kind, which goes to every row if `every_row`.
constexpr RuleDef variant_of(RuleDef def, RuleKind kind, std::string_view name,
                             bool every_row = false) {
  def.kind = kind;
  def.name = name;
  def.every_row = every_row;
  return def;
}

constexpr RuleDef kMomentum = {.kind = RuleKind::kMomentum,
                               .name = "momentum",
                               .loop = RuleKind::kMomentum,
                               .constants = {{{"momentum", kShare}, {"nesterov", kFlag}}},
                               .slots = {{{"momentum", ""}}},
                               .rates = momentum_rates};

constexpr RuleDef kAdagrad = {.kind = RuleKind::kAdagrad,
                              .name = "adagrad",
                              .loop = RuleKind::kAdagrad,
                              .constants = {{{"initial_accumulator", kNotNegative},
                                             {"epsilon", kNotNegative},
                                             {"epsilon_under_root", kFlag}}},
                              .slots = {{{"accumulator", "initial_accumulator"}}},
                              .rates = adagrad_rates};

constexpr RuleDef kRowwiseAdagrad = {
    .kind = RuleKind::kRowwiseAdagrad,
    .name = "rowwise_adagrad",
    .loop = RuleKind::kRowwiseAdagrad,
    .constants = {{{"initial_accumulator", kNotNegative}, {"epsilon", kNotNegative}}},
    .slots = {{{"accumulator", "initial_accumulator"}}},
    .rates = adagrad_rates,
    .one_number_per_row = true};

constexpr RuleDef kLazyAdam = {.kind = RuleKind::kLazyAdam,
                               .name = "lazy_adam",
                               .loop = RuleKind::kAdam,
                               .constants = {{{"beta_1", kDecay},
                                              {"beta_2", kDecay},
                                              {"epsilon", kNotNegative},
                                              {"share_1", kShare},
                                              {"share_2", kShare}}},
                               .slots = {{{"m", ""}, {"v", ""}}},
                               .rates = adam_rates,
                               .counts_updates = true};

constexpr RuleDef amsgrad() {
  RuleDef def = variant_of(kLazyAdam, RuleKind::kAmsgrad, "amsgrad", true);
  def.loop = RuleKind::kAmsgrad;
  def.slots[2] = {"vhat", ""};
  return def;
}

constexpr RuleDef kAdamax = {.kind = RuleKind::kAdamax,
                             .name = "adamax",
                             .loop = RuleKind::kAdamax,
                             .constants = {{{"beta_1", kDecay},
                                            {"beta_2", kDecay},
                                            {"epsilon", kNotNegative},
                                            {"share_1", kShare}}},
                             .slots = {{{"m", ""}, {"u", ""}}},
                             .rates = adamax_rates,
                             .counts_updates = true};

constexpr RuleDef kNadam = {.kind = RuleKind::kNadam,
                            .name = "nadam",
                            .loop = RuleKind::kNadam,
                            .constants = {{{"beta_1", kDecay},
                                           {"beta_2", kDecay},
                                           {"epsilon", kNotNegative},
                                           {"schedule_decay", kNotNegative},
                                           {"moves_every_row", kFlag}}},
                            .slots = {{{"m", ""}, {"v", ""}}},
                            .rates = nadam_rates,
                            .every_row = true,
                            .counts_updates = true};

constexpr RuleDef kRmsProp = {.kind = RuleKind::kRmsProp,
                              .name = "rmsprop",
                              .loop = RuleKind::kRmsProp,
                              .constants = {{{"rho", kDecay},
                                             {"epsilon", kNotNegative},
                                             {"epsilon_under_root", kFlag},
                                             {"share", kShare}}},
                              .slots = {{{"rms", ""}}},
                              .rates = averaged_rates,
                              .every_row = true};

constexpr RuleDef rmsprop_centered() {
  RuleDef def = variant_of(kRmsProp, RuleKind::kRmsPropCentered, "rmsprop_centered", true);
  def.loop = RuleKind::kRmsPropCentered;
  def.slots[1] = {"mean", ""};
  return def;
}

constexpr RuleDef kRmsPropMomentum = {.kind = RuleKind::kRmsPropMomentum,
                                      .name = "rmsprop_momentum",
                                      .loop = RuleKind::kRmsPropMomentum,
                                      .constants = {{{"rho", kDecay},
                                                     {"epsilon", kNotNegative},
                                                     {"momentum", kShare},
                                                     {"share", kShare}}},
                                      .slots = {{{"rms", ""}, {"momentum", ""}}},
                                      .rates = rmsprop_momentum_rates};

constexpr RuleDef rmsprop_centered_momentum() {
  RuleDef def =
      variant_of(kRmsPropMomentum, RuleKind::kRmsPropCenteredMomentum, "rmsprop_centered_momentum");
  def.loop = RuleKind::kRmsPropCenteredMomentum;
  def.slots[2] = {"mean", ""};
  return def;
}

constexpr RuleDef kAdadelta = {
    .kind = RuleKind::kAdadelta,
    .name = "adadelta",
    .loop = RuleKind::kAdadelta,
    .constants = {{{"rho", kDecay}, {"epsilon", kNotNegative}, {"share", kShare}}},
    .slots = {{{"gradients", ""}, {"updates", ""}}},
    .rates = averaged_rates};

constexpr RuleDef kFtrl = {.kind = RuleKind::kFtrl,
                           .name = "ftrl",
                           .loop = RuleKind::kFtrl,
                           .constants = {{{"learning_rate_power", kNotPositive},
                                          {"initial_accumulator", kNotNegative},
                                          {"l1", kNotNegative},
                                          {"l2", kNotNegative},
                                          {"beta", kNotNegative},
                                          {"l2_shrinkage", kNotNegative}}},
                           .slots = {{{"accumulator", "initial_accumulator"}, {"linear", ""}}},
                           .rates = ftrl_rates,
                           .divides_by_rate = true};

constexpr RuleDef ftrl_table() {
  RuleDef def = variant_of(kFtrl, RuleKind::kFtrlTable, "ftrl_table", true);
  def.moves_untouched_rows = true;
  return def;
}

constexpr RuleDef kLion = {.kind = RuleKind::kLion,
                           .name = "lion",
                           .loop = RuleKind::kLion,
                           .constants = {{{"beta_1", kDecay}, {"beta_2", kDecay}}},
                           .slots = {{{"m", ""}}},
                           .rates = lion_rates};

// In the order of RuleKind, whose numbers travel on the wire.
constexpr std::array<RuleDef, kRuleKindCount> kRules = {
    assignment(RuleKind::kAssign, "assign", EqualIds::kLast),
    assignment(RuleKind::kAssignAdd, "assign_add", EqualIds::kSum),
    assignment(RuleKind::kAssignSub, "assign_sub", EqualIds::kSum),
    RuleDef{.kind = RuleKind::kSgd, .name = "sgd", .loop = RuleKind::kSgd, .rates = sgd_rates},
    kMomentum,
    kAdagrad,
    variant_of(kLazyAdam, RuleKind::kAdam, "adam", true),
    kLazyAdam,
    kFtrl,
    variant_of(kMomentum, RuleKind::kMomentumTable, "momentum_table", true),
    kRowwiseAdagrad,
    kRmsProp,
    rmsprop_centered(),
    kRmsPropMomentum,
    rmsprop_centered_momentum(),
    variant_of(kRmsPropMomentum, RuleKind::kRmsPropMomentumTable, "rmsprop_momentum_table", true),
    variant_of(rmsprop_centered_momentum(), RuleKind::kRmsPropCenteredMomentumTable,
               "rmsprop_centered_momentum_table", true),
    amsgrad(),
    kAdamax,
    variant_of(kAdamax, RuleKind::kAdamaxTable, "adamax_table", true),
    kNadam,
    kAdadelta,
    variant_of(kAdadelta, RuleKind::kAdadeltaTable, "adadelta_table", true),
    ftrl_table(),
    assignment(RuleKind::kAssignMul, "assign_mul", EqualIds::kProduct),
    assignment(RuleKind::kAssignDiv, "assign_div", EqualIds::kProduct),
    assignment(RuleKind::kAssignMin, "assign_min", EqualIds::kMin),
    assignment(RuleKind::kAssignMax, "assign_max", EqualIds::kMax),
    RuleDef{.kind = RuleKind::kCustom,
            .name = "custom",
            .loop = RuleKind::kCustom,
            .rates = custom_rates,
            .counts_updates = true},
    kLion,
    variant_of(kLion, RuleKind::kLionTable, "lion_table", true)};

constexpr bool stand_in_order() {
  for (std::size_t i = 0; i < kRules.size(); ++i)
    if (static_cast<std::size_t>(kRules[i].kind) != i) return false;
  return true;
}
static_assert(stand_in_order(), "a rule's place in the table is its number");

}  // namespace

RuleConstants::RuleConstants(const UpdateRule& rule) : rule_(rule) {}

float RuleConstants::operator[](std::string_view name) const {
  const auto& all = rule_def(rule_.kind).constants;
  const auto found = std::ranges::find(all, name, &ConstantDef::name);
  CAIRN_CHECK(found != all.end(), "rule ", rule_name(rule_.kind), " has no constant ", name);
  return rule_.constants[static_cast<std::size_t>(found - all.begin())];
}

const RuleDef& rule_def(RuleKind kind) {
  static constexpr RuleDef kUnknownRule = {
      .kind = RuleKind::kAssign, .name = "unknown", .loop = RuleKind::kAssign};
  const auto i = static_cast<std::size_t>(kind);
  return i < kRules.size() ? kRules[i] : kUnknownRule;
}

RuleRates fold_rates(const UpdateRule& rule, const RuleInputs& in) {
  const RuleDef& def = rule_def(rule.kind);
  return def.rates != nullptr ? def.rates(RuleConstants(rule), in) : RuleRates{};
}

void verify_rule_dtype(RuleKind kind, DType dtype) {
  const RuleDef& def = rule_def(kind);
  if (def.loop == RuleKind::kAssign || dtype == DType::kFloat32) return;
  const bool counts = dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUint8;
  if (counts && def.assigns && def.loop != RuleKind::kAssignDiv) return;
  throw InvalidArgumentError(str("update rule ", def.name, " cannot change a variable of ",
                                 dtype_name(dtype),
                                 counts        ? ": it wants float32"
                                 : def.assigns ? ": only assign can"
                                               : ": optimizers want float32"));
}

}  // namespace cairn
