#include "bench/training.h"

#include <unistd.h>

#include <cstdio>
#include <optional>

#include "bench/benches.h"
#include "bench/cluster.h"
#include "core/graph/ops.h"
#include "strategy/base/one_device_strategy.h"

namespace cairn::bench {
namespace {

struct Training {
  std::function<double(int)> run;  // so many closures; the seconds taken
  std::function<double()> last_loss;
};

// Examples a second, in windows; the losses show that it learns.
Series report_training(const Options& options, Report& report, Series series, std::int64_t examples,
                       const Training& training) {
  training.run(1);
  const double first = training.last_loss();
  const int closures = calibrate(options.seconds, 10, training.run);
  auto window = [&] {
    return static_cast<double>(closures) * static_cast<double>(examples) / training.run(closures);
  };
  series = measure(std::move(series), options.windows, window);
  report.add(series);
  char losses[64];
  std::snprintf(losses, sizeof losses, "    loss %.3f -> %.3f", first, training.last_loss());
  report.say(losses);
  return series;
}

// `steps` training steps; returns the last loss.
Array train(const TrainedModel& model, const nn::Adagrad& optimizer, const Iterator& input,
            int steps) {
  Array loss;
  for (int i = 0; i < steps; ++i) {
    auto [features, label] = input.get_next();
    loss = model.loss(features, label);
    optimizer.minimize(loss);
  }
  return loss;
}

std::string steps_text(int steps) { return str(steps, steps == 1 ? " step" : " steps"); }

Series in_one_process(const Options& options, Report& report, const TrainedModel& model) {
  OneDeviceStrategy strategy(options.seed);
  const nn::Adagrad optimizer(model.optimizer);
  auto batches = strategy.iterate(model.batches());
  Function step =
      strategy.function([&](Iterator input) { return train(model, optimizer, input, 1); }, "train");
  float last = 0;
  auto run = [&](int steps) {
    const auto begin = Stopwatch::now();
    for (int i = 0; i < steps; ++i) last = strategy.run(step, {batches})[0].item<float>();
    return seconds_since(begin);
  };
  Series series{.bench = model.bench,
                .configuration = str(model.variant, "OneDeviceStrategy"),
                .unit = "examples/s",
                .processes = {{"process", ::getpid()}}};
  return report_training(options, report, std::move(series), model.batch,
                         {run, [&] { return static_cast<double>(last); }});
}

}  // namespace

struct ClusterTraining::State {
  State(const Options& options, TrainedModel trained, const ClusterChoice& choice, int steps_of_one)
      : model(std::move(trained)),
        steps(steps_of_one),
        cluster(options, choice),
        optimizer(model.optimizer) {
    batches = cluster.coordinator().create_per_worker_dataset(
        [&](const InputContext&) { return model.batches(); });
    step = cluster.strategy().function(
        [&](Iterator input) { return train(model, optimizer, input, steps); }, "train");
    series = {.bench = model.bench,
              .configuration = str(model.variant, cluster.described(), ", depth ", choice.depth,
                                   ", ", steps_text(steps)),
              .unit = "examples/s",
              .processes = cluster.processes()};
  }

  TrainedModel model;
  int steps;
  Cluster cluster;
  nn::Adagrad optimizer;
  PerWorkerDatasetHandle batches;
  Function step;
  RemoteValue last;
  Series series;
};

ClusterTraining::ClusterTraining(const Options& options, TrainedModel model,
                                 const ClusterChoice& choice, int steps)
    : state_(std::make_unique<State>(options, std::move(model), choice, steps)) {}
ClusterTraining::~ClusterTraining() = default;

double ClusterTraining::run(int closures) {
  auto& coordinator = state_->cluster.coordinator();
  const auto begin = Stopwatch::now();
  for (int i = 0; i < closures; ++i)
    state_->last = coordinator.schedule(state_->step, {state_->batches});
  coordinator.join();
  return seconds_since(begin);
}

double ClusterTraining::last_loss() const {
  return static_cast<double>(state_->last.get().item<float>());
}
const Series& ClusterTraining::series() const { return state_->series; }
std::int64_t ClusterTraining::examples() const { return state_->steps * state_->model.batch; }

Series train_on_cluster(const Options& options, Report& report, const TrainedModel& model,
                        const ClusterChoice& choice, int steps) {
  ClusterTraining training(options, model, choice, steps);
  return report_training(
      options, report, training.series(), training.examples(),
      {[&](int closures) { return training.run(closures); }, [&] { return training.last_loss(); }});
}

double products_of(std::initializer_list<std::int64_t> widths) {
  double weights = 0;
  for (const auto* width = widths.begin(); width + 1 < widths.end(); ++width)
    weights += static_cast<double>(width[0] * width[1]);
  return 6 * weights;
}

void bench_training(const Options& options, Limits& limits, Report& report,
                    const std::function<TrainedModel()>& make) {
  // examples a second, were there only products
  const double peak = limits.products().median() * 1e9 / make().products;
  std::optional<Series> alone;
  if (options.one_device) {
    alone = in_one_process(options, report, make());
    report.ratio(str(alone->bench, ": ", alone->configuration, ", of the products alone"), *alone,
                 peak);
  }
  for (const auto& transport : options.transports)
    for (std::uint32_t depth : options.depths)
      for (int steps : options.steps) {
        const Series apart = train_on_cluster(options, report, make(), {transport, depth}, steps);
        if (alone)
          report.ratio(str(apart.bench, ": ", apart.configuration, ", of one process"), apart,
                       *alone);
      }
}

}  // namespace cairn::bench
