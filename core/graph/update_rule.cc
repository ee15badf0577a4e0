#include "core/graph/update_rule.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/error.h"
#include "core/graph/custom_rule.h"
#include "core/graph/rules/rule_def.h"

namespace cairn {
namespace {

struct RangeCheck {
  bool good;
  std::string_view wanted;
};

RangeCheck check_range(ConstantRange range, float value) {
  switch (range) {
    case ConstantRange::kNotNegative: return {value >= 0, "at least 0"};
    case ConstantRange::kNotPositive: return {value <= 0, "at most 0"};
    case ConstantRange::kDecay: return {value >= 0 && value < 1, "in [0, 1)"};
    case ConstantRange::kShare: return {value >= 0 && value <= 1, "in [0, 1]"};
    case ConstantRange::kFlag: return {value == 0 || value == 1, "0 or 1"};
  }
  return {false, "known"};
}

void verify_constants(const UpdateRule& rule) {
  const RuleDef& def = rule_def(rule.kind);
  for (std::size_t i = 0; i < def.constants.size() && !def.constants[i].name.empty(); ++i) {
    const auto [good, wanted] = check_range(def.constants[i].range, rule.constants[i]);
    if (!good)
      throw InvalidArgumentError(str("update rule ", def.name, ": ", def.constants[i].name,
                                     " must be ", wanted, ", got ", rule.constants[i]));
  }
}

}  // namespace

std::string_view rule_name(RuleKind kind) { return rule_def(kind).name; }

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
  if (rule.kind == RuleKind::kCustom) return slots_of(rule.custom.get());
  std::vector<SlotSpec> slots;
  for (const SlotDef& slot : rule_def(rule.kind).slots) {
    if (slot.name.empty()) break;
    slots.push_back(
        {slot.name, slot.initial_value.empty() ? 0.0f : RuleConstants(rule)[slot.initial_value]});
  }
  return slots;
}

UpdateRule make_rule(RuleKind kind,
                     std::initializer_list<std::pair<std::string_view, float>> constants) {
  UpdateRule rule{kind, {}};
  const RuleDef& def = rule_def(kind);
  std::size_t i = 0;
  for (const auto& [name, value] : constants) {
    CAIRN_CHECK(i < def.constants.size() && def.constants[i].name == name, "rule ", def.name,
                ": constant ", i, " is not ", name);
    rule.constants[i++] = value;
  }
  CAIRN_CHECK(i == def.constants.size() || def.constants[i].name.empty(), "rule ", def.name,
              ": constant ", i, " is missing");
  return rule;
}

std::int64_t slot_width(RuleKind kind, std::int64_t dim) {
  return rule_def(kind).one_number_per_row ? 1 : dim;
}

bool is_table_rule(RuleKind kind) { return rule_def(kind).every_row; }

bool reaches_every_part(RuleKind kind) {
  return rule_def(kind).every_row || rule_def(kind).counts_updates;
}

bool moves_untouched_rows(RuleKind kind) { return rule_def(kind).moves_untouched_rows; }

bool is_assignment(RuleKind kind) { return rule_def(kind).assigns; }

EqualIds equal_ids(RuleKind kind) { return rule_def(kind).equal_ids; }

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

void verify_learning_rate(const UpdateRule& rule, float learning_rate) {
  if (is_assignment(rule.kind)) return;
  const bool divides = rule_def(rule.kind).divides_by_rate;
  if (std::isfinite(learning_rate) && (divides ? learning_rate > 0 : learning_rate >= 0)) return;
  throw InvalidArgumentError(
      str("update rule ", rule_name(rule), ": the learning rate must be finite and ",
          divides ? "above 0" : "at least 0", ", got ", learning_rate, "; look at its schedule"));
}

}  // namespace cairn
