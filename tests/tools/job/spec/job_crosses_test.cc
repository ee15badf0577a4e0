// Crosses of [features]: the parts of a model that read them, and what a job may not cross.
#include "tools/job/spec/job_crosses.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "core/graph/ops.h"
#include "nn/nn.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/tools/job_fixture.h"
#include "tools/job/parts/job_model.h"
#include "tools/job/run/resume.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// y is 1 where a and b differ: neither says anything by itself.
constexpr const char* kRows = "0,x,x\n1,x,y\n1,y,x\n0,y,y\n";

class JobCrosses : public JobFixture {
 protected:
  JobCrosses() { folder_.write("a.csv", kRows); }
  static std::string text(const std::string& crosses, const std::string& model) {
    return "[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = ['y:float32', 'a', 'b']\nlabel = 'y'\n"
           "[features]\nvocabulary = 'a'\nhashed = {b = 10}\n" +
           crosses + "\n[model]\n" + model;
  }
  std::string error_of(const std::string& text) const {
    return raised_by([&] {
      const Job read = job(text);
      JobNetwork(read, fit_features(read));
    });
  }
  // The shapes of the variables that a step over the job's data trains, by name; and the mean loss
  // of the last of `steps` steps.
  std::map<std::string, Shape> trained(const Job& job, int steps = 1) {
    const FittedFeatures features = fit_features(job);
    OneDeviceStrategy strategy(7);
    std::shared_ptr<JobNetwork> network;
    {
      const Scope scope = strategy.scope();
      network = std::make_shared<JobNetwork>(job, features);
    }
    std::map<std::string, Shape> variables;
    auto batches = strategy.iterate(train_source(job, features).repeat().batch(4));
    Function step = strategy.function(
        [&](Iterator input) {
          const Array loss = mean(network->losses(input.get_next()));
          for (const VariableGradient& gradient : variable_gradients(loss))
            variables[gradient.variable.name()] = gradient.variable.shape();
          network->minimize(loss);
          return loss;
        },
        "train");
    for (int i = 0; i < steps; ++i) loss_ = strategy.run(step, {batches})[0].item<float>();
    return variables;
  }
  static std::set<std::string> names_of(const std::map<std::string, Shape>& variables) {
    std::set<std::string> names;
    for (const auto& [name, shape] : variables) names.insert(name);
    return names;
  }

  float loss_ = 0;
};

const std::string kWideCross = "crosses = [{columns = ['a', 'b'], buckets = 20}]";
const std::string kDeepCross = "crosses = [{columns = ['a', 'b'], buckets = 20, deep = true}]";

// Three ids of a, ten of b: the cross hashes thirty combinations.
TEST_F(JobCrosses, ACrossIsOfTheWidePartAloneUnlessTheJobWantsItEmbedded) {
  const std::string kind = "kind = 'wide_deep'\nembedding_dim = 5\n";
  auto variables = trained(job(text(kWideCross, kind)));
  EXPECT_EQ(variables.at("wide"), (Shape{3 + 10 + 20, 1}));
  EXPECT_THAT(names_of(variables), Not(Contains("deep/a_x_b")));
  variables = trained(job(text(kDeepCross, kind)));
  EXPECT_EQ(variables.at("wide"), (Shape{3 + 10 + 20, 1}));
  EXPECT_EQ(variables.at("deep/a_x_b"), (Shape{20, 5}));
  EXPECT_EQ(variables.at("deep/a"), (Shape{3, 5}));
}

TEST_F(JobCrosses, EveryModelOfEmbeddingsHasOneOfTheCross) {
  EXPECT_EQ(trained(job(text(kDeepCross, "kind = 'deep'"))).at("deep/a_x_b"), (Shape{20, 8}));
  for (const char* kind : {"dlrm", "dcn_v2", "deepfm"})
    EXPECT_THAT(names_of(trained(job(text(kDeepCross, str("kind = '", kind, "'"))))),
                Contains("table/a_x_b"))
        << kind;
}

// As many buckets as combinations: each has a vector of its own.
TEST_F(JobCrosses, ADeepPartLearnsByTheCrossWhatItsColumnsDoNotTell) {
  const std::string linear =
      "kind = 'deep'\nhidden = []\n[optimizer]\nkind = 'adagrad'\nlearning_rate = 0.5\n";
  trained(job(text("", linear)), 200);
  EXPECT_GT(loss_, 0.65f);
  trained(job(text("crosses = [{columns = ['a', 'b'], deep = true}]", linear)), 200);
  EXPECT_LT(loss_, 0.1f);
}

TEST_F(JobCrosses, ATowerHasTheCrossesOfItsFeatures) {
  const auto of_towers = [&](const std::string& query, const std::string& candidate) {
    return "[data]\ntrain = 'a.csv'\ncandidate = 'b'\n[data.csv]\ncolumns = ['y:int64', 'a', "
           "'b']\n[features]\nvocabulary = ['a', 'b']\nids = {y = 2}\ncrosses = [{columns = "
           "['a', 'y'], deep = true}]\n[model]\nobjective = 'retrieval'\nhidden = [4]\nquery = " +
           query + "\ncandidate = " + candidate + "\n";
  };
  EXPECT_THAT(names_of(trained(job(of_towers("['a', 'y', 'a_x_y']", "['b']")))),
              AllOf(Contains("query/a_x_y"), Not(Contains("candidate/a_x_y"))));
  EXPECT_THAT(error_of(of_towers("['a', 'y']", "['b']")), HasSubstr("\"a_x_y\" is a feature, and"));
  EXPECT_THAT(error_of(of_towers("['a', 'a_x_y']", "['b', 'y']")),
              HasSubstr("some.toml:9: features.crosses: model.query has \"a_x_y\" and not \"y\""));
}

// They were ignored there, without a word.
TEST_F(JobCrosses, ACrossThatNoPartOfTheModelReadsIsRefusedWithTheCure) {
  for (const char* kind : {"deep", "dlrm", "dcn_v2", "deepfm"})
    EXPECT_THAT(error_of(text(kWideCross, str("kind = '", kind, "'"))),
                AllOf(HasSubstr("some.toml:9: features.crosses: \"a_x_b\" is of the wide part"),
                      HasSubstr(str("\"", kind, "\" has none")), HasSubstr("deep = true")))
        << kind;
  EXPECT_THAT(error_of(text(kDeepCross, "kind = 'wide'")),
              AllOf(HasSubstr("some.toml:9: features.crosses.deep"),
                    HasSubstr("model.kind = \"wide_deep\"")));
  EXPECT_EQ(error_of(text(kWideCross, "kind = 'wide'")), "it was taken");
}

TEST_F(JobCrosses, WhatIsNoIdOfOneValueIsRefusedByLineBeforeTheDataIsRead) {
  const auto crossed = [&](const std::string& columns) {
    return error_of(
        "[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = ['y:float32', 'a', 'b:float32',"
        " 'tags:string[]']\nlabel = 'y'\n[features]\nvocabulary = ['a', 'tags']\n"
        "numeric = 'b'\nbucketised = {b = [1, 2]}\ncrosses = [\n{columns = " +
        columns + "}]\n");
  };
  EXPECT_THAT(crossed("['a', 'b']"),
              AllOf(HasSubstr("some.toml:11: features.crosses names \"b\", which is no id feature"),
                    HasSubstr("\"b_bucket\"")));
  EXPECT_THAT(crossed("['a', 'b_buckets']"), HasSubstr("did you mean \"b_bucket\"?"));
  EXPECT_THAT(crossed("['a', 'tags']"),
              HasSubstr("some.toml:11: features.crosses names \"tags\", whose examples may have "
                        "several ids"));
}

TEST_F(JobCrosses, ACrossOfTooManyCombinationsIsToldWithItsLine) {
  const std::string large =
      "[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = ['y:float32', 'a', 'b']\nlabel = 'y'\n"
      "[features]\nhashed = {a = 100000, b = 100000}\ncrosses = [{columns = ['a', 'b']";
  for (const char* deep : {"", ", deep = true"})
    EXPECT_THAT(error_of(large + deep + "}]\n"),
                HasSubstr("some.toml:8: features.crosses: a cross has more than 2^31 combinations; "
                          "hash its columns first"));
}

TEST_F(JobCrosses, TwoEmbeddedFeaturesOfOneNameAreRefused) {
  const std::string twice =
      "crosses = [{columns = ['a', 'b'], deep = true},\n{columns = ['a', 'b'], buckets = 5, "
      "deep = true}]";
  EXPECT_THAT(error_of(text(twice, "kind = 'deep'")),
              HasSubstr("some.toml:10: features.crosses: a second feature is called \"a_x_b\""));
}

TEST_F(JobCrosses, RecordsCrossTheirIds) {
  struct Record {
    float y;
    std::int32_t a, b, c[2];
  };
  const Record records[] = {{0, 0, 0, {1, 1}}, {1, 0, 1, {1, 1}}, {1, 1, 0, {1, 1}}};
  folder_.write("a.bin", {reinterpret_cast<const char*>(records), sizeof records});
  const auto of_records = [](const std::string& columns) {
    return "[data]\ntrain = 'a.bin'\nformat = 'records'\n[data.records]\nfields = ['y:float32', "
           "'a:int32', 'b:int32', 'c:int32[2]']\nlabel = 'y'\n[features]\nids = {a = 2, b = 2, "
           "c = [3, 4]}\ncrosses = [{columns = " +
           columns + ", deep = true}]\n[model]\nkind = 'dlrm'\nbottom = []\n";
  };
  EXPECT_EQ(trained(job(of_records("['a', 'b']"))).at("table/a_x_b"), (Shape{4, 8}));
  EXPECT_EQ(trained(job(of_records("['a', 'c_2']"))).at("table/a_x_c_2"), (Shape{8, 8}));
  EXPECT_THAT(error_of(of_records("['a', 'c']")),
              HasSubstr("some.toml:9: features.crosses names \"c\", which is no id feature"));
}

TEST_F(JobCrosses, AResumedJobHasToEmbedTheSameCrosses) {
  const Job before = job(text(kWideCross, "kind = 'wide_deep'"));
  const Job after = job(text(kDeepCross, "kind = 'wide_deep'"));
  const FittedFeatures features = fit_features(before);
  const SavedJob saved(metadata_of(before, features, 1, 0), "a-checkpoint", {});
  saved.verify_features(before, features);
  try {
    saved.verify_features(after, features);
    ADD_FAILURE() << "it was taken";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("crossed into 20, embedded"));
  }
}

}  // namespace
}  // namespace cairn::tools
