// Training in step, two figures of it:
//
//   cairn-bench-in-step replicas              a convolutional network on one device, and on two
//                                             replicas of one process, in turns: images/s
//   cairn-bench-in-step overlap [--batch N]   on each of two workers of TF_CONFIG: how much of the
//                                             reduction of an MLP's gradients its backward pass
//                                             hides. bench/overlap starts it, on a slow link
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>

#include "bench/measure.h"
#include "core/base/program.h"
#include "core/graph/ops.h"
#include "core/graph/ops_model.h"
#include "nn/nn.h"
#include "strategy/base/one_device_strategy.h"
#include "strategy/base/replica_context.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "strategy/in_sync/multi_worker_mirrored_strategy.h"

namespace cairn::bench {
namespace {

constexpr std::int64_t kSide = 28, kImages = 256, kUnits = 4096;

Tensor filled(Shape shape) {
  Tensor values(DType::kFloat32, std::move(shape));
  float next = 0;
  for (float& value : values.mutable_values<float>()) {
    value = next;
    next = next > 0.9f ? -0.9f : next + 0.137f;
  }
  return values;
}

// Batches that are there at once: what is measured is computing.
Dataset endless(const Shape& example, std::int64_t batch) {
  const Tensor label = Tensor::zeros(DType::kFloat32, {batch, 1});
  return Dataset::from_tensor_slices({{"x", filled(example.with_front(batch))}, {"y", label}}, "y")
      .batch(batch)
      .repeat();
}

// Two layers of 3 x 3 filters with pooling, and a dense one: some 0.6 million multiplications an
// image in each direction.
struct ConvolutionalNetwork {
  Array operator()(const Array& images) const {
    const Array first = max_pool2d(relu(conv2d(images, wide.read())));
    const Array second = max_pool2d(relu(conv2d(first, deep.read())));
    return dense(reshape(second, {Shape::kUnknown, 5 * 5 * 32}));
  }
  static Variable filters(const char* name, std::int64_t in, std::int64_t out) {
    return current_variable_creator().create_variable(
        {.name = name,
         .shape = {3, 3, in, out},
         .initializer = Initializer::glorot_uniform(9 * in, 9 * out)});
  }
  Variable wide = filters("wide", 1, 16), deep = filters("deep", 16, 32);
  nn::Dense dense{{.units = 1}};
};

// Steps of a model of which `make_model` makes the variables, on global batches of `batch`.
class Training {
 public:
  using Model = std::function<Array(const Array&)>;
  Training(Strategy& strategy, const std::function<Model()>& make_model, const Shape& example,
           std::int64_t batch)
      : strategy_(strategy) {
    const Scope scope = strategy_.scope();
    const Model model = make_model();
    nn::Sgd optimizer({.learning_rate = 1e-9f});
    data_ = strategy_.iterate(strategy_.experimental_distribute_dataset(endless(example, batch)));
    step_ = strategy_.function([model, optimizer, batch](Iterator input) {
      auto [features, label] = input.get_next();
      Array loss =
          sum(nn::sigmoid_cross_entropy(model(features["x"]), label)) / static_cast<float>(batch);
      optimizer.minimize(loss);
      return loss;
    });
    run(2);
  }
  // The seconds of so many.
  double run(int steps) {
    const Scope scope = strategy_.scope();
    const auto begin = Stopwatch::now();
    for (int i = 0; i < steps; ++i) strategy_.run(step_, {data_});
    return seconds_since(begin);
  }

 private:
  Strategy& strategy_;
  std::shared_ptr<const IteratorSource> data_;
  Function step_;
};

Training::Model convolutional_network() {
  const auto network = std::make_shared<const ConvolutionalNetwork>();
  return [network](const Array& images) { return (*network)(images); };
}

// Three layers of 4,096 units: 201 MB of gradients.
Training::Model wide_mlp() { return nn::Mlp({.units = {kUnits, kUnits, kUnits, 1}}); }

int compare_replicas(int windows, int steps) {
  OneDeviceStrategy one(1);
  MirroredStrategy two({"cpu:0", "cpu:1"}, InSyncOptions{.seed = 1});
  const Shape image{kSide, kSide, 1};
  Training alone(one, convolutional_network, image, kImages);
  Training shared(two, convolutional_network, image, kImages);
  const auto rate = [steps](Training& of) { return steps * kImages / of.run(steps); };
  const NamedProcesses own{{"process", ::getpid()}};
  const auto [slow, fast] = measure_in_turns(
      {.bench = "in-step", .configuration = "one device", .unit = "images/s", .processes = own},
      [&] { return rate(alone); },
      {.bench = "in-step",
       .configuration = "two replicas, a thread each",
       .unit = "images/s",
       .processes = own},
      [&] { return rate(shared); }, windows);
  Report report("", "");
  report.add(slow);
  report.add(fast);
  report.ratio("in-step: two replicas, of one device", fast, slow);
  return 0;
}

// The hidden part of a reduction is the time during which a worker computes, and does not wait in
// the call. The step's own length also has the time that the workers' network threads take from
// computing. All is measured on both workers at once.
int measure_overlap(std::int64_t batch, int steps) {
  MultiWorkerMirroredStrategy group;
  OneDeviceStrategy one(1);
  const Shape example{kUnits};
  Training alone(one, wide_mlp, example, batch / group.num_workers());
  Training together(group, wide_mlp, example, batch);
  const std::int64_t weights = 3 * kUnits * kUnits;
  Function reduce = group.function([weights](const Array& value) {
    return get_replica_context().all_reduce(ReduceOp::kSum, value);
  });
  const Array gradients(filled({weights}));
  const auto meet = [&] { group.reduce(ReduceOp::kSum, PerReplica(Array(1.0f))); };
  const auto timed = [&](const std::function<void()>& work) {
    meet();
    const auto begin = Stopwatch::now();
    work();
    return seconds_since(begin) / steps;
  };
  const double computing = timed([&] { alone.run(steps); });
  const double reducing = timed([&] {
    const Scope scope = group.scope();
    for (int i = 0; i < steps; ++i) group.run(reduce, {gradients});
  });
  const double stood = group.collective_counts().front().held_seconds;
  const double step = timed([&] { together.run(steps); });
  const double waiting =
      (group.collective_counts().front().held_seconds - stood) / static_cast<double>(steps);
  std::printf(
      "%d examples of each worker, %.0f MB of gradients: computing alone %.2f s, reducing alone "
      "%.2f s; a step %.2f s, of which %.2f s waiting for the reduction: %.0f %% of it is hidden\n",
      static_cast<int>(batch) / group.num_workers(), static_cast<double>(weights) * 4e-6, computing,
      reducing, step, waiting, 100 * (1 - waiting / reducing));
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-in-step", [&] {
    CLI::App app("Training in step", "cairn-bench-in-step");
    std::string what;
    std::int64_t batch = 2048;
    int steps = 5, windows = 7;
    app.add_option("what", what)->required()->check(CLI::IsMember({"replicas", "overlap"}));
    app.add_option("--batch", batch, "overlap: examples of both workers")->capture_default_str();
    app.add_option("--steps", steps, "Of a measurement")->capture_default_str();
    app.add_option("--windows", windows, "replicas: measurements")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    using namespace cairn::bench;
    return what == "replicas" ? compare_replicas(windows, steps) : measure_overlap(batch, steps);
  });
}
