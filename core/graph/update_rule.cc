#include "core/graph/update_rule.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/error.h"
#include "core/graph/custom_rule.h"

namespace cairn {
namespace {

// The names stand in the order of RuleKind, whose numbers travel on the wire.
constexpr std::array<std::string_view, kRuleKindCount> kRuleNames = {
    "assign",
    "assign_add",
    "assign_sub",
    "sgd",
    "momentum",
    "adagrad",
    "adam",
    "lazy_adam",
    "ftrl",
    "momentum_table",
    "rowwise_adagrad",
    "rmsprop",
    "rmsprop_centered",
    "rmsprop_momentum",
    "rmsprop_centered_momentum",
    "rmsprop_momentum_table",
    "rmsprop_centered_momentum_table",
    "amsgrad",
    "adamax",
    "adamax_table",
    "nadam",
    "adadelta",
    "adadelta_table",
    "ftrl_table",
    "assign_mul",
    "assign_div",
    "assign_min",
    "assign_max",
    "custom"};

// Checks one constant after another, in the order in which the kind has them.
class Constants {
 public:
  explicit Constants(const UpdateRule& rule) : rule_(rule) {}

  Constants& not_negative(std::string_view name) { return check(name, next() >= 0, "at least 0"); }
  Constants& not_positive(std::string_view name) { return check(name, next() <= 0, "at most 0"); }
  Constants& decay(std::string_view name) {
    return check(name, next() >= 0 && value_ < 1, "in [0, 1)");
  }
  Constants& share(std::string_view name) {
    return check(name, next() >= 0 && value_ <= 1, "in [0, 1]");
  }
  Constants& flag(std::string_view name) {
    return check(name, next() == 0 || value_ == 1, "0 or 1");
  }

 private:
  float next() { return value_ = rule_.constants[static_cast<std::size_t>(index_++)]; }
  Constants& check(std::string_view name, bool good, std::string_view want) {
    if (!good)
      throw InvalidArgumentError(str("update rule ", rule_name(rule_.kind), ": ", name, " must be ",
                                     want, ", got ", value_));
    return *this;
  }

  const UpdateRule& rule_;
  int index_ = 0;
  float value_ = 0;
};

// Each check takes the next constant, so the checks stand in the order in which the rule keeps
// them.
void verify_constants(const UpdateRule& rule) {
  Constants c(rule);
  switch (rule.kind) {
    case RuleKind::kAssign:
    case RuleKind::kAssignAdd:
    case RuleKind::kAssignSub:
    case RuleKind::kAssignMul:
    case RuleKind::kAssignDiv:
    case RuleKind::kAssignMin:
    case RuleKind::kAssignMax:
    case RuleKind::kCustom:
    case RuleKind::kSgd: return;
    case RuleKind::kMomentum:
    case RuleKind::kMomentumTable: c.share("momentum").flag("nesterov"); return;
    case RuleKind::kAdagrad:
      c.not_negative("initial_accumulator").not_negative("epsilon").flag("epsilon_under_root");
      return;
    case RuleKind::kRowwiseAdagrad:
      c.not_negative("initial_accumulator").not_negative("epsilon");
      return;
    case RuleKind::kAdam:
    case RuleKind::kLazyAdam:
    case RuleKind::kAmsgrad:
      c.decay("beta_1").decay("beta_2").not_negative("epsilon").share("share_1").share("share_2");
      return;
    case RuleKind::kAdamax:
    case RuleKind::kAdamaxTable:
      c.decay("beta_1").decay("beta_2").not_negative("epsilon").share("share_1");
      return;
    case RuleKind::kNadam:
      c.decay("beta_1")
          .decay("beta_2")
          .not_negative("epsilon")
          .not_negative("schedule_decay")
          .flag("moves_every_row");
      return;
    case RuleKind::kRmsProp:
    case RuleKind::kRmsPropCentered:
      c.decay("rho").not_negative("epsilon").flag("epsilon_under_root").share("share");
      return;
    case RuleKind::kRmsPropMomentum:
    case RuleKind::kRmsPropCenteredMomentum:
    case RuleKind::kRmsPropMomentumTable:
    case RuleKind::kRmsPropCenteredMomentumTable:
      c.decay("rho").not_negative("epsilon").share("momentum").share("share");
      return;
    case RuleKind::kAdadelta:
    case RuleKind::kAdadeltaTable: c.decay("rho").not_negative("epsilon").share("share"); return;
    case RuleKind::kFtrl:
    case RuleKind::kFtrlTable:
      c.not_positive("learning_rate_power")
          .not_negative("initial_accumulator")
          .not_negative("l1")
          .not_negative("l2");
      c.not_negative("beta").not_negative("l2_shrinkage");
      return;
  }
}

}  // namespace

std::string_view rule_name(RuleKind kind) {
  auto i = static_cast<std::size_t>(kind);
  return i < kRuleNames.size() ? kRuleNames[i] : "unknown";
}

std::string_view rule_name(const UpdateRule& rule) {
  return rule.custom != nullptr ? rule.custom->name() : rule_name(rule.kind);
}

bool is_kept(const UpdateRule& rule) {
  return rule.kind == RuleKind::kCustom || !rule_slots(rule).empty();
}

bool has_operations(const UpdateRule& rule) {
  return rule.kind != RuleKind::kCustom ||
         (rule.custom != nullptr && rule.custom->program() != nullptr);
}

const CustomRule& operations_of(const UpdateRule& rule) {
  if (rule.custom == nullptr || !has_operations(rule))
    throw InvalidArgumentError(
        str("update rule ", rule_name(rule), " comes without its operations"));
  return *rule.custom;
}

bool same_slots(const UpdateRule& a, const UpdateRule& b) {
  if (a.kind != RuleKind::kCustom || b.kind != RuleKind::kCustom) return a.kind == b.kind;
  const std::vector<SlotSpec> of_a = rule_slots(a), of_b = rule_slots(b);
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                    [](const SlotSpec& x, const SlotSpec& y) { return x.name == y.name; });
}

namespace {

std::vector<SlotSpec> slots_of(const CustomRule* rule) {
  std::vector<SlotSpec> slots;
  if (rule == nullptr) return slots;
  for (const RuleSlot& slot : rule->slots()) slots.push_back({slot.name, slot.initial_value});
  return slots;
}

}  // namespace

std::vector<SlotSpec> rule_slots(const UpdateRule& rule) {
  switch (rule.kind) {
    case RuleKind::kAssign:
    case RuleKind::kAssignAdd:
    case RuleKind::kAssignSub:
    case RuleKind::kAssignMul:
    case RuleKind::kAssignDiv:
    case RuleKind::kAssignMin:
    case RuleKind::kAssignMax:
    case RuleKind::kSgd: return {};
    case RuleKind::kMomentum:
    case RuleKind::kMomentumTable: return {{"momentum", 0}};
    case RuleKind::kAdagrad:
    case RuleKind::kRowwiseAdagrad: return {{"accumulator", rule.constants[0]}};
    case RuleKind::kAdam:
    case RuleKind::kLazyAdam:
    case RuleKind::kNadam: return {{"m", 0}, {"v", 0}};
    case RuleKind::kAmsgrad: return {{"m", 0}, {"v", 0}, {"vhat", 0}};
    case RuleKind::kAdamax:
    case RuleKind::kAdamaxTable: return {{"m", 0}, {"u", 0}};
    case RuleKind::kRmsProp: return {{"rms", 0}};
    case RuleKind::kRmsPropCentered: return {{"rms", 0}, {"mean", 0}};
    case RuleKind::kRmsPropMomentum:
    case RuleKind::kRmsPropMomentumTable: return {{"rms", 0}, {"momentum", 0}};
    case RuleKind::kRmsPropCenteredMomentum:
    case RuleKind::kRmsPropCenteredMomentumTable: return {{"rms", 0}, {"momentum", 0}, {"mean", 0}};
    case RuleKind::kAdadelta:
    case RuleKind::kAdadeltaTable: return {{"gradients", 0}, {"updates", 0}};
    case RuleKind::kFtrl:
    case RuleKind::kFtrlTable: return {{"accumulator", rule.constants[1]}, {"linear", 0}};
    case RuleKind::kCustom: return slots_of(rule.custom.get());
  }
  return {};
}

// Row-wise Adagrad keeps one accumulator for a row, all other rules one number for each parameter.
std::int64_t slot_width(RuleKind kind, std::int64_t dim) {
  return kind == RuleKind::kRowwiseAdagrad ? 1 : dim;
}

// Rules under which a row changes with every update, whether or not it has a gradient: TensorFlow's
// dense semantics of these optimizers.
bool is_table_rule(RuleKind kind) {
  switch (kind) {
    case RuleKind::kAdam:
    case RuleKind::kAmsgrad:
    case RuleKind::kMomentumTable:
    case RuleKind::kRmsProp:
    case RuleKind::kRmsPropCentered:
    case RuleKind::kRmsPropMomentumTable:
    case RuleKind::kRmsPropCenteredMomentumTable:
    case RuleKind::kAdamaxTable:
    case RuleKind::kNadam:
    case RuleKind::kAdadeltaTable:
    case RuleKind::kFtrlTable: return true;
    default: return false;
  }
}

// Besides those, the rules whose bias correction counts updates: every part has to count alike. A
// custom rule may.
bool reaches_every_part(RuleKind kind) {
  return is_table_rule(kind) || kind == RuleKind::kLazyAdam || kind == RuleKind::kAdamax ||
         kind == RuleKind::kCustom;
}

bool moves_untouched_rows(RuleKind kind) { return kind == RuleKind::kFtrlTable; }

bool is_assignment(RuleKind kind) {
  return kind <= RuleKind::kAssignSub ||
         (kind >= RuleKind::kAssignMul && kind <= RuleKind::kAssignMax);
}

EqualIds equal_ids(RuleKind kind) {
  switch (kind) {
    case RuleKind::kAssign: return EqualIds::kLast;
    case RuleKind::kAssignMul:
    case RuleKind::kAssignDiv: return EqualIds::kProduct;
    case RuleKind::kAssignMin: return EqualIds::kMin;
    case RuleKind::kAssignMax: return EqualIds::kMax;
    default: return EqualIds::kSum;
  }
}

void verify_rule(const UpdateRule& rule) {
  if (rule.custom != nullptr && rule.kind != RuleKind::kCustom)
    throw InvalidArgumentError(
        str("update rule ", rule_name(rule.kind), " has operations of its own"));
  if (static_cast<int>(rule.kind) >= kRuleKindCount)
    throw InvalidArgumentError(str("update rule ", static_cast<int>(rule.kind),
                                   " is unknown: the kinds are 0 to ", kRuleKindCount - 1));
  for (float constant : rule.constants)
    if (!std::isfinite(constant))
      throw InvalidArgumentError(str("update rule ", rule_name(rule.kind),
                                     ": every constant must be finite, got ", constant));
  verify_constants(rule);
}

// FTRL divides by it.
void verify_learning_rate(const UpdateRule& rule, float learning_rate) {
  if (is_assignment(rule.kind)) return;
  const bool divides = rule.kind == RuleKind::kFtrl || rule.kind == RuleKind::kFtrlTable;
  if (std::isfinite(learning_rate) && (divides ? learning_rate > 0 : learning_rate >= 0)) return;
  throw InvalidArgumentError(
      str("update rule ", rule_name(rule), ": the learning rate must be finite and ",
          divides ? "above 0" : "at least 0", ", got ", learning_rate, "; look at its schedule"));
}

}  // namespace cairn
