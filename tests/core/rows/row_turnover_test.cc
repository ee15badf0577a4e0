// Which rows of a variable that does not keep all of them an update may make, and which go.
#include "core/rows/row_turnover.h"

#include <gmock/gmock.h>

#include <set>

#include "core/base/random.h"
#include "core/rows/local_store.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr std::int64_t kNumbers = std::int64_t{1} << 40;

// A variable of one element a row, at first 0, in a store, updated by SGD at a rate of 1.
class Updated {
 public:
  explicit Updated(const RowPolicy& policy) {
    VariableSpec spec{.name = "v", .shape = {kNumbers, 1}};
    spec.hashed = true;
    spec.policy = policy;
    id_ = store_.create(std::make_shared<const VariableSpec>(spec));
  }
  // Each of these, ascending, becomes 1 more.
  void update(const std::vector<std::int64_t>& rows, RuleKind kind = RuleKind::kSgd) {
    const auto n = static_cast<std::int64_t>(rows.size());
    Update update;
    update.variable = id_;
    update.rule = {kind, {}};
    update.learning_rate = 1;
    update.ids = Tensor::of<std::int64_t>({n}, rows);
    const std::vector<float> gradient(rows.size(), -1);
    update.value = Tensor::of<float>({n, 1}, gradient);
    store_.push({}, {&update, 1});
  }
  float value(std::int64_t row) {
    Read read;
    read.variable = id_;
    read.ids = Tensor::of<std::int64_t>({1}, {&row, 1});
    store_.pull({}, {&read, 1});
    return read.value.values<float>()[0];
  }
  std::vector<std::int64_t> rows() const {
    const auto held = store_.rows_held(id_);
    return {held.begin(), held.end()};
  }
  std::uint64_t dropped() const { return store_.turnover(id_)->dropped(); }

 private:
  LocalStore store_;
  VariableId id_ = 0;
};

TEST(RowPolicy, ARowThatIsAdmittedAfterThreeUpdatesLosesTheFirstTwo) {
  Updated variable({.admit_after = 3, .sketch_rows = 1 << 12});
  variable.update({5});
  variable.update({5, 9});
  EXPECT_THAT(variable.rows(), IsEmpty());
  EXPECT_EQ(variable.value(5), 0);
  variable.update({5});
  EXPECT_THAT(variable.rows(), ElementsAre(5));
  EXPECT_EQ(variable.value(5), 1);
  EXPECT_EQ(variable.dropped(), 3u);
}

TEST(RowPolicy, AnAssignmentMakesItsRowAtOnce) {
  Updated variable({.admit_after = 3});
  variable.update({5}, RuleKind::kAssign);
  EXPECT_THAT(variable.rows(), ElementsAre(5));
}

TEST(RowPolicy, AProbabilityAdmitsAboutThatManyOfTheRows) {
  Updated variable({.admit_probability = 0.25});
  for (std::int64_t row = 0; row < 4000; ++row) variable.update({row * 77});
  EXPECT_NEAR(static_cast<double>(variable.rows().size()), 1000, 120);
  EXPECT_EQ(variable.rows().size() + variable.dropped(), 4000u);
}

TEST(RowPolicy, ARowThatIsNotUpdatedForItsTimeGoesAndBeginsAnew) {
  Updated variable({.steps_to_live = 16});
  variable.update({1, 2});
  for (int i = 0; i < 15; ++i) variable.update({2});
  EXPECT_THAT(variable.rows(), UnorderedElementsAre(1, 2));
  for (int i = 0; i < 3; ++i) variable.update({2});
  EXPECT_THAT(variable.rows(), ElementsAre(2));
  EXPECT_EQ(variable.value(1), 0);
  EXPECT_EQ(variable.value(2), 19);
  variable.update({1});
  EXPECT_EQ(variable.value(1), 1);
}

TEST(RowPolicy, ARowOfTheNormThatIsSparedStays) {
  Updated variable({.steps_to_live = 16, .spared_norm = 2});
  variable.update({1, 2});
  variable.update({2});
  for (int i = 0; i < 40; ++i) variable.update({3});
  EXPECT_THAT(variable.rows(), UnorderedElementsAre(2, 3));
}

TEST(RowPolicy, OfTooManyRowsThoseGoThatAreUpdatedLeast) {
  Updated variable({.rows_max = 100});
  Random random(1);
  for (int i = 0; i < 4000; ++i) {
    std::set<std::int64_t> rows;
    for (int k = 0; k < 4; ++k) rows.insert(static_cast<std::int64_t>(random.below(60)));
    rows.insert(1000 + i);  // one that comes once
    variable.update({rows.begin(), rows.end()});
    ASSERT_LE(variable.rows().size(), 100u);
  }
  std::size_t frequent = 0;
  for (const std::int64_t row : variable.rows()) frequent += row < 60 ? 1 : 0;
  EXPECT_GE(frequent, 57u);
}

TEST(RowPolicy, ThatIsImpossibleIsRefusedWithItsReason) {
  const auto reason = [](const RowPolicy& policy) { return why_not(policy); };
  EXPECT_THAT(reason({.admit_after = 17}), HasSubstr("1 to 16"));
  EXPECT_THAT(reason({.admit_probability = 0}), HasSubstr("above 0"));
  EXPECT_THAT(reason({.admit_after = 2, .admit_probability = 0.5}), HasSubstr("one of them"));
  EXPECT_THAT(reason({.rows_max = -1}), HasSubstr("rows_max"));
  EXPECT_THAT(reason({.spared_norm = 1}), HasSubstr("give both"));
  EXPECT_THAT(reason({.admit_after = 2, .rows_max = 5, .steps_to_live = 9, .spared_norm = 1}),
              IsEmpty());
}

}  // namespace
}  // namespace cairn
