// One model under every strategy: the object at the top changes, and nothing else does.
//
//   build/dev/bin/strategies --strategy=one_device
//   build/dev/bin/strategies --strategy=mirrored
//   build/dev/bin/strategies --strategy=mesh
//   build/dev/bin/strategies --strategy=central_storage
//   build/dev/bin/strategies --strategy=multi_worker_mirrored      on every worker of TF_CONFIG
//   build/dev/bin/cairn up --ps 2 --workers 1 --
//       build/dev/bin/strategies --strategy=parameter_server       in one line; or hybrid
//
// With --checkpoints=FOLDER it saves on its way, and workers that are started again go on from
// there.
#include <cstdio>
#include <memory>
#include <string>

#include <cairn/cairn.h>
#include <cairn/core/base/random.h>

#include "examples/flags.h"

using namespace cairn;

namespace {

constexpr std::int64_t kExamples = 1024, kNumbers = 8, kGlobalBatch = 64;
constexpr std::uint64_t kSeed = 1;

std::unique_ptr<Strategy> strategy_of(const std::string& name) {
  if (name == "mesh")
    return std::make_unique<MeshStrategy>(
        DeviceAssignment::build({.num_replicas = 2, .num_logical_devices = 2}),
        InSyncOptions{.seed = kSeed});
  return make_strategy(name, {.seed = kSeed});
}

// Points inside and outside of a sphere, which no plane separates.
Dataset points() {
  Tensor x(DType::kFloat32, {kExamples, kNumbers}), y(DType::kFloat32, {kExamples, 1});
  Random random(kSeed);
  const auto numbers = x.mutable_values<float>(), labels = y.mutable_values<float>();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    float squares = 0;
    for (std::size_t k = 0; k < kNumbers; ++k) {
      float& number = numbers[i * kNumbers + k];
      number = static_cast<float>(random.below(2000)) / 1000 - 1;
      squares += number * number;
    }
    labels[i] = squares < 2.6f ? 1.0f : 0.0f;
  }
  return Dataset::from_tensor_slices({{"x", x}, {"y", y}}, "y");
}

void train(Strategy& strategy, std::int64_t steps, const std::string& folder) {
  auto scope = strategy.scope();
  nn::Mlp model({.units = {16, 16, 1}});
  nn::Adam optimizer({.learning_rate = 0.01f});
  Function step = strategy.function([&](Iterator input) {
    auto [features, label] = input.get_next();
    Array losses = nn::sigmoid_cross_entropy(model(features["x"]), label);
    Array total = sum(losses);
    Array loss = total / static_cast<float>(kGlobalBatch);
    optimizer.minimize(loss);
    return loss;
  });

  auto* workers = dynamic_cast<MultiWorkerMirroredStrategy*>(&strategy);
  std::int64_t done = 0;
  if (workers != nullptr && !folder.empty() && workers->restore_newest(folder))
    done = workers->global_step();
  auto batches = strategy.iterate(strategy.experimental_distribute_dataset(
      points().shuffle(kExamples, kSeed).repeat().batch(kGlobalBatch)));
  float loss = 0;
  while (done < steps) {
    loss = strategy.reduce(ReduceOp::kSum, strategy.run(step, {batches})[0]).item<float>();
    ++done;
    if (done % 100 != 0 && done != steps) continue;
    // Before the checkpoint: a run that is started again goes on after it and prints no step twice
    // that was saved, so a line that came after could be lost for good.
    std::printf("step %lld: loss %.9g\n", static_cast<long long>(done), loss);
    std::fflush(stdout);
    if (!folder.empty()) strategy.save({.folder = folder});
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Flags flags(argc, argv,
                    {{"strategy", "one_device"}, {"steps", "200"}, {"checkpoints", ""}});
  const auto strategy = strategy_of(flags["strategy"]);
  train(*strategy, flags.number("steps"), flags["checkpoints"]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "strategies: %s\n", error.what());
  return 1;
}
