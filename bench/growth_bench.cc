// How a figure changes as something grows: workers and ps, the rows of the tables, the examples of
// a batch.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "bench/benches.h"
#include "bench/cluster.h"
#include "bench/ps_step.h"
#include "bench/wide_deep_model.h"
#include "core/base/random.h"
#include "core/graph/ops.h"
#include "core/graph/ops/ops_wait.h"
#include "nn/nn.h"

namespace cairn::bench {
namespace {

// ---- workers ----

constexpr std::int64_t kTables = 8, kTableRows = 100'000, kBatch = 2048, kBatches = 16;

Dataset random_ids(std::uint64_t seed) {
  Random random(seed);
  std::vector<std::int64_t> ids(kBatches * kBatch * kTables);
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random.below(kTableRows));
  return Dataset::from_tensor_slices(
             {{"ids", Tensor::of<std::int64_t>({kBatches * kBatch, kTables}, ids)}})
      .repeat()
      .batch(kBatch)
      .prefetch(2);
}

// Rows of eight tables are read, `wait` seconds go by where their arithmetic would be, their
// gradients are pushed.
class WaitingSteps {
 public:
  WaitingSteps(Cluster& cluster, const Options& options, double wait)
      : coordinator_(cluster.coordinator()) {
    for (std::int64_t i = 0; i < kTables; ++i)
      tables_.emplace_back(
          nn::EmbeddingOptions{.name = str("table", i), .rows = kTableRows, .dim = 16});
    ids_ = coordinator_.create_per_worker_dataset([&](const InputContext& context) {
      return random_ids(options.seed + context.input_pipeline_id);
    });
    step_ = cluster.strategy().function(
        [this, wait](Iterator input) {
          const Array ids = input.get_next().features["ids"];
          std::vector<Array> rows;
          for (std::size_t i = 0; i < tables_.size(); ++i)
            rows.push_back(tables_[i](squeeze(slice(ids, 1, static_cast<std::int64_t>(i), 1), 1)));
          const Array all = concat(rows, 1);
          adagrad_.minimize(mean(square(wait > 0 ? wait_for(all, wait) : all)));
        },
        "waiting");
  }
  double run(int steps) {  // seconds
    const auto begin = Stopwatch::now();
    for (int i = 0; i < steps; ++i) coordinator_.schedule(step_, {ids_});
    coordinator_.join();
    return seconds_since(begin);
  }

 private:
  ClusterCoordinator& coordinator_;
  std::vector<nn::Embedding> tables_;
  nn::Adagrad adagrad_{{.learning_rate = 0.01f}};
  PerWorkerDatasetHandle ids_;
  Function step_;
};

Series waiting_steps(const Options& options, Report& report, int servers, double wait,
                     const char* name = "wait") {
  Options wanted = options;
  wanted.ps = wanted.workers = servers;
  wanted.shards = wanted.lanes = 1;
  Cluster cluster(wanted, {options.transports.front(), options.depths.front()});
  WaitingSteps steps(cluster, options, wait);
  auto run = [&](int count) { return steps.run(count); };
  run(4 * servers);
  const int count = calibrate(options.seconds, 4 * servers, run);
  Series series{.bench = "growth",
                .configuration = str(cluster.described(), ", ", name, " of ",
                                     static_cast<int>(wait * 1e6), " us"),
                .unit = "steps/s",
                .processes = cluster.processes()};
  series = measure(std::move(series), options.windows, [&] { return count / run(count); });
  report.add(series);
  return series;
}

// Core seconds of all processes for a step.
double core_time(const Series& series) {
  std::vector<double> each;
  for (const Window& window : series.windows)
    each.push_back(std::accumulate(window.our_cores.begin(), window.our_cores.end(), 0.0) /
                   window.value);
  return percentile(each, 0.5);
}

// The cores of one machine carry all of them, so the arithmetic is a wait, ten times what a step
// takes of a core besides. The longer the wait, the colder its caches and the more it takes, so the
// wait is sought that is ten times what a step takes beside it: twice what it takes where it
// follows the last one at once. Eight workers that wait for ten times that, and so need nearly all
// of two cores, are a row of their own.
void of_workers(const Options& options, Report& report) {
  auto ten_times = [](const Series& series) { return std::min(1.0, 10 * core_time(series)); };
  const double short_wait = ten_times(waiting_steps(options, report, 1, 0));
  const Series short_one = waiting_steps(options, report, 1, short_wait, "short wait");
  double wait = short_wait;
  Series one = short_one;
  for (int round = 0; round < 5 && std::abs(ten_times(one) - wait) > 0.05 * wait; ++round) {
    wait = ten_times(one);
    one = waiting_steps(options, report, 1, wait);
  }
  for (int servers : {2, 4, 8}) {
    const Series series = waiting_steps(options, report, servers, wait);
    report.ratio(str("growth: ", servers, " workers, of linear"), series, servers * one.median());
  }
  report.ratio("growth: 8 workers with a short wait, of linear",
               waiting_steps(options, report, 8, short_wait, "short wait"), 8 * short_one.median());
}

// ---- rows ----

// A row's time in a step, over the machine's own: both measured in turns, for memory's speed drifts
// within minutes.
template <typename Run>
double row_time(const Options& options, Report& report, std::int64_t rows, const std::string& where,
                const NamedProcesses& processes, Run run) {
  const auto access = random_access(static_cast<std::size_t>(rows) * kStepRowBytes);
  const int count = calibrate(options.seconds, 20, run);
  const std::string size = str(rows / 1'000'000, " M rows, ");
  Series steps{.bench = "growth",
               .configuration = str(size, where),
               .unit = "M rows/s",
               .processes = processes};
  Series machine{.bench = "growth",
                 .configuration = str(size, "the machine's own, beside ", where),
                 .unit = "M rows/s",
                 .processes = {{"process", ::getpid()}}};
  std::tie(steps, machine) = measure_in_turns(
      std::move(steps), [&] { return 1e-6 * kStepTables * kStepRows * count / run(count); },
      std::move(machine), [&] { return access(options.seconds); }, options.windows);
  report.add(steps);
  report.add(machine);
  report.figure(str("growth: ", size, "time a row, ", where, ", of the machine's"),
                machine.median() / steps.median());
  return machine.median() / steps.median();
}

void of_rows(const Options& options, Report& report) {
  std::optional<std::pair<double, double>> first;
  const std::string over = options.transports.front();
  for (std::int64_t rows : {8'000'000, 16'000'000, 32'000'000, 64'000'000}) {
    const std::int64_t table_rows = rows / static_cast<std::int64_t>(kStepTables);
    std::pair<double, double> times;
    {
      PsStepInProcess shard(table_rows);
      times.first = row_time(options, report, rows, "one thread", {{"process", ::getpid()}},
                             [&](int steps) { return shard.run(steps); });
    }
    {
      PsStepOverTheWire wire(over, 1, table_rows);
      times.second = row_time(options, report, rows, over, wire.processes(),
                              [&](int steps) { return wire.run(steps, 2); });
    }
    if (!first) first = times;
    report.figure(str("growth: ", rows / 1'000'000, " M rows, a row in one thread, of 8 M"),
                  times.first / first->first);
    report.figure(str("growth: ", rows / 1'000'000, " M rows, a row over ", over, ", of 8 M"),
                  times.second / first->second);
  }
}

// ---- batch ----

// Each batch beside half of it in turns: the machine's speed drifts by more than a doubling may
// cost.
void of_batch(const Options& options, Report& report) {
  TemporaryFolder folder;
  const std::string data = folder.path() + "/wide_deep.bin";
  write_wide_deep_records(data, options.seed);
  auto training = [&](std::int64_t batch) {
    TrainedModel model = trained_wide_deep(data, options.prefetch, batch);
    model.bench = "growth";
    model.variant = str("wide-deep, batch ", batch, ", ");
    return std::make_unique<ClusterTraining>(
        options, std::move(model),
        ClusterChoice{options.transports.front(), options.depths.front()}, 1);
  };
  auto rate_of = [&](ClusterTraining& each) {
    const int closures = calibrate(options.seconds, 10, [&](int count) { return each.run(count); });
    return [&each, closures] {
      return static_cast<double>(closures) * static_cast<double>(each.examples()) /
             each.run(closures);
    };
  };
  auto half = training(64);
  for (std::int64_t batch = 128; batch <= 16'384; batch *= 2) {
    auto whole = training(batch);
    const auto [of_half, of_whole] = measure_in_turns(
        half->series(), rate_of(*half), whole->series(), rate_of(*whole), options.windows);
    report.add(of_half);
    report.add(of_whole);
    report.ratio(str("growth: batch ", batch, ", of the half"), of_whole, of_half);
    half = std::move(whole);
  }
}

}  // namespace

void bench_growth(const Options& options, Limits&, Report& report) {
  for (const std::string& what : options.growth) {
    if (what == "workers") of_workers(options, report);
    if (what == "rows") of_rows(options, report);
    if (what == "batch") of_batch(options, report);
  }
}

}  // namespace cairn::bench
