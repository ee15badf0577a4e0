#include "tools/job/toml/job_optimizer.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "core/graph/ops.h"
#include "nn/optimizers/optimizer_names.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The tables stand from line 3 on.
Job job_with(const std::string& tables) {
  return parse_job("[data]\ntrain = \"a.csv\"\n" + tables, "some.toml");
}

UpdateRule rule_of(const std::string& lines) {
  const Job job = job_with("[optimizer]\n" + lines);
  return make_optimizer(job.optimizer, "deep/optimizer")->rule();
}

std::string refusal_of(const std::string& tables) {
  try {
    job_with(tables);
  } catch (const InvalidArgumentError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(JobOptimizer, EveryOptimizerOfNnHasItsNameAndTakesItsArguments) {
  const float share = 1 - 0.5f;
  const std::vector<std::pair<std::string, UpdateRule>> cases = {
      {"kind = 'sgd'", {RuleKind::kSgd, {}}},
      {"kind = 'sgd'\nmomentum = 0.5\nnesterov = true", {RuleKind::kMomentum, {0.5f, 1}}},
      {"kind = 'sgd'\nmomentum = 0.5\napi = 'keras2'", {RuleKind::kMomentumTable, {0.5f, 0}}},
      {"kind = 'adagrad'\ninitial_accumulator_value = 0.25\nepsilon = 0.5",
       {RuleKind::kAdagrad, {0.25f, 0.5f, 0}}},
      {"kind = 'rowwise_adagrad'\ninitial_accumulator_value = 0.25\nepsilon = 0.5",
       {RuleKind::kRowwiseAdagrad, {0.25f, 0.5f}}},
      {"kind = 'rmsprop'\nrho = 0.5\nepsilon = 0.25", {RuleKind::kRmsProp, {0.5f, 0.25f, 0, 0}}},
      {"kind = 'rmsprop'\nrho = 0.5\nepsilon = 0.25\ncentered = true",
       {RuleKind::kRmsPropCentered, {0.5f, 0.25f, 0, 0}}},
      {"kind = 'rmsprop'\nrho = 0.5\nepsilon = 0.25\nmomentum = 0.75",
       {RuleKind::kRmsPropMomentum, {0.5f, 0.25f, 0.75f, 0}}},
      {"kind = 'adam'\nbeta_1 = 0.5\nbeta_2 = 0.5\nepsilon = 1\napi = 'keras2'",
       {RuleKind::kAdam, {0.5f, 0.5f, 1, share, share}}},
      {"kind = 'adam'\nbeta_1 = 0.5\nbeta_2 = 0.75\nepsilon = 1\namsgrad = true",
       {RuleKind::kAmsgrad, {0.5f, 0.75f, 1}}},
      {"kind = 'lazy_adam'\nbeta_1 = 0.5\nbeta_2 = 0.75\nepsilon = 1",
       {RuleKind::kLazyAdam, {0.5f, 0.75f, 1}}},
      {"kind = 'adamax'\nbeta_1 = 0.5\nbeta_2 = 0.75\nepsilon = 1",
       {RuleKind::kAdamax, {0.5f, 0.75f, 1}}},
      {"kind = 'nadam'\nbeta_1 = 0.5\nbeta_2 = 0.75\nepsilon = 1\nschedule_decay = 0.5",
       {RuleKind::kNadam, {0.5f, 0.75f, 1, 0.5f, 0}}},
      {"kind = 'adadelta'\nrho = 0.5\nepsilon = 1", {RuleKind::kAdadelta, {0.5f, 1}}},
      {"kind = 'ftrl'\nlearning_rate_power = -0.25\ninitial_accumulator_value = 0.5\nl1 = 1\nl2 = "
       "2\nbeta = 3\nl2_shrinkage = 4",
       {RuleKind::kFtrl, {-0.25f, 0.5f, 1, 2, 3, 4}}},
      {"kind = 'lion'\nbeta_1 = 0.5\nbeta_2 = 0.75", {RuleKind::kLion, {0.5f, 0.75f}}},
      {"kind = 'lion'\nbeta_1 = 0.5\nbeta_2 = 0.75\napi = 'keras2'",
       {RuleKind::kLionTable, {0.5f, 0.75f}}}};
  std::set<std::string> seen;
  for (const auto& [lines, rule] : cases) {
    EXPECT_EQ(rule_of(lines), rule) << lines;
    seen.insert(job_with("[optimizer]\n" + lines).optimizer.kind);
  }
  for (const auto& [kind, numbers, flags, make] : nn::optimizer_kinds())
    EXPECT_TRUE(seen.contains(kind)) << kind << " is not tried";
}

TEST(JobOptimizer, AnUnknownOneIsRefusedWithTheNearestKnown) {
  EXPECT_THAT(refusal_of("[optimizer]\nkind = 'adagard'\n"),
              AllOf(HasSubstr("some.toml:4"), HasSubstr("optimizer.kind"),
                    HasSubstr("did you mean \"adagrad\"")));
  EXPECT_THAT(refusal_of("[wide_optimizer]\nkind = 'ftlr'\n"),
              AllOf(HasSubstr("wide_optimizer.kind"), HasSubstr("did you mean \"ftrl\"")));
}

TEST(JobOptimizer, AnArgumentThatTheKindDoesNotTakeIsRefused) {
  EXPECT_THAT(
      refusal_of("[optimizer]\nkind = 'adam'\nmomentum = 0.9\n"),
      AllOf(HasSubstr("some.toml:5"), HasSubstr("optimizer.momentum"), HasSubstr("beta_1")));
  EXPECT_THAT(refusal_of("[optimizer]\nkind = 'adam'\nbeta1 = 0.9\n"),
              AllOf(HasSubstr("unknown key"), HasSubstr("did you mean \"beta_1\"")));
  EXPECT_THAT(refusal_of("[optimizer]\nkind = 'rowwise_adagrad'\napi = 'keras2'\n"),
              HasSubstr("optimizer.api"));
  EXPECT_THAT(refusal_of("[optimizer]\napi = 'keras3'\n"), HasSubstr("keras2"));
}

TEST(JobOptimizer, NumbersThatAreNotPossibleAreRefusedWithTheirPlace) {
  EXPECT_THAT(refusal_of("[optimizer]\nkind = 'adam'\nbeta_1 = 1.0\n"),
              AllOf(HasSubstr("some.toml:3"), HasSubstr("beta_1"), HasSubstr("[0, 1)")));
  EXPECT_THAT(refusal_of("[optimizer]\nepsilon = nan\n"),
              AllOf(HasSubstr("some.toml"), HasSubstr("finite")));
  EXPECT_THAT(refusal_of("[optimizer]\nlearning_rate = -0.1\n"),
              AllOf(HasSubstr("some.toml:4"), HasSubstr("learning_rate"), HasSubstr("above 0")));
  EXPECT_THAT(refusal_of("[optimizer]\nlearning_rate = nan\n"), HasSubstr("above 0"));
  EXPECT_THAT(refusal_of("[optimizer]\nclipnorm = -1\n"), HasSubstr("optimizer.clipnorm"));
  EXPECT_THAT(refusal_of("[optimizer]\nkind = 'sgd'\nnesterov = true\n"),
              HasSubstr("momentum above 0"));
  EXPECT_THAT(refusal_of("[optimizer]\nclipnorm = 1\nglobal_clipnorm = 1\n"),
              HasSubstr("not both"));
}

TEST(JobOptimizer, TheWideOneTakesTheRateAndTheBoundsOfTheOtherAndItsArgumentsIfItIsOfTheSameKind) {
  const std::string first =
      "[optimizer]\nkind = 'rmsprop'\nlearning_rate = 0.5\nmomentum = 0.25\nclipvalue = 2\n";
  const Job same = job_with(first + "[wide_optimizer]\nrho = 0.5\n"),
            other = job_with(first + "[wide_optimizer]\nkind = 'sgd'\nclipvalue = 0\n");
  EXPECT_EQ(same.wide_optimizer.arguments,
            (std::map<std::string, double>{{"momentum", 0.25}, {"rho", 0.5}}));
  EXPECT_EQ(same.wide_optimizer.clipping.clipvalue, 2.0f);
  EXPECT_TRUE(other.wide_optimizer.arguments.empty());
  EXPECT_EQ(other.wide_optimizer.learning_rate, 0.5f);
  EXPECT_FALSE(other.wide_optimizer.clipping.clipvalue.has_value());
}

TEST(JobOptimizer, EveryScheduleHasItsNameAndBeginsWithTheLearningRate) {
  const std::vector<std::pair<std::string, float>> at_step_4 = {
      {"kind = 'exponential'\ndecay_steps = 4\ndecay_rate = 0.25", 0.125f},
      {"kind = 'piecewise'\nboundaries = [1, 3]\nvalues = [1, 0.5, 0.375]", 0.375f},
      {"kind = 'polynomial'\ndecay_steps = 8\nend_learning_rate = 0", 0.25f},
      {"kind = 'inverse_time'\ndecay_steps = 4\ndecay_rate = 1", 0.25f},
      {"kind = 'cosine'\ndecay_steps = 8", 0.25f},
      {"kind = 'cosine'\ndecay_steps = 8\nwarmup_steps = 4\nwarmup_target = 1", 1.0f},
      {"kind = 'cosine_restarts'\nfirst_decay_steps = 4", 0.5f}};
  for (const auto& [lines, want] : at_step_4) {
    const Job job = job_with("[optimizer]\nlearning_rate = 0.5\n[optimizer.schedule]\n" + lines);
    ASSERT_NE(job.optimizer.rate.schedule(), nullptr) << lines;
    EXPECT_NEAR((*job.optimizer.rate.schedule())(Array(4.0f)).eval().item<float>(), want, 1e-6f)
        << lines;
    EXPECT_EQ(job.wide_optimizer.rate.schedule(), job.optimizer.rate.schedule()) << "inherited";
  }
  EXPECT_THAT(refusal_of("[optimizer.schedule]\nkind = 'cosin'\n"),
              HasSubstr("did you mean \"cosine\""));
  EXPECT_THAT(refusal_of("[optimizer.schedule]\nkind = 'cosine'\n"),
              AllOf(HasSubstr("some.toml"), HasSubstr("decay_steps")));
  EXPECT_THAT(refusal_of("[optimizer.schedule]\nkind = 'cosine'\ndecay_step = 1\n"),
              HasSubstr("decay_step"));
}

}  // namespace
}  // namespace cairn::tools
