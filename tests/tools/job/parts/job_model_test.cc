#include "tools/job/parts/job_model.h"

#include <gmock/gmock.h>

#include "core/graph/ops.h"
#include "data/format/criteo_like.h"
#include "nn/nn.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/tools/temp_folder.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kExamples = 2048, kBatch = 256, kTableRows = 20;

// A job over generated records, whose model stands in `model`.
class JobOverClicks {
 public:
  JobOverClicks() {
    write_criteo_records(
        CriteoLike({.seed = 1, .exponent = 0.5, .table_rows = criteo_table_rows(kTableRows)}), 0,
        kExamples, folder_.path() + "/train.bin");
  }

  Job job(const std::string& model) const {
    std::string sizes;
    for (std::int64_t rows : criteo_table_rows(kTableRows)) sizes += std::to_string(rows) + ", ";
    return parse_job("[data]\nformat = 'records'\ntrain = '" + folder_.path() +
                         "/train.bin'\n[data.records]\n" +
                         "fields = ['label:float32', 'dense:float32[13]', 'ids:int32[26]']\nlabel "
                         "= 'label'\n[features.ids]\nids = [" +
                         sizes + "]\n" +
                         "[optimizer]\nkind = 'adagrad'\nlearning_rate = "
                         "0.1\n[model]\nembedding_dim = 4\nhidden = [16]\n" +
                         model,
                     "some.toml");
  }

 private:
  TempFolder folder_;
};

float mean_loss(OneDeviceStrategy& strategy, Function& step,
                const std::shared_ptr<const IteratorSource>& batches) {
  float sum = 0;
  for (std::int64_t i = 0; i < kExamples / kBatch; ++i)
    sum += strategy.run(step, {batches})[0].item<float>();
  return sum * kBatch / kExamples;
}

class ClickModels : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Kinds, ClickModels,
                         testing::Values("kind = 'dlrm'\nbottom = [8]",
                                         "kind = 'dcn_v2'\ncross_layers = 2", "kind = 'deepfm'",
                                         "kind = 'dlrm'\nhashed_from = 8\nbottom = [8]"),
                         [](const auto& info) {
                           return info.param.substr(8, info.param.find('\'', 8) - 8) +
                                  (info.param.find("hashed") == std::string::npos ? "" : "_hashed");
                         });

TEST_P(ClickModels, LearnFromAJobFile) {
  const JobOverClicks clicks;
  const Job job = clicks.job(GetParam());
  const FittedFeatures features = fit_features(job);
  EXPECT_EQ(features.examples, kExamples);
  EXPECT_EQ(features.ids.size(), 26u);

  OneDeviceStrategy strategy(7);
  std::shared_ptr<JobNetwork> network;
  {
    const Scope scope = strategy.scope();
    network = std::make_shared<JobNetwork>(job, features);
  }
  auto batches = strategy.iterate(train_source(job, features).repeat().batch(kBatch));
  Function step = strategy.function(
      [&](Iterator input) {
        const auto batch = input.get_next();
        Array loss = mean(nn::sigmoid_cross_entropy(network->logits(batch.features), batch.label));
        network->minimize(loss);
        return loss;
      },
      "train");
  const float before = mean_loss(strategy, step, batches);
  for (int epoch = 0; epoch < 5; ++epoch) mean_loss(strategy, step, batches);
  EXPECT_LT(mean_loss(strategy, step, batches), before - 0.05f);
}

class DivergingModels : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Kinds, DivergingModels,
                         testing::Values("dlrm", "wide_deep", "wide", "deep"));

// Learns so fast that its numbers overflow.
TEST_P(DivergingModels, EndWithStepLossAndCureInsteadOfTrainingOn) {
  TempFolder folder;
  std::string rows;
  for (int i = 0; i < 64; ++i)
    rows += std::to_string(i % 7 - 3) + "," + std::to_string(i % 5) + "," + std::to_string(i % 2) +
            "\n";
  folder.write("train.csv", rows);
  const Job job = parse_job(
      "[data]\ntrain = '" + folder.path() +
          "/train.csv'\n[data.csv]\ncolumns = ['x:float32', 'c', 'y:float32']\n" +
          "label = {column = 'y'}\n[features]\nnumeric = 'x'\nvocabulary = 'c'\n" +
          "[optimizer]\nkind = 'sgd'\nlearning_rate = 3e38\n[model]\nkind = '" + GetParam() + "'",
      "some.toml");
  const FittedFeatures features = fit_features(job);
  OneDeviceStrategy strategy(7);
  std::shared_ptr<JobNetwork> network;
  {
    const Scope scope = strategy.scope();
    network = std::make_shared<JobNetwork>(job, features);
  }
  auto batches = strategy.iterate(train_source(job, features).repeat().batch(32));
  Function step = strategy.function(
      [&](Iterator input) {
        const auto batch = input.get_next();
        Array loss = mean(nn::sigmoid_cross_entropy(network->logits(batch.features), batch.label));
        network->minimize(loss);
        return loss;
      },
      "train");
  try {
    for (int i = 0; i < 50; ++i) strategy.run(step, {batches});
    FAIL() << "it trained on";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("loss is "), HasSubstr("not finite"),
                                             HasSubstr("learning rate")));
  }
}

TEST(ClickModels, AnArgumentOfAnotherKindIsRefused) {
  try {
    JobOverClicks().job("kind = 'dlrm'\ncross_layers = 2");
    ADD_FAILURE() << "it was taken";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cross_layers"));
  }
}

TEST(JobTables, GiveAFeaturesTableItsPolicyAndAllOthersTheCommonOne) {
  const JobOverClicks clicks;
  const Job job = clicks.job(
      "kind = 'deepfm'\n[table.'ids_3']\nadmit_after = 2\nrows_max = 50\n"
      "[table.'*']\nsteps_to_live = 9\n");
  const FittedFeatures features = fit_features(job);
  OneDeviceStrategy strategy(7);
  const Scope scope = strategy.scope();
  const JobNetwork network(job, features);
  const JobTable third = job.table_of("ids_3", 20), other = job.table_of("ids_4", 20);
  EXPECT_EQ(third.policy, (RowPolicy{.admit_after = 2, .rows_max = 50}));
  EXPECT_EQ(other.policy, (RowPolicy{.steps_to_live = 9}));
  EXPECT_TRUE(*third.hashed && *other.hashed);
}

TEST(JobTables, ThatNothingEmbedsOrThatAreImpossibleAreRefusedWithTheirPlace) {
  const JobOverClicks clicks;
  const Job misspelt = clicks.job("kind = 'dlrm'\n[table.'ids_33']\nadmit_after = 2\n");
  const FittedFeatures features = fit_features(misspelt);
  OneDeviceStrategy strategy(7);
  const Scope scope = strategy.scope();
  EXPECT_THAT([&] { JobNetwork(misspelt, features); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("some.toml:"), HasSubstr("table.ids_33"), HasSubstr("ids_3"))));
  const auto refused = [&](const std::string& keys, const std::string& why) {
    EXPECT_THAT([&] { clicks.job("kind = 'dlrm'\n[table.'ids_3']\n" + keys); },
                ThrowsMessage<InvalidArgumentError>(
                    AllOf(HasSubstr("some.toml:"), HasSubstr("table.ids_3"), HasSubstr(why))));
  };
  refused("admit_after = 40", "1 to 16");
  refused("hashed = false\nrows_max = 3", "hashed tables alone");
  refused("admit_afer = 2", "admit_after");
}

}  // namespace
}  // namespace cairn::tools
