// The same updates leave the same bits on the ps and in a mirror, whatever the rule, the size, and
// the way of the updates to the ps.
#include "tests/worker/rows/mirror_fixture.h"

namespace cairn::worker {
namespace {

struct NamedRule {
  std::string name;
  UpdateRule rule;
};

std::vector<NamedRule> every_rule() {
  using K = RuleKind;
  std::vector<NamedRule> all{
      {"Assign", {K::kAssign, {}}},
      {"AssignAdd", {K::kAssignAdd, {}}},
      {"AssignSub", {K::kAssignSub, {}}},
      {"AssignMul", {K::kAssignMul, {}}},
      {"AssignDiv", {K::kAssignDiv, {}}},
      {"AssignMin", {K::kAssignMin, {}}},
      {"AssignMax", {K::kAssignMax, {}}},
      {"Sgd", {K::kSgd, {}}},
      {"Adagrad", {K::kAdagrad, {0.1f, 1e-7f}}},
      {"AdagradUnderRoot", {K::kAdagrad, {0.1f, 1e-7f, 1}}},
      {"RowwiseAdagrad", {K::kRowwiseAdagrad, {0.1f, 1e-7f}}},
      {"Nadam", {K::kNadam, {0.9f, 0.999f, 1e-7f, 0.004f, 1}}},
      {"NadamOfNamedRows", {K::kNadam, {0.9f, 0.999f, 1e-7f, 0.004f, 0}}},
  };
  for (const float nesterov : {0.0f, 1.0f})
    for (const K kind : {K::kMomentum, K::kMomentumTable})
      all.push_back({str(kind == K::kMomentum ? "Momentum" : "MomentumTable",
                         nesterov != 0 ? "Nesterov" : ""),
                     {kind, {0.9f, nesterov}}});
  for (const auto& [name, kind] : {std::pair<std::string, K>{"Adam", K::kAdam},
                                   {"LazyAdam", K::kLazyAdam},
                                   {"Amsgrad", K::kAmsgrad},
                                   {"Adamax", K::kAdamax},
                                   {"AdamaxTable", K::kAdamaxTable}})
    all.push_back({name, {kind, {0.9f, 0.999f, 1e-7f}}});
  for (const float power : {-0.5f, -0.7f})
    for (const K kind : {K::kFtrl, K::kFtrlTable})
      all.push_back({str(kind == K::kFtrl ? "Ftrl" : "FtrlTable", power == -0.5f ? "" : "Power"),
                     {kind, {power, 0.1f, 0.01f, 0.02f, 0.1f, 0.03f}}});
  for (const float under_root : {0.0f, 1.0f})
    for (const K kind : {K::kRmsProp, K::kRmsPropCentered})
      all.push_back({str(kind == K::kRmsProp ? "RmsProp" : "RmsPropCentered",
                         under_root != 0 ? "UnderRoot" : ""),
                     {kind, {0.9f, 1e-7f, under_root}}});
  for (const auto& [name, kind] :
       {std::pair<std::string, K>{"RmsPropMomentum", K::kRmsPropMomentum},
        {"RmsPropCenteredMomentum", K::kRmsPropCenteredMomentum},
        {"RmsPropMomentumTable", K::kRmsPropMomentumTable},
        {"RmsPropCenteredMomentumTable", K::kRmsPropCenteredMomentumTable}})
    all.push_back({name, {kind, {0.9f, 1e-7f, 0.8f}}});
  all.push_back({"Adadelta", {K::kAdadelta, {0.95f, 1e-7f}}});
  all.push_back({"AdadeltaTable", {K::kAdadeltaTable, {0.95f, 1e-7f}}});
  all.push_back({"Lion", {K::kLion, {0.9f, 0.99f}}});
  all.push_back({"LionTable", {K::kLionTable, {0.9f, 0.99f}}});
  return all;
}

class MirrorOfRule : public MirrorTest, public testing::WithParamInterface<NamedRule> {
 protected:
  MirrorOfRule() { allows_zero = rule.kind != RuleKind::kAssignDiv; }

  void expect_equal(const std::string& when) {
    ASSERT_EQ(mirror.fingerprint(), fingerprint_of_ps()) << when;
    for (const VariableId one : all) ASSERT_EQ(read(mirror, one), pull(one)) << when;
  }
  // On both, in whole and in rows.
  void update_both(bool in_rounds) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
      for (const bool in_whole : {true, false}) {
        std::vector<Update> updates;
        for (const VariableId one : all)
          updates.push_back(in_whole || spec(one).shape.rank() == 0
                                ? whole(one, rule, 10 * seed + one)
                                : some(one, rule, 20 * seed + one, {0, 3, 4}));
        // Only the last rows of each: of the first part, no row.
        if (!in_whole && seed == 2)
          for (Update& update : updates)
            if (update.ids.defined()) {
              const std::int64_t last = spec(update.variable).rows() - 1;
              update.ids = Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{last});
              update.value = gradient(spec(update.variable).shape.with_dim(0, 1), seed);
            }
        push(updates, in_rounds ? ++round : 0);
        mirror.apply(updates, round);
      }
  }
  UpdateRule rule = GetParam().rule;
  std::uint64_t round = 0;
};
INSTANTIATE_TEST_SUITE_P(Rules, MirrorOfRule, testing::ValuesIn(every_rule()),
                         [](const auto& info) { return info.param.name; });

TEST_P(MirrorOfRule, HasTheBitsOfThePsAfterTheSameUpdates) {
  use(rule, {{},
             {1},
             {5},
             {16'385},
             {1, 1},
             {1, 3},
             {7, 1},
             {33, 64},
             {3, 1000},
             {16'385, 1},
             {16'385, 3}});
  for (const VariableId one : all) push({whole(one, rule, one)});
  ASSERT_EQ(fetch(mirror, all), "");
  expect_equal("as fetched");
  update_both(false);
  expect_equal("after pushes");
  if (is_assignment(rule.kind)) return;
  update_both(true);
  expect_equal("after rounds");
}

// Larger than a request, so that they reach the ps in slices, or in pieces where a rule has to see
// its update as a whole.
TEST_P(MirrorOfRule, HasTheBitsOfThePsAfterUpdatesThatTravelInParts) {
  ShardLinkOptions small;
  small.piece_bytes_max = 4096;
  use(rule, {{1001, 3}, {5000}, {7, 1000}, {16'385, 3}}, RowEncoding::kRaw, small);
  for (const VariableId one : all) push({whole(one, rule, one)});
  ASSERT_EQ(fetch(mirror, all), "");
  expect_equal("as fetched");
  update_both(false);
  expect_equal("after pushes");
  if (is_assignment(rule.kind)) return;
  update_both(true);
  expect_equal("after rounds");
}

TEST_P(MirrorOfRule, RoundsAsTheWireDoes) {
  use(rule, {{5}, {33, 64}, {16'385, 1}}, RowEncoding::kBfloat16);
  ASSERT_EQ(fetch(mirror, all), "");
  std::vector<Update> updates;
  for (const VariableId one : all) updates.push_back(whole(one, rule, one));
  push(updates);
  mirror.apply(updates, 1, RowEncoding::kBfloat16);
  EXPECT_EQ(mirror.fingerprint(), fingerprint_of_ps());
  push(updates);
  mirror.apply(updates, 2);
  if (rule.kind != RuleKind::kAssignMin && rule.kind != RuleKind::kAssignMax) {
    EXPECT_NE(mirror.fingerprint(), fingerprint_of_ps()) << "the values need no rounding";
  }
}

}  // namespace
}  // namespace cairn::worker
