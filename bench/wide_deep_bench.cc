// Training throughput of Wide & Deep: on a cluster by transport, depth and steps of a closure, and in one process.
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "bench/benches.h"
#include "bench/cluster.h"
#include "bench/wide_deep_model.h"

namespace cairn::bench {
namespace {

struct Training {
  std::function<double(int)> run;            // so many closures; the seconds taken
  std::function<double()> last_loss;
};

// Examples a second, in windows; the losses show that it learns.
void report_training(const Options& options, Report& report, Series series, int steps, const Training& training) {
  training.run(1);
  const double first = training.last_loss();
  const int closures = calibrate(options.seconds, std::max(1, 100 / steps), training.run);
  auto window = [&] { return static_cast<double>(closures) * steps * static_cast<double>(kWideDeepBatch) / training.run(closures); };
  report.add(measure(std::move(series), options.windows, window));
  char losses[64];
  std::snprintf(losses, sizeof losses, "    loss %.3f -> %.3f", first, training.last_loss());
  report.say(losses);
}

void on_cluster(const Options& options, Report& report, const std::string& data, const ClusterChoice& choice, int steps) {
  Cluster cluster(options, choice);
  WideDeepModel model;
  nn::Adagrad optimizer({.learning_rate = 0.02f});
  auto& coordinator = cluster.coordinator();
  auto batches = coordinator.create_per_worker_dataset([&](const InputContext&) { return wide_deep_batches(data, options.prefetch); });
  Function step = cluster.strategy().function([&](Iterator input) { return train(model, optimizer, input, steps); }, "train");
  RemoteValue last;
  auto run = [&](int closures) {
    const auto begin = Stopwatch::now();
    for (int i = 0; i < closures; ++i) last = coordinator.schedule(step, {batches});
    coordinator.join();
    return seconds_since(begin);
  };
  Series series{.bench = "wide-deep",
                .configuration = str(cluster.described(), ", depth ", choice.depth, ", ", steps, steps == 1 ? " step" : " steps"),
                .unit = "examples/s",
                .processes = cluster.processes()};
  report_training(options, report, std::move(series), steps, {run, [&] { return static_cast<double>(last.get().item<float>()); }});
}

void in_one_process(const Options& options, Report& report, const std::string& data) {
  OneDeviceStrategy strategy(options.seed);
  WideDeepModel model;
  nn::Adagrad optimizer({.learning_rate = 0.02f});
  auto batches = strategy.iterate(wide_deep_batches(data, options.prefetch));
  Function step = strategy.function([&](Iterator input) { return train(model, optimizer, input, 1); }, "train");
  float last = 0;
  auto run = [&](int steps) {
    const auto begin = Stopwatch::now();
    for (int i = 0; i < steps; ++i) last = strategy.run(step, {batches})[0].item<float>();
    return seconds_since(begin);
  };
  Series series{.bench = "wide-deep", .configuration = "OneDeviceStrategy", .unit = "examples/s", .processes = {{"process", ::getpid()}}};
  report_training(options, report, std::move(series), 1, {run, [&] { return static_cast<double>(last); }});
}

}  // namespace

void bench_wide_deep(const Options& options, Report& report) {
  TemporaryFolder folder;
  std::string data = options.data;
  if (data.empty()) {
    data = folder.path() + "/wide_deep.bin";
    write_wide_deep_records(data, options.seed);
  }
  if (options.one_device) in_one_process(options, report, data);
  for (const auto& transport : options.transports)
    for (std::uint32_t depth : options.depths)
      for (int steps : options.steps) on_cluster(options, report, data, {transport, depth}, steps);
}

}  // namespace cairn::bench
