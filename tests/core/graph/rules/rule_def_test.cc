#include "core/graph/rules/rule_def.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "core/base/error.h"

namespace cairn {
namespace {

TEST(RuleDef, NamesOfConstantsAndSlotsAreDifferentWithinARule) {
  for (int kind = 0; kind < kRuleKindCount; ++kind) {
    const RuleDef& def = rule_def(static_cast<RuleKind>(kind));
    std::set<std::string_view> constants, slots;
    for (const ConstantDef& constant : def.constants)
      if (!constant.name.empty()) {
        EXPECT_TRUE(constants.insert(constant.name).second) << def.name;
      }
    for (const SlotDef& slot : def.slots)
      if (!slot.name.empty()) {
        EXPECT_TRUE(slots.insert(slot.name).second) << def.name;
        EXPECT_TRUE(slot.initial_value.empty() || constants.contains(slot.initial_value))
            << def.name << " begins " << slot.name << " with " << slot.initial_value;
      }
  }
}

TEST(RuleDef, AConstantIsReadByItsName) {
  const UpdateRule rule =
      make_rule(RuleKind::kAdagrad,
                {{"initial_accumulator", 0.5f}, {"epsilon", 1e-3f}, {"epsilon_under_root", 1}});
  EXPECT_EQ(RuleConstants(rule)["epsilon"], 1e-3f);
  EXPECT_EQ(rule_slots(rule)[0].initial_value, 0.5f);
}

// A rule made by hand with a constant forgotten would train with 0 in its place.
TEST(RuleDef, ARuleIsMadeWithAllOfItsConstantsInOrder) {
  EXPECT_THROW(make_rule(RuleKind::kMomentum, {{"momentum", 0.9f}}), Error);
  EXPECT_THROW(make_rule(RuleKind::kMomentum, {{"nesterov", 0.0f}, {"momentum", 0.9f}}), Error);
  EXPECT_THROW(RuleConstants(UpdateRule{RuleKind::kSgd, {}})["momentum"], Error);
}

}  // namespace
}  // namespace cairn
