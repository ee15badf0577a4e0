// multi_worker_training.json: what each of several workers read and lost, and the weights after the
// last step, as the reference's processes had them.
#include <gmock/gmock.h>

#include "core/graph/ops.h"
#include "nn/nn.h"
#include "strategy/base/average_loss.h"
#include "tests/strategy/in_sync/workers_in_step.h"
#include "tests/strategy/recorded_optimizer.h"
#include "tests/strategy/recorded_strategies.h"

namespace cairn {
namespace {

using testing::expect_near;
using testing::expect_value;
using testing::fail_unknown;
using testing::tensor_of;

constexpr double kEightSteps = 1e-5;

AutoShardPolicy policy_named(const std::string& name) {
  if (name == "OFF") return AutoShardPolicy::kOff;
  if (name == "DATA") return AutoShardPolicy::kData;
  return AutoShardPolicy::kAuto;
}

DistributedIterator data_of(Strategy& strategy, const Json& in) {
  const Dataset examples =
      Dataset::from_tensor_slices(
          {{"x", tensor_of(in.at("features"))}, {"y", tensor_of(in.at("labels"))}}, "y")
          .repeat();
  return strategy.iterate(strategy.experimental_distribute_dataset(
      examples.batch(in.at("global_batch")), {.auto_shard_policy = policy_named(in.at("policy")),
                                              .batch_splitter = BatchSplitter::kByPolicy}));
}

void expect_floats(const Json& recorded, const Tensor& got) {
  const auto all = got.values<float>();
  EXPECT_EQ(got.shape(), testing::shape_of(recorded.at("shape")));
  expect_near(recorded, {all.begin(), all.end()}, kEightSteps, 1e-6);
}

void train(MultiWorkerMirroredStrategy& strategy, const Json& in, const Json& out) {
  auto scope = strategy.scope();
  const Json& own = out.at("workers").at(static_cast<std::size_t>(strategy.id_in_cluster()));
  EXPECT_EQ(strategy.is_chief(), own.at("is_chief").get<bool>());
  EXPECT_EQ(strategy.num_replicas_in_sync(), out.at("num_replicas_in_sync").get<int>());
  nn::Dense dense({.units = 1,
                   .kernel_initializer = Initializer::from(tensor_of(in.at("kernel"))),
                   .bias_initializer = Initializer::from(tensor_of(in.at("bias")))});
  const auto optimizer = testing::recorded_optimizer(in.at("optimizer"));
  AverageLossOptions options;
  if (in.at("policy") != "OFF")
    options.global_batch_size = in.at("global_batch").get<std::int64_t>();
  Function step = strategy.function([&](Iterator input) {
    const Batch batch = input.get_next();
    const Array x = batch.features["x"];
    Array loss = compute_average_loss(nn::mean_squared_error(dense(x), batch.label), options);
    if (const Json l2 = in.at("l2"); !l2.is_null())
      loss =
          loss + scale_regularization_loss(nn::l2_regularization(dense.kernel(), l2.get<float>()));
    optimizer->minimize(loss);
    return std::vector<Array>{loss, x};
  });
  const auto data = data_of(strategy, in);
  std::vector<float> losses, summed;
  for (const Json& features : own.at("features_seen")) {
    const RunResult result = strategy.run(step, {data});
    expect_value(features, result[1].tensor());
    losses.push_back(result[0].item<float>());
    summed.push_back(strategy.reduce(ReduceOp::kSum, result[0]).item<float>());
  }
  expect_near(own.at("replica_loss"), losses, kEightSteps, 1e-6);
  expect_near(out.at("summed_loss"), summed, kEightSteps, 1e-6);
  expect_floats(out.at("weights").at(0), dense.kernel().read().eval());
  expect_floats(out.at("weights").at(1), dense.bias().read().eval());
}

void trains(const Json& test) {
  const Json& in = test.at("in");
  const std::string policy = in.at("policy");
  if (policy != "OFF" && policy != "DATA" && policy != "AUTO")
    return fail_unknown(test, "the policy " + policy);
  if (in.at("replicas_per_worker") != 1) return fail_unknown(test, "several replicas of a worker");
  EXPECT_TRUE(test.at("out").at("same_loss_everywhere").get<bool>());
  testing::SocketCluster cluster(in.at("workers"));
  EXPECT_THAT(cluster.run([&](MultiWorkerMirroredStrategy& strategy) {
    train(strategy, in, test.at("out"));
  }),
              ::testing::Each(""));
}

TEST(Vectors, MultiWorkerTraining) {
  testing::run_cases("multi_worker_training", {{"custom_loop", trains}});
}

}  // namespace
}  // namespace cairn
