#include "core/graph/update_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.h"

namespace cairn {
namespace {

template <typename T>
RowBlock block_of(std::vector<T>& memory, std::int64_t rows, std::int64_t dim,
                  std::int64_t planes = 1) {
  return {
      DTypeOf<T>::value, reinterpret_cast<std::byte*>(memory.data()), rows, dim, dim * planes, dim};
}

template <typename T>
const std::byte* raw(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

TEST(UpdateRule, AssignmentsServeIntegersAndWrapAround) {
  std::vector<std::int32_t> rows = {1, 2, std::numeric_limits<std::int32_t>::max(), 4};
  std::vector<std::int32_t> one = {1, 1};
  std::vector<std::int64_t> ids = {1};
  apply_rule({RuleKind::kAssignAdd, {}}, {}, block_of(rows, 2, 2), ids, raw(one));
  EXPECT_EQ(rows, (std::vector<std::int32_t>{1, 2, std::numeric_limits<std::int32_t>::min(), 5}));
  apply_rule({RuleKind::kAssignSub, {}}, {}, block_of(rows, 2, 2), ids, raw(one));
  EXPECT_EQ(rows, (std::vector<std::int32_t>{1, 2, std::numeric_limits<std::int32_t>::max(), 4}));
}

TEST(UpdateRule, FactorsDivisorsAndBoundsChangeRowsElementByElement) {
  const std::vector<std::int64_t> second = {1};
  const std::vector<float> value = {-2, 4};
  auto changed = [&](RuleKind kind) {
    std::vector<float> rows = {1, 2, 3, 5};
    apply_rule({kind, {}}, {}, block_of(rows, 2, 2), second, raw(value));
    return rows;
  };
  EXPECT_EQ(changed(RuleKind::kAssignMul), (std::vector<float>{1, 2, -6, 20}));
  EXPECT_EQ(changed(RuleKind::kAssignDiv), (std::vector<float>{1, 2, -1.5f, 1.25f}));
  EXPECT_EQ(changed(RuleKind::kAssignMin), (std::vector<float>{1, 2, -2, 4}));
  EXPECT_EQ(changed(RuleKind::kAssignMax), (std::vector<float>{1, 2, 3, 5}));
  std::vector<std::int64_t> whole = {3, -5}, by = {-2, 4};
  apply_rule_dense({RuleKind::kAssignMul, {}}, {}, block_of(whole, 2, 1), raw(by));
  EXPECT_EQ(whole, (std::vector<std::int64_t>{-6, -20}));
  apply_rule_dense({RuleKind::kAssignMax, {}}, {}, block_of(whole, 2, 1), raw(by));
  EXPECT_EQ(whole, by) << "signed: -6 is below -2";
  EXPECT_THROW(apply_rule_dense({RuleKind::kAssignDiv, {}}, {}, block_of(whole, 2, 1), raw(by)),
               InvalidArgumentError);
}

TEST(UpdateRule, AssignCopiesRowsOfEveryWidth) {
  std::vector<std::uint8_t> bytes(6, 0), value = {7, 8, 9};
  apply_rule({RuleKind::kAssign, {}}, {}, block_of(bytes, 2, 3), std::vector<std::int64_t>{1},
             raw(value));
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{0, 0, 0, 7, 8, 9}));
  std::vector<std::int64_t> longs(2, 0), dense = {5, -6};
  apply_rule_dense({RuleKind::kAssign, {}}, {}, block_of(longs, 2, 1), raw(dense));
  EXPECT_EQ(longs, dense);
}

TEST(UpdateRule, AnOptimizerRefusesIntegers) {
  std::vector<std::int32_t> rows(2), gradient(2);
  EXPECT_THROW(
      apply_rule_dense({RuleKind::kSgd, {}}, {0.1f, 1}, block_of(rows, 2, 1), raw(gradient)),
      InvalidArgumentError);
}

TEST(UpdateRule, LazyAdamLeavesRowsThatAreNotNamedAlone) {
  UpdateRule adam{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}},
      lazy{RuleKind::kLazyAdam, adam.constants};
  std::vector<float> moved(6, 1.0f), still(6, 1.0f), gradient = {0.5f};
  apply_rule(adam, {0.1f, 3}, block_of(moved, 2, 1, 3), std::vector<std::int64_t>{1},
             raw(gradient));
  apply_rule(lazy, {0.1f, 3}, block_of(still, 2, 1, 3), std::vector<std::int64_t>{1},
             raw(gradient));
  EXPECT_NE(moved[0], 1.0f);
  EXPECT_EQ(still[0], 1.0f);
  EXPECT_EQ(moved[3], still[3]);
}

TEST(UpdateRule, ATableRuleTakesRowsInAnyOrder) {
  UpdateRule adam{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}};
  std::vector<float> a(15, 1.0f), b(15, 1.0f), up = {0.1f, 0.2f, 0.3f}, down = {0.3f, 0.2f, 0.1f};
  apply_rule(adam, {0.1f, 1}, block_of(a, 5, 1, 3), std::vector<std::int64_t>{0, 2, 3}, raw(up));
  apply_rule(adam, {0.1f, 1}, block_of(b, 5, 1, 3), std::vector<std::int64_t>{3, 2, 0}, raw(down));
  EXPECT_EQ(a, b);
}

TEST(UpdateRule, ARowsResultDoesNotDependOnWhichRowsComeWithIt) {
  // The same numbers applied one row at a time and as one plane: vector bodies and tails must round
  // alike.
  UpdateRule rule{RuleKind::kAdagrad, {0.1f, 1e-7f}};
  std::vector<float> gradient(37 * 3), together(37 * 3 * 2, 0.1f);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = std::sin(static_cast<float>(i));
  std::vector<float> apart = together;
  RowBlock planes{DType::kFloat32, reinterpret_cast<std::byte*>(together.data()), 37, 3, 3, 37 * 3};
  apply_rule_dense(rule, {0.05f, 1}, planes, raw(gradient));
  planes.base = reinterpret_cast<std::byte*>(apart.data());
  for (std::int64_t r = 0; r < 37; ++r)
    apply_rule(rule, {0.05f, 1}, planes, std::vector<std::int64_t>{r},
               reinterpret_cast<const std::byte*>(gradient.data() + 3 * r));
  EXPECT_EQ(together, apart);
}

// The same with more terms in a row of the arithmetic, whose roundings a compiler may join in the
// body of a loop otherwise than in what is left over.
TEST(UpdateRule, EveryWidthOfARowRoundsAlike) {
  const UpdateRule rules[] = {
      {RuleKind::kMomentum, {0.9f, 1}},
      {RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}},
      {RuleKind::kNadam, {0.9f, 0.999f, 1e-7f, 0.004f, 1}},
      {RuleKind::kFtrl, {-0.5f, 0.1f, 0.01f, 0.02f, 0.1f, 0.03f}},
      {RuleKind::kRmsPropCentered, {0.9f, 1e-7f, 0, 0}},
      {RuleKind::kRmsPropCenteredMomentum, {0.9f, 1e-7f, 0.8f, 0}},
      {RuleKind::kRmsPropCenteredMomentumTable, {0.9f, 1e-7f, 0.8f, 0}},
      {RuleKind::kAdadelta, {0.95f, 1e-7f, 0}},
  };
  for (const UpdateRule& rule : rules)
    for (const std::int64_t dim : {1, 3, 7, 12, 33}) {
      const std::int64_t rows = 1000, count = rows * dim;
      const std::size_t slots = rule_slots(rule).size();
      std::vector<float> gradient(static_cast<std::size_t>(count)), together;
      for (std::size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = std::sin(0.37f * static_cast<float>(i));
      together.resize((1 + slots) * gradient.size(), 0.5f);
      std::vector<float> apart = together;
      std::vector<std::int64_t> every(static_cast<std::size_t>(rows));
      std::iota(every.begin(), every.end(), 0);
      for (std::int64_t t = 1; t <= 3; ++t) {
        RowBlock planes{
            DType::kFloat32, reinterpret_cast<std::byte*>(together.data()), rows, dim, dim, count};
        apply_rule_dense(rule, {0.1f, t}, planes, raw(gradient));
        planes.base = reinterpret_cast<std::byte*>(apart.data());
        apply_rule(rule, {0.1f, t}, planes, every, raw(gradient));
      }
      EXPECT_TRUE(together == apart) << rule_name(rule.kind) << ", " << dim << " a row";
    }
}

TEST(UpdateRule, ALargeVariableChangesAsItsRowsWould) {
  const UpdateRule rules[] = {{RuleKind::kAssign, {}},
                              {RuleKind::kSgd, {}},
                              {RuleKind::kAdagrad, {0.1f, 1e-7f}},
                              {RuleKind::kLazyAdam, {0.9f, 0.999f, 1e-7f}}};
  constexpr std::int64_t kDim = 7;
  for (const std::int64_t rows : {74'898, 74'899, 150'001})  // from 8 bytes less than 2 MB on
    for (const UpdateRule& rule : rules) {
      const auto count = static_cast<std::size_t>(rows * kDim);
      std::vector<float> gradient(count), together(3 * count);
      for (std::size_t i = 0; i < count; ++i)
        gradient[i] = static_cast<float>(i * 37 % 1009) * 0.01f - 5;
      for (std::size_t i = 0; i < together.size(); ++i)
        together[i] = static_cast<float>(i % 1013) * 0.01f;
      std::vector<float> apart = together;
      std::vector<std::int64_t> every(static_cast<std::size_t>(rows));
      std::iota(every.begin(), every.end(), 0);
      RowBlock planes{
          DType::kFloat32, reinterpret_cast<std::byte*>(together.data()), rows, kDim, kDim,
          rows * kDim};
      apply_rule_dense(rule, {0.05f, 1}, planes, raw(gradient));
      planes.base = reinterpret_cast<std::byte*>(apart.data());
      apply_rule(rule, {0.05f, 1}, planes, every, raw(gradient));
      EXPECT_TRUE(together == apart) << rule_name(rule.kind) << ", " << rows << " rows";
    }
}

TEST(UpdateRule, VerifyNamesTheConstantThatIsOutOfRange) {
  auto message = [](const UpdateRule& rule) -> std::string {
    try {
      verify_rule(rule);
      return "accepted";
    } catch (const InvalidArgumentError& e) {
      return e.what();
    }
  };
  EXPECT_NE(message({RuleKind::kAdam, {1.0f, 0.9f, 0}}).find("beta_1"), std::string::npos);
  EXPECT_NE(message({RuleKind::kMomentum, {0.9f, 0.5f}}).find("nesterov"), std::string::npos);
  EXPECT_NE(message({RuleKind::kFtrl, {0.5f}}).find("learning_rate_power"), std::string::npos);
  EXPECT_NE(message({RuleKind::kSgd, {std::nanf("")}}).find("finite"), std::string::npos);
  EXPECT_NE(message({static_cast<RuleKind>(kRuleKindCount), {}}).find("unknown"),
            std::string::npos);
  EXPECT_NE(message({RuleKind::kRmsProp, {1.0f, 0}}).find("rho"), std::string::npos);
  EXPECT_NE(message({RuleKind::kNadam, {0.9f, 0.999f, 1e-7f, -1}}).find("schedule_decay"),
            std::string::npos);
  EXPECT_NE(message({RuleKind::kAdadelta, {0.95f, 1e-7f, 2}}).find("share"), std::string::npos);
  EXPECT_EQ(message({RuleKind::kAdagrad, {0.1f, 1e-7f}}), "accepted");
}

TEST(UpdateRule, VerifyRefusesALearningRateThatWouldSpoilTheRows) {
  const UpdateRule sgd{RuleKind::kSgd, {}}, ftrl{RuleKind::kFtrl, {-0.5f, 0.1f}};
  for (float rate : {-1.0f, std::nanf(""), std::numeric_limits<float>::infinity()})
    EXPECT_THROW(verify_learning_rate(sgd, rate), InvalidArgumentError) << rate;
  EXPECT_NO_THROW(verify_learning_rate(sgd, 0));
  EXPECT_THROW(verify_learning_rate(ftrl, 0), InvalidArgumentError) << "it is divided by";
  EXPECT_NO_THROW(verify_learning_rate({RuleKind::kAssign, {}}, std::nanf(""))) << "it is not used";
}

TEST(UpdateRule, RowwiseAdagradKeepsOneAccumulatorOfTheMeanSquareForEachRow) {
  const UpdateRule rule{RuleKind::kRowwiseAdagrad, {0.5f, 0}};
  ASSERT_EQ(slot_width(rule.kind, 11), 1);
  std::vector<float> rows(2 * 12, 1.0f), gradient(11, 2.0f);
  rows[11] = rows[23] = 0.5f;  // the accumulators
  const RowBlock block{DType::kFloat32, reinterpret_cast<std::byte*>(rows.data()), 2, 11, 12, 11};
  apply_rule(rule, {0.25f, 1}, block, std::vector<std::int64_t>{1}, raw(gradient));
  EXPECT_EQ(rows[0], 1.0f);
  EXPECT_EQ(rows[11], 0.5f);
  EXPECT_FLOAT_EQ(rows[23], 4.5f);
  for (std::size_t j = 12; j < 23; ++j) EXPECT_FLOAT_EQ(rows[j], 1 - 0.25f * 2 / std::sqrt(4.5f));
}

TEST(UpdateRule, RowwiseAdagradOfSingleNumbersIsAdagrad) {
  const UpdateRule whole{RuleKind::kAdagrad, {0.1f, 1e-7f}},
      rowwise{RuleKind::kRowwiseAdagrad, {0.1f, 1e-7f}};
  std::vector<float> a(20, 0.1f), b(20, 0.1f), gradient = {1, -2, 3, 0.5f, 0, -1, 2, 7, 1e-3f, -4};
  for (std::vector<float>* rows : {&a, &b}) {
    const RowBlock planes{
        DType::kFloat32, reinterpret_cast<std::byte*>(rows->data()), 10, 1, 1, 10};
    apply_rule_dense(rows == &a ? whole : rowwise, {0.05f, 1}, planes, raw(gradient));
  }
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_FLOAT_EQ(a[i], b[i]) << i;
}

TEST(UpdateRule, NadamsWarmUpEndsAfterAnyNumberOfSteps) {
  for (float decay : {0.0f, 0.004f, 1.0f, 1000.0f})
    for (std::int64_t t : {std::int64_t{1}, std::int64_t{100}, std::int64_t{1} << 40}) {
      std::vector<float> rows = {1, 0, 0}, gradient = {1};
      apply_rule({RuleKind::kNadam, {0.99999f, 0.999f, 1e-7f, decay, 1}}, {0.001f, t},
                 block_of(rows, 1, 1, 3), std::vector<std::int64_t>{0}, raw(gradient));
      EXPECT_TRUE(std::isfinite(rows[0])) << decay << " " << t;
      EXPECT_LT(rows[0], 1.0f);
    }
}

TEST(UpdateRule, ACenteredVarianceThatRoundsBelowZeroIsNoNaN) {
  const UpdateRule rule{RuleKind::kRmsPropCentered, {0.9f, 1e-7f, 0, 0}};
  std::vector<float> rows = {1, 0, 0}, gradient = {0.3f};
  for (std::int64_t t = 1; t < 500; ++t)
    apply_rule_dense(rule, {1e-6f, t}, block_of(rows, 1, 1, 3), raw(gradient));
  EXPECT_TRUE(std::isfinite(rows[0]));
}

}  // namespace
}  // namespace cairn
