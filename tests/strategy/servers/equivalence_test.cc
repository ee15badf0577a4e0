// The same model trains to the same numbers wherever its variables live, and a checkpoint is the
// same on any number of ps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "strategy/base/one_device_strategy.h"
#include "testing/simulated_cluster.h"
#include "tests/strategy/adult_model.h"

namespace cairn {
namespace {

using testing::adult;
using Model = testing::AdultModel;

constexpr int kSteps = 200;

std::vector<float> losses_on_one_device() {
  OneDeviceStrategy strategy(11);
  auto scope = strategy.scope();
  Model model;
  auto iterator = strategy.iterate(adult().batches);
  Function step = strategy.function([&](Iterator input) { return model.train(input); });
  std::vector<float> losses;
  for (int i = 0; i < kSteps; ++i)
    losses.push_back(strategy.run(step, {iterator}).front().item<float>());
  return losses;
}

SimulatedClusterOptions strict_order(int ps) {
  SimulatedClusterOptions options{.ps = ps, .workers = 1};
  options.strategy.seed = 11;
  options.strategy.partitioner = FixedShardsPartitioner(ps);  // every variable lies on every ps
  options.strategy.engine.pipeline_depth = 1;
  return options;
}

struct OnPs : ::testing::TestWithParam<int> {};

TEST_P(OnPs, LossesAreThoseOfOneDevice) {
  static const std::vector<float> wanted = losses_on_one_device();
  SimulatedCluster cluster(strict_order(GetParam()));
  ClusterCoordinator coordinator(cluster.strategy());
  Model model;
  auto data =
      coordinator.create_per_worker_dataset([](const InputContext&) { return adult().batches; });
  Function step = cluster.strategy().function([&](Iterator input) { return model.train(input); });
  std::vector<RemoteValue> losses;
  for (int i = 0; i < kSteps; ++i) losses.push_back(coordinator.schedule(step, {data}));

  for (int i = 0; i < kSteps; ++i) {
    float loss = losses[static_cast<std::size_t>(i)].get(kPatience).item<float>(),
          reference = wanted[static_cast<std::size_t>(i)];
    ASSERT_LE(std::abs(loss - reference), 1e-6f * std::abs(reference)) << "step " << i;
  }
  EXPECT_LT(wanted.back(), wanted.front());  // it does learn
}

INSTANTIATE_TEST_SUITE_P(Count, OnPs, ::testing::Values(1, 2, 3, 5));

std::vector<float> predictions(SimulatedCluster& cluster, ClusterCoordinator& coordinator,
                               const Model& model) {
  auto test = coordinator.create_shared_dataset(adult().test, "test");
  Function predict = cluster.strategy().function(
      [&](Iterator input) { return model.logits(input.get_next().features); });
  Tensor logits = coordinator.schedule(predict, {test}).get(kPatience);
  auto values = logits.values<float>();
  return {values.begin(), values.end()};
}

std::vector<float> losses_after(SimulatedCluster& cluster, ClusterCoordinator& coordinator,
                                const Model& model, int steps) {
  auto data = coordinator.create_per_worker_dataset(
      [](const InputContext&) { return adult().batches; }, "train");
  Function step = cluster.strategy().function([&](Iterator input) { return model.train(input); });
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(coordinator.schedule(step, {data}).get(kPatience).item<float>());
  return losses;
}

void copy_files(MemoryDisk& from, MemoryDisk& to, const std::string& folder) {
  to.make_folder(folder);
  for (const auto& name : from.list(folder)) {
    std::string path = folder + "/" + name;
    if (from.list(path).empty())
      to.write_atomically(path, from.read(path));
    else
      copy_files(from, to, path);
  }
}

TEST(Restore, OntoAnyNumberOfPsGivesTheSamePredictionsAndTheSameTraining) {
  MemoryDisk archive;
  std::string checkpoint;
  std::vector<float> wanted, wanted_losses;
  {
    SimulatedCluster cluster(strict_order(2));
    ClusterCoordinator saving(cluster.strategy());
    Model model;
    losses_after(cluster, saving, model, 20);
    checkpoint = saving.save({.folder = "/checkpoints"});
    copy_files(cluster.disk(), archive, checkpoint);
    wanted = predictions(cluster, saving, model);
  }

  for (int ps : {1, 2, 3, 5}) {
    SimulatedClusterOptions options = strict_order(ps);
    // rows that no database holds must come from the checkpoint's own seed
    options.strategy.seed = 12;
    SimulatedCluster cluster(options);
    copy_files(archive, cluster.disk(), checkpoint);
    ClusterCoordinator restoring(cluster.strategy());
    restoring.restore(checkpoint);
    Model same;
    EXPECT_EQ(predictions(cluster, restoring, same), wanted) << ps << " ps";
    // Slots, update counts and data positions came back as well: training goes on alike everywhere.
    std::vector<float> losses = losses_after(cluster, restoring, same, 5);
    if (wanted_losses.empty()) wanted_losses = losses;
    EXPECT_EQ(losses, wanted_losses) << ps << " ps";
  }
}

}  // namespace
}  // namespace cairn
