// An optimizer that several replicas apply: one step by the gradients of all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/graph/ops.h"
#include "nn/nn.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/core/some_rules.h"
#include "tests/strategy/in_sync_kinds.h"

namespace cairn {
namespace {

template <typename Kind>
struct InSyncOptimizer : ::testing::Test {};
TYPED_TEST_SUITE(InSyncOptimizer, testing::InSyncKinds);

// A table and a kernel, with gradients of both kinds.
struct Model {
  nn::Embedding table{{.name = "table", .rows = 6, .dim = 4, .combiner = Combiner::kSum}};
  nn::Dense dense{{.units = 1}};
  // The examples' part of a mean over `global_batch` examples.
  Array loss(const Batch& batch, std::int64_t global_batch) const {
    const Array prediction = dense(table(batch.features["id"]));
    return sum(nn::mean_squared_error(prediction, batch.label)) /
           Array(static_cast<float>(global_batch));
  }
};

// Batches of 4, of which the last has 2 examples; ids repeat within and across replicas.
Dataset examples() {
  const std::vector<std::int64_t> ids{0, 1, 1, 2, 3, 3, 0, 1, 5, 5};
  std::vector<float> labels;
  for (std::int64_t id : ids) labels.push_back(0.5f * static_cast<float>(id) - 1);
  return Dataset::from_tensor_slices({{"id", Tensor::of<std::int64_t>({10}, ids)},
                                      {"label", Tensor::of<float>({10}, labels)}},
                                     "label")
      .repeat(3)
      .batch(4);
}

template <typename Optimizer>
std::vector<float> trained(Strategy& strategy, const Optimizer& optimizer) {
  auto scope = strategy.scope();
  Model model;
  auto batches = strategy.iterate(strategy.experimental_distribute_dataset(examples()));
  Function step = strategy.function([&](Iterator input) {
    const Array loss = model.loss(input.get_next(), 4);
    optimizer.minimize(loss);
    return loss;
  });
  std::vector<float> losses;
  for (int i = 0; i < 8; ++i)
    losses.push_back(
        strategy.reduce(ReduceOp::kSum, strategy.run(step, {batches})[0]).template item<float>());
  EXPECT_EQ(optimizer.iterations().read().eval().template item<std::int64_t>(), 8);
  return losses;
}

template <typename Kind, typename Options, typename Optimizer>
void trains_as_one_device(const Options& options) {
  OneDeviceStrategy one(5);
  // The layers' names begin anew with each model; an optimizer is one for each strategy.
  const auto wanted = trained(one, Optimizer(options));
  for (int replicas : {1, 2, 3}) {
    auto strategy = Kind::make(replicas, {.seed = 5, .check_replicas = true});
    const auto losses = trained(*strategy, Optimizer(options));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(losses[i], wanted[i], 1e-5f * std::abs(wanted[i]) + 1e-6f)
          << replicas << " replicas, step " << i;
  }
}

TYPED_TEST(InSyncOptimizer, OptimizersApplyTheSumOfAllReplicasGradients) {
  trains_as_one_device<TypeParam, nn::SgdOptions, nn::Sgd>({.learning_rate = 0.1f});
  trains_as_one_device<TypeParam, nn::SgdOptions, nn::Sgd>(
      {.learning_rate = 0.1f, .momentum = 0.9f});
  trains_as_one_device<TypeParam, nn::AdamOptions, nn::Adam>({.learning_rate = 0.1f});
  trains_as_one_device<TypeParam, nn::AdagradOptions, nn::Adagrad>({.learning_rate = 0.1f});
  for (const UpdateRule& rule : testing::own_rules())
    trains_as_one_device<TypeParam, nn::CustomOptimizerOptions, nn::CustomOptimizer>(
        {.rule = rule, .learning_rate = 0.1f});
}

TYPED_TEST(InSyncOptimizer, GradientsAreClippedByTheNormOfAllReplicas) {
  trains_as_one_device<TypeParam, nn::SgdOptions, nn::Sgd>(
      {.learning_rate = 0.1f, .clipping = {.global_clipnorm = 0.2f}});
  trains_as_one_device<TypeParam, nn::SgdOptions, nn::Sgd>(
      {.learning_rate = 0.1f, .clipping = {.clipnorm = 0.1f}});
}

template <typename Kind>
struct OptimizerOfThree : testing::ThreeInSync<Kind> {};
TYPED_TEST_SUITE(OptimizerOfThree, testing::InSyncKinds);

TYPED_TEST(OptimizerOfThree, IsRefusedInCrossReplicaContext) {
  Strategy& strategy = this->strategy;
  Variable v = this->scalar(1);
  nn::Sgd optimizer;
  Function train = strategy.function([&] { optimizer.minimize(square(v.read()), {v}); });
  EXPECT_THROW(strategy.call(train), FailedPreconditionError);
}

}  // namespace
}  // namespace cairn
