// Which rows of a checkpoint each variable takes, and what is refused as a whole.
#include "coordinator/restore/restore_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/restore/name_pattern.h"
#include "core/base/error.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const UpdateRule kPlanAdam{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}};
const UpdateRule kPlanAdagrad{RuleKind::kAdagrad, {1e-7f}};

// "embedding/city" [10, 2], "embedding/user" [20, 2], "tower/w" [4, 3], "head" [3], by Adam.
SavedVariables two_tables_and_a_tower() {
  return {{"embedding/city", {{DType::kFloat32, {10, 2}}, kPlanAdam}},
          {"embedding/user", {{DType::kFloat32, {20, 2}}, kPlanAdam}},
          {"tower/w", {{DType::kFloat32, {4, 3}}, kPlanAdam}},
          {"head", {{DType::kFloat32, {3}}, kPlanAdam}}};
}
RestorePlan plan_of(RestoreOptions options) {
  return RestorePlan(two_tables_and_a_tower(), "/ckpt", std::move(options));
}
ProgramVariable made_variable(std::string name, Shape shape, const UpdateRule& rule = kPlanAdam,
                              bool hashed = false) {
  VariableSpec spec{.name = std::move(name), .shape = std::move(shape), .hashed = hashed};
  return {std::make_shared<const VariableSpec>(std::move(spec)), rule};
}
// Where the variable's rows come from; empty: it begins anew.
std::string source(const RestorePlan& plan, const std::string& name, Shape shape) {
  const auto move = plan.move_of(*made_variable(name, std::move(shape)).spec);
  return move.has_value() ? move->from : "";
}
template <typename Call>
std::string plan_refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}
std::string refused(RestoreOptions options) {
  return plan_refusal([&] { plan_of(std::move(options)); });
}

TEST(NamePattern, StarsMatchAnyCharactersAndSetsOneOfTheirs) {
  EXPECT_TRUE(matches_pattern("embedding/*", "embedding/a/b"));
  EXPECT_TRUE(matches_pattern("layer[0-3]", "layer2"));
  EXPECT_FALSE(matches_pattern("embedding/*", "embedding"));
  EXPECT_FALSE(matches_pattern("layer[!0-3]", "layer2"));
}

TEST(NamePattern, SlipsThatWouldMatchNothingAreNamed) {
  EXPECT_EQ(pattern_trouble("tower/*"), "");
  EXPECT_EQ(pattern_trouble("[]a]"), "");
  EXPECT_EQ(pattern_trouble("[!]a]"), "");
  EXPECT_EQ(pattern_trouble(""), "is empty");
  for (const char* open : {"layer[0", "[", "[]", "[!]", "a[b]c["})
    EXPECT_EQ(pattern_trouble(open), "has a \"[\" without its \"]\"") << open;
  EXPECT_EQ(pattern_trouble("a\\"), "ends in \"\\\"");
}

TEST(NamePattern, ARenameCarriesOverWhatItsStarStandsFor) {
  EXPECT_EQ(renamed("tower/*", "user_tower/*", "tower/w/0"), "user_tower/w/0");
  EXPECT_EQ(renamed("*/w", "*/kernel", "tower/w"), "tower/kernel");
  EXPECT_EQ(renamed("a*a", "b*", "a"), std::nullopt);
  EXPECT_EQ(renamed("head", "neck", "head"), "neck");
  EXPECT_EQ(renamed("head", "neck", "heads"), std::nullopt);
}

TEST(RestorePlan, EachVariableTakesTheRowsOfItsNameByDefault) {
  const RestorePlan plan = plan_of({});
  EXPECT_EQ(source(plan, "head", {3}), "head");
  EXPECT_EQ(source(plan, "neck", {3}), "");
  EXPECT_TRUE(plan.as_saved(*made_variable("head", {3}).spec));
}

TEST(RestorePlan, IncludeAndExcludeChooseByPatterns) {
  const RestorePlan plan = plan_of({.include = {"embedding/*", "head"}, .exclude = {"*/user"}});
  EXPECT_EQ(source(plan, "embedding/city", {10, 2}), "embedding/city");
  EXPECT_EQ(source(plan, "embedding/user", {20, 2}), "");
  EXPECT_EQ(source(plan, "tower/w", {4, 3}), "");
  EXPECT_EQ(source(plan, "head", {3}), "head");
}

TEST(RestorePlan, ThatWhichIsLeftOutMayHaveAnyShapeAndIsNoDifference) {
  const RestorePlan plan = plan_of({.exclude = {"tower/*"}});
  const std::vector<ProgramVariable> made{
      made_variable("embedding/city", {10, 2}), made_variable("embedding/user", {20, 2}),
      made_variable("tower/w", {7}), made_variable("head", {3})};
  plan.verify(made);
  EXPECT_TRUE(plan.compare(made).none()) << plan.compare(made).text();
}

TEST(RestorePlan, ThatWhichIncludeDoesNotNameIsNoDifferenceEither) {
  const RestorePlan plan = plan_of({.include = {"head"}});
  EXPECT_TRUE(plan.compare({made_variable("head", {3}), made_variable("another", {2})}).none());
  const RestorePlan strict = plan_of({.exclude = {"head"}});
  EXPECT_THAT(strict.compare({made_variable("another", {2})}).not_saved,
              ElementsAre("\"another\""));
}

TEST(RestorePlan, RenamesMoveVariablesAndTheOthersKeepTheirNames) {
  const RestorePlan plan = plan_of({.rename = {{"tower/*", "user_tower/*"}, {"head", "neck"}}});
  EXPECT_EQ(source(plan, "user_tower/w", {4, 3}), "tower/w");
  EXPECT_EQ(source(plan, "neck", {3}), "head");
  EXPECT_EQ(source(plan, "head", {3}), "");
  EXPECT_EQ(source(plan, "embedding/city", {10, 2}), "embedding/city");
  EXPECT_FALSE(plan.as_saved(*made_variable("neck", {3}).spec));
}

TEST(RestorePlan, TwoVariablesMayChangePlaces) {
  const SavedVariables saved{{"a", {{DType::kFloat32, {1}}, {}}},
                             {"b", {{DType::kFloat32, {1}}, {}}}};
  const RestorePlan plan(saved, "/ckpt", {.rename = {{"a", "b"}, {"b", "a"}}});
  EXPECT_EQ(source(plan, "a", {1}), "b");
  EXPECT_EQ(source(plan, "b", {1}), "a");
}

TEST(RestorePlan, ARenameOntoAVariableThatIsNeverMadeIsADifference) {
  const RestorePlan plan = plan_of({.include = {"head"}, .rename = {{"head", "neck"}}});
  const RestoreDifferences found = plan.compare({made_variable("nack", {3})});
  EXPECT_THAT(found.renamed_onto_nothing, ElementsAre("\"head\" as \"neck\""));
  EXPECT_THAT(found.text(), HasSubstr("renamed onto no variable of the program: \"head\""));
  EXPECT_FALSE(found.none());
}

TEST(RestorePlan, ATargetOfWhatIsLeftOutBeginsAnewWithoutADifference) {
  const RestorePlan plan = plan_of({.exclude = {"tower/w"}, .rename = {{"*", "new/*"}}});
  EXPECT_TRUE(plan.leaves_out("new/tower/w"));
  EXPECT_THAT(plan.compare({made_variable("new/tower/w", {1})}).not_saved, IsEmpty());
}

TEST(RestorePlan, APatternThatMatchesNothingIsRefusedWithTheNearestName) {
  EXPECT_THAT(refused({.include = {"embeding/city"}}),
              AllOf(HasSubstr("/ckpt"), HasSubstr("include: \"embeding/city\" matches no variable"),
                    HasSubstr("did you mean \"embedding/city\"?"), HasSubstr("\"tower/w\"")));
  EXPECT_THAT(refused({.exclude = {"wide"}}), HasSubstr("exclude: \"wide\" matches no variable"));
  EXPECT_THAT(refused({.rename = {{"wide/*", "x/*"}}}),
              HasSubstr("rename: \"wide/*\" matches no variable that is restored"));
  EXPECT_THAT(refused({.exclude = {"head"}, .rename = {{"head", "neck"}}}),
              HasSubstr("rename: \"head\" matches no variable that is restored"));
}

TEST(RestorePlan, PatternsThatAreNoneAreRefused) {
  EXPECT_THAT(refused({.include = {"head[0"}}),
              HasSubstr("include: the pattern \"head[0\" has a \"[\" without its \"]\""));
  EXPECT_THAT(refused({.rename = {{"tower/*", "user"}}}),
              HasSubstr("\"tower/*\" = \"user\" needs a \"*\" on both sides or on neither"));
  EXPECT_THAT(refused({.rename = {{"t*/*", "u*/*"}}}), HasSubstr("may have one \"*\""));
  EXPECT_THAT(refused({.rename = {{"t?", "u"}}}), HasSubstr("no wildcard but \"*\""));
}

TEST(RestorePlan, TwoVariablesForOneAreRefused) {
  EXPECT_THAT(refused({.rename = {{"embedding/city", "embedding/user"}}}),
              HasSubstr("\"embedding/city\" and \"embedding/user\" would both go into "
                        "\"embedding/user\": exclude one of them"));
  EXPECT_EQ(source(plan_of({.exclude = {"embedding/user"},
                            .rename = {{"embedding/city", "embedding/user"}}}),
                   "embedding/user", {10, 2}),
            "embedding/city");
}

TEST(RestorePlan, TwoRenamesOfOneVariableAreRefused) {
  EXPECT_THAT(refused({.rename = {{"tower/*", "a/*"}, {"*/w", "b/*"}}}),
              HasSubstr("\"tower/w\" is matched by \"*/w\" and by \"tower/*\""));
}

TEST(RestorePlan, AllThatIsWrongIsListedAtOnce) {
  EXPECT_THAT(refused({.include = {"["}, .exclude = {"nothing"}, .rename = {{"*", "x"}}}),
              AllOf(HasSubstr("include:"), HasSubstr("exclude:"), HasSubstr("rename:")));
}

TEST(RestorePlan, ChoosingNothingIsRefused) {
  EXPECT_THAT(refused({.exclude = {"*"}}), HasSubstr("nothing of the checkpoint is left"));
}

TEST(RestorePlan, OtherTypesAreRefusedWithAllTheirNames) {
  const RestorePlan plan = plan_of({.rename = {{"head", "neck"}}});
  const std::string text = plan_refusal([&] {
    plan.verify({made_variable("neck", {4}), made_variable("tower/w", {4, 2})});
  });
  EXPECT_THAT(text,
              AllOf(HasSubstr("\"neck\" is float32[4], in the checkpoint float32[3] as \"head\""),
                    HasSubstr("\"tower/w\" is float32[4, 2], in the checkpoint float32[4, 3]"),
                    HasSubstr("RestoreOptions::exclude")));
}

TEST(RestorePlan, WithoutSlotsAnotherOptimizerIsNoDifference) {
  const std::vector<ProgramVariable> made{made_variable("head", {3}, kPlanAdagrad)};
  EXPECT_FALSE(plan_of({.include = {"head"}}).compare(made).none());
  const RestorePlan plan = plan_of({.include = {"head"}, .slots = false});
  EXPECT_TRUE(plan.compare(made).none());
  EXPECT_FALSE(plan.move_of(*made[0].spec)->slots);
}

TEST(RestorePlan, RowsOfAHashedVariableFitADenseOneOfTheSameRowShape) {
  const SavedVariables saved{{"v", {{DType::kFloat32, {1 << 30, 2}}, {}, true}}};
  const RestorePlan plan(saved, "/ckpt");
  EXPECT_EQ(source(plan, "v", {100, 2}), "v");
  EXPECT_TRUE(plan.may_not_fit(*made_variable("v", {100, 2}).spec));
  EXPECT_FALSE(plan.fits(*made_variable("v", {100, 3}).spec));
  // Ids are hashes by the number of rows: of another number they mean something else.
  EXPECT_FALSE(plan.fits(*made_variable("v", {1 << 20, 2}, {}, true).spec));
}

TEST(RestorePlan, RowsOfADenseVariableFitAHashedOneThatHasAsMany) {
  const SavedVariables saved{{"v", {{DType::kFloat32, {100, 2}}, {}}}};
  const RestorePlan plan(saved, "/ckpt");
  EXPECT_TRUE(plan.fits(*made_variable("v", {1 << 30, 2}, {}, true).spec));
  EXPECT_FALSE(plan.may_not_fit(*made_variable("v", {1 << 30, 2}, {}, true).spec));
  EXPECT_THAT(plan_refusal([&] {
                plan.verify({made_variable("v", {99, 2}, {}, true)});
              }),
              HasSubstr("whose rows are more than its ids"));
}

std::shared_ptr<const RowNumbers> row_numbers(RowNumbers all) {
  return std::make_shared<const RowNumbers>(std::move(all));
}

TEST(RestorePlan, RowsWithNewNumbersMayChangeTheNumberOfRows) {
  const RestorePlan plan = plan_of({.rows = {{"head", row_numbers({5, kRowGone, 0})}}});
  const auto move = plan.move_of(*made_variable("head", {6}).spec);
  ASSERT_TRUE(move.has_value());
  EXPECT_THAT(*move->numbers, ElementsAre(5, -1, 0));
  EXPECT_EQ(move->rows, 6);
  EXPECT_THAT(plan_refusal([&] { plan.verify({made_variable("head", {5})}); }),
              HasSubstr("\"head\" has 5 rows, and row 0 of the checkpoint is to go to row 5"));
}

TEST(RestorePlan, RowNumbersThatCannotBeMeantAreRefused) {
  EXPECT_THAT(refused({.rows = {{"head", row_numbers({0, 1, 1})}}}),
              HasSubstr("rows: \"head\": two rows go to row 1"));
  EXPECT_THAT(refused({.rows = {{"head", row_numbers({0, -2, 1})}}}),
              HasSubstr("rows: \"head\": row 1 goes to row -2"));
  EXPECT_THAT(refused({.rows = {{"nothing", row_numbers({0})}}}),
              HasSubstr("rows: \"nothing\" takes no rows of the checkpoint"));
  const RestorePlan plan = plan_of({.rows = {{"head", row_numbers({0, 1})}}});
  EXPECT_THAT(plan_refusal([&] { plan.verify({made_variable("head", {3})}); }),
              HasSubstr("new numbers for 2 rows, and the checkpoint has 3"));
}

TEST(RowsByValue, FollowTheirValuesAndTheUnknownOneStaysUnknown) {
  VocabInfo info{.old_vocab = {"ant", "bee", "cat"}, .new_vocab = {"cat", "dog", "ant"}};
  EXPECT_THAT(rows_by_value(info), ElementsAre(0, 3, kRowGone, 1));
  info.oov = Oov::kLast;
  EXPECT_THAT(rows_by_value(info), ElementsAre(2, kRowGone, 0, 3));
  info.new_vocab.push_back("cat");
  EXPECT_THAT(plan_refusal([&] { rows_by_value(info); }), HasSubstr("new_vocab has \"cat\" twice"));
}

TEST(RestorePlan, TheTextHasALineForEachVariable) {
  const RestorePlan plan = plan_of({.exclude = {"embedding/user"},
                                    .rename = {{"tower/*", "user_tower/*"}},
                                    .rows = {{"head", row_numbers({1, kRowGone, 0})}}});
  const std::string text =
      plan.text({made_variable("head", {5}), made_variable("user_tower/w", {4, 3}, kPlanAdagrad),
                 made_variable("embedding/city", {10, 2}), made_variable("new", {1})});
  EXPECT_EQ(
      text,
      "from the checkpoint /ckpt:\n"
      "  \"embedding/city\": from \"embedding/city\", 10 rows, slots of adam (m, v)\n"
      "  \"head\": from \"head\", 2 rows to their new numbers, 1 left out, 3 rows begin anew, "
      "slots of adam (m, v)\n"
      "  \"new\": begins anew, not in the checkpoint\n"
      "  \"user_tower/w\": from \"tower/w\", 4 rows, slots begin anew\n"
      "  of the checkpoint, left out: \"embedding/user\"");
}

TEST(RestorePlan, ARestoreByNamesIsNothingUnusual) {
  EXPECT_FALSE(plan_of({}).unusual({made_variable("head", {3}), made_variable("other", {3})}));
  EXPECT_TRUE(plan_of({.slots = false}).unusual({}));
  EXPECT_TRUE(plan_of({}).unusual({made_variable("embedding/city", {10, 2}, {}, true)}));
}

}  // namespace
}  // namespace cairn
