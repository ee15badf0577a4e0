// RuleDef: everything about an update rule but its loop over rows, which each processor has in
// tables of its own (core/kernels/cpu/rule_pass.h, core/kernels/cuda/rows/rule_walk.h). The table
// of rules stands in rule_def.cc; update_rule.h answers from it.
//   Thread  any: the table is constant.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "core/graph/update_rule.h"

namespace cairn {

// The numbers of one update, made from the rule's constants and what comes with the update. Those
// that depend on the step, such as bias corrections, are computed in double and rounded once. A
// loop reads the fields that its arithmetic names; the others are 0.
struct RuleRates {
  float rate = 0;        // of learning, bias corrected where the rule does that
  float moment = 0;      // Nadam: the rate of m, where `rate` is that of the gradient
  float correction = 0;  // Nadam: of v's bias
  float share_1 = 0;     // the part of a new gradient that enters the first (or only) average
  float share_2 = 0;     // the same of the second average
  float beta_2 = 0;      // the part of the second average that stays
  float momentum = 0;
  float epsilon = 0;
  // FTRL. power = -learning_rate_power; l2 has beta's part in it.
  float power = 0, l1 = 0, l2 = 0, shrinkage = 0;
  float t = 0;  // of a custom rule: RuleInputs::t
};

enum class ConstantRange : std::uint8_t {
  kNotNegative,
  kNotPositive,
  kDecay,  // [0, 1)
  kShare,  // [0, 1]
  kFlag    // 0 or 1
};
struct ConstantDef {
  std::string_view name;  // empty: the rule has no more constants
  ConstantRange range = ConstantRange::kNotNegative;
};
struct SlotDef {
  std::string_view name;           // empty: the rule has no more slots
  std::string_view initial_value;  // the constant that it begins with; empty: it begins with 0
};

// A rule's constants by their names.
class RuleConstants {
 public:
  explicit RuleConstants(const UpdateRule& rule);
  // Fails a CAIRN_CHECK if the rule has no such constant.
  float operator[](std::string_view name) const;

 private:
  const UpdateRule& rule_;
};

struct RuleDef {
  RuleKind kind;
  std::string_view name;
  // The kind whose loop over rows it runs: kinds that differ in which rows they go to share one.
  RuleKind loop;
  // In the order in which UpdateRule::constants holds them and the wire carries them.
  std::array<ConstantDef, UpdateRule::kConstants> constants{};
  std::array<SlotDef, 3> slots{};  // of a custom rule the program names them
  RuleRates (*rates)(const RuleConstants& c, const RuleInputs& in) = nullptr;  // null: all are 0
  // Every update changes rows that have no gradient, too: a table rule.
  bool every_row = false;
  // Even rows whose slots have their initial values change so.
  bool moves_untouched_rows = false;
  // The arithmetic reads RuleInputs::t, so all parts of a variable have to count alike.
  bool counts_updates = false;
  bool one_number_per_row = false;  // each slot is one number for a row, not one for a parameter
  bool divides_by_rate = false;     // a learning rate of 0 is an error
  bool assigns = false;
  EqualIds equal_ids = EqualIds::kSum;
};

// An unknown kind, which verify_rule() refuses, has an entry without constants and slots.
const RuleDef& rule_def(RuleKind kind);

RuleRates fold_rates(const UpdateRule& rule, const RuleInputs& inputs);

// InvalidArgument: kernels of the kind do not change variables of this dtype. Assign serves every
// dtype, its kin float32 and most of them int32, int64 and uint8; optimizers want float32.
void verify_rule_dtype(RuleKind kind, DType dtype);

}  // namespace cairn
