// The rules on real shards: what becomes of rows, slots and counts.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/core/some_rules.h"
#include "tests/nn/cut_variable.h"

namespace cairn::nn {
namespace {

std::vector<UpdateRule> every_rule() {
  std::vector<UpdateRule> rules;
  for (int kind = 0; kind < kRuleKindCount; ++kind) {
    UpdateRule rule{static_cast<RuleKind>(kind), {0.5f, 0.25f, 1.0f, 0.125f, 0, 0}};
    if (rule.kind == RuleKind::kMomentum || rule.kind == RuleKind::kMomentumTable)
      rule.constants[1] = 1;
    if (rule.kind == RuleKind::kNadam) rule.constants[4] = 1;
    if (rule.kind == RuleKind::kFtrl || rule.kind == RuleKind::kFtrlTable)
      rule.constants[0] = -0.5f;
    if (rule.kind == RuleKind::kCustom) rule = testing::own_adam();
    verify_rule(rule);
    rules.push_back(rule);
  }
  for (const UpdateRule& rule : testing::own_rules()) rules.push_back(rule);
  return rules;
}

Gradient some_rows(std::uint64_t step, std::int64_t rows, std::int64_t dim) {
  Gradient made;
  for (std::int64_t row = 0; row < rows; ++row)
    if ((static_cast<std::uint64_t>(row) * 7 + step * 5) % 4 == 0 || (step == 3 && row < 3))
      for (std::int64_t j = 0; j < dim; ++j)
        made.rows[row].push_back(
            std::sin(static_cast<float>(row * 31 + j + static_cast<std::int64_t>(step))));
  if (step == 5) made.rows.clear();
  return made;
}

TEST(RulesOnShards, RestoreSlotsAndCountsExactly) {
  const auto spec = ps::variable("v", {13, 5}, Initializer::uniform(-1, 1));
  for (const UpdateRule& rule : every_rule()) {
    SCOPED_TRACE(rule_name(rule));
    CutVariable variable(spec, rule, split_rows(13, 2));
    for (std::uint64_t step = 0; step < 6; ++step) variable.push(some_rows(step, 13, 5), 0.125f);
    const auto before = variable.saved(), after = variable.moved(split_rows(13, 2)).saved();
    EXPECT_EQ(before, after);
    const auto& table = std::get<storage::TableRecord>(before.front().second);
    EXPECT_EQ(table.updates, is_assignment(rule.kind)        ? 0
                             : reaches_every_part(rule.kind) ? 6
                                                             : 5)
        << "step 5 names no row";
    EXPECT_EQ(table.slots.size(), rule_slots(rule).size());
  }
}

TEST(RulesOnShards, KeepRowsSlotsAndCountsWhenAVariableIsSavedAndCutOtherwise) {
  const auto spec = ps::variable("v", {13, 5}, Initializer::uniform(-1, 1));
  for (const UpdateRule& rule : every_rule()) {
    SCOPED_TRACE(rule_name(rule));
    CutVariable cut(spec, rule, split_rows(13, 3)), whole(spec, rule, {{0, 13}});
    for (std::uint64_t step = 0; step < 6; ++step) {
      cut.push(some_rows(step, 13, 5), 0.125f);
      whole.push(some_rows(step, 13, 5), 0.125f);
    }
    ASSERT_EQ(cut.read(), whole.read());
    CutVariable moved = cut.moved({{0, 2}, {2, 9}, {9, 13}});
    EXPECT_EQ(moved.read(), whole.read());
    for (std::uint64_t step = 6; step < 9; ++step) {
      moved.push(some_rows(step, 13, 5), 0.125f);
      whole.push(some_rows(step, 13, 5), 0.125f);
    }
    EXPECT_EQ(moved.read(), whole.read()) << "its slots, or its count of updates, are others";
  }
}

}  // namespace
}  // namespace cairn::nn
