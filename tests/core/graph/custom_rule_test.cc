#include "core/graph/custom_rule.h"

#include <capnp/message.h>
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/ops_model.h"
#include "core/graph/ops_random.h"
#include "core/graph/variable.h"
#include "core/graph/wire/wire.h"
#include "tests/core/some_rules.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

// Rows with their slots beside them, which begin as the rule says.
struct Rows {
  Rows(const UpdateRule& by, std::int64_t count, std::int64_t width)
      : rule(by), rows(count), dim(width) {
    const std::vector<SlotSpec> slots = rule_slots(rule);
    stride = dim * (1 + std::ssize(slots));
    memory.resize(static_cast<std::size_t>(rows * stride));
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < dim; ++j) {
        memory[at(r, j)] = std::sin(static_cast<float>(r * dim + j));
        for (std::size_t k = 0; k < slots.size(); ++k)
          memory[at(r, j) + (k + 1) * static_cast<std::size_t>(dim)] = slots[k].initial_value;
      }
  }
  std::size_t at(std::int64_t row, std::int64_t j) const {
    return static_cast<std::size_t>(row * stride + j);
  }
  RowBlock block() {
    return {DType::kFloat32, reinterpret_cast<std::byte*>(memory.data()), rows, dim, stride, dim};
  }
  void update(const std::vector<std::int64_t>& numbers, std::int64_t t) {
    std::vector<float> gradients;
    for (const std::int64_t row : numbers)
      for (std::int64_t j = 0; j < dim; ++j)
        gradients.push_back(std::cos(static_cast<float>(row * 7 + j * 3 + t)));
    apply_rule(rule, {0.1f, t}, block(), numbers,
               reinterpret_cast<const std::byte*>(gradients.data()));
  }

  UpdateRule rule;
  std::int64_t rows, dim, stride;
  std::vector<float> memory;
};

TEST(CustomRule, AdamMadeOfOperationsIsAdam) {
  const UpdateRule lazy{RuleKind::kLazyAdam, {0.9f, 0.999f, 1e-7f}};
  for (const std::int64_t dim : {1, 3, 64, 700}) {
    Rows own(testing::own_adam(), 9, dim), known(lazy, 9, dim);
    for (std::int64_t t = 1; t <= 5; ++t)
      for (Rows* rows : {&own, &known}) rows->update({t % 9, 8, (3 * t) % 5}, t);
    // 1 - 0.999^t is a difference of floats here, and of doubles there.
    for (std::size_t i = 0; i < own.memory.size(); ++i)
      ASSERT_NEAR(own.memory[i], known.memory[i], 2e-5) << "dim " << dim << ", element " << i;
  }
}

TEST(CustomRule, ARowsResultDoesNotDependOnTheRowsBesideIt) {
  for (const UpdateRule& rule : testing::own_rules())
    for (const std::int64_t dim : {1, 5, 100, 300}) {
      Rows together(rule, 40, dim), apart(rule, 40, dim);
      std::vector<std::int64_t> all(40);
      std::iota(all.begin(), all.end(), 0);
      for (std::int64_t t = 1; t <= 3; ++t) {
        together.update(all, t);
        for (const std::int64_t row : all) apart.update({row}, t);
      }
      EXPECT_EQ(together.memory, apart.memory) << rule_name(rule) << " of " << dim;
    }
}

TEST(CustomRule, MayReturnWhatItWasGivenAndScalars) {
  const UpdateRule rule =
      custom_rule("odd", {{"last", 0}, {"before", 0}, {"count", 0}}, [](const RuleInput& in) {
        return RuleOutput{in.gradient, {in.value, in.slots[0], in.t}};
      });
  for (const std::int64_t dim : {2, 400}) {
    Rows rows(rule, 3, dim);
    const float first = rows.memory[rows.at(1, 1)];
    rows.update({1, 2}, 1);
    rows.update({1}, 2);
    const auto slot = [&](std::size_t k) {
      return rows.memory[rows.at(1, 1) + k * static_cast<std::size_t>(dim)];
    };
    EXPECT_EQ(slot(0), std::cos(7.0f + 3 + 2));
    EXPECT_EQ(slot(1), std::cos(7.0f + 3 + 1));
    EXPECT_EQ(slot(2), first);
    EXPECT_EQ(slot(3), 2);
  }
}

TEST(CustomRule, EqualOnesAreEqualAndOthersAreNot) {
  const auto scaled = [](const std::string& name, float by) {
    return custom_rule(name, {}, [by](const RuleInput& in) {
      return RuleOutput{in.value - by * in.learning_rate * in.gradient};
    });
  };
  EXPECT_EQ(scaled("a", 2), scaled("a", 2));
  EXPECT_NE(scaled("a", 2), scaled("a", 3));
  EXPECT_NE(scaled("a", 2), scaled("b", 2));
  EXPECT_TRUE(same_slots(scaled("a", 2), scaled("b", 3)));
  EXPECT_FALSE(same_slots(scaled("a", 2), testing::own_adam()));
}

TEST(CustomRule, GoesOverTheWireAndComesBackAsTheSame) {
  capnp::MallocMessageBuilder message;
  for (const UpdateRule& rule : testing::own_rules()) {
    auto out = message.initRoot<wire::UpdateRule>();
    wire::write(out, rule);
    EXPECT_EQ(wire::read(out.asReader()), rule);
    wire::write_kept(out = message.initRoot<wire::UpdateRule>(), rule);
    EXPECT_EQ(wire::read(out.asReader()), (UpdateRule{RuleKind::kCustom, {}}))
        << "rows keep its operations";
  }
}

TEST(CustomRule, WithinTheOperationsOfAnotherIsRefused) {
  const std::vector<std::byte> bytes = [] {  // of a rule whose owners have gone
    Graph inner;
    Node node{find_op("update_variable"), {}, {{"variable", std::int64_t{0}}}, {}};
    node.attributes.set("rule", testing::own_adam());
    node.attributes.set("sparse", false);
    inner.nodes.push_back(node);
    return serialize(inner);
  }();
  try {
    CustomRule::of("outer", {}, bytes);
    ADD_FAILURE() << "it was taken";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("within the operations of another"));
  }
}

std::string refusal(const std::vector<RuleSlot>& slots, const RuleFunction& function,
                    const std::string& name = "mine") {
  try {
    custom_rule(name, slots, function);
    return "accepted";
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
}

TEST(CustomRule, SaysWhatItMayNotBe) {
  const auto plain = [](const RuleInput& in) {
    return RuleOutput{in.value - in.learning_rate * in.gradient};
  };
  EXPECT_THAT(refusal({}, plain, ""), HasSubstr("name has 1 to 100 bytes"));
  EXPECT_THAT(refusal({{"m", 0}, {"m", 0}}, plain), HasSubstr("a name of its own"));
  EXPECT_THAT(refusal({{"m", NAN}}, plain), HasSubstr("slot \"m\" begins at nan"));
  EXPECT_THAT(refusal({{"m", 0}}, plain), HasSubstr("\"mine\" returns 0 slots; it has 1"));
  EXPECT_THAT(refusal({}, [](const RuleInput&) { return RuleOutput{}; }),
              HasSubstr("no array for \"value\""));
  EXPECT_THAT(
      refusal({},
              [](const RuleInput& in) { return RuleOutput{in.value - reduce_mean(in.gradient)}; }),
      AllOf(HasSubstr("\"reduce_mean\""), HasSubstr("each element from the same element")));
  EXPECT_THAT(
      refusal({}, [](const RuleInput& in) { return RuleOutput{in.value + random_uniform({1})}; }),
      HasSubstr("each element from the same element"));
  EXPECT_THAT(refusal({}, [](const RuleInput& in) { return RuleOutput{in.value < in.gradient}; }),
              HasSubstr("the value becomes bool[?]; float32 is wanted"));
  EXPECT_THAT(refusal({},
                      [](const RuleInput& in) {
                        Array sum = in.value;
                        for (int i = 0; i < 100; ++i) sum = sum * in.value + in.gradient;
                        return RuleOutput{sum};
                      }),
              HasSubstr("operations; at most 64"));
}

TEST(CustomRule, WithoutItsOperationsIsAppliedToNothing) {
  Rows rows(testing::own_adam(), 2, 3);
  const std::vector<float> before = rows.memory;
  rows.rule = with_saved_slots({RuleKind::kCustom, {}}, {"m", "v"});
  EXPECT_TRUE(same_slots(rows.rule, testing::own_adam()));
  EXPECT_THROW(rows.update({0}, 1), InvalidArgumentError);
  EXPECT_EQ(rows.memory, before);
}

}  // namespace
}  // namespace cairn
