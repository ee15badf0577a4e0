// The memory of the processes: a ps against its rows with their slots, worker and coordinator
// besides their data.
#include "bench/benches.h"
#include "bench/cluster.h"
#include "bench/wide_deep_model.h"
#include "core/base/machine.h"
#include "core/base/random.h"
#include "core/graph/ops.h"

namespace cairn::bench {
namespace {

constexpr std::int64_t kHashedRows = 8'000'000, kHashedDim = 16;
// with Adagrad's slots
constexpr double kMegabyte = 1 << 20,
                 kTableMegabytes = kHashedRows * kHashedDim * 2 * sizeof(float) / kMegabyte;

void say(Report& report, const std::string& when, const NamedProcesses& processes) {
  for (const auto& [name, pid] : processes)
    report.figure(str("memory: ", when, ", ", name),
                  static_cast<double>(private_memory_bytes(pid)) / kMegabyte, "MB");
}

// The rows are made before the first closure that uses them.
void of_a_table(const Options& options, Report& report) {
  Cluster cluster(options, {.transport = options.transports.front()});
  Function nothing = cluster.strategy().function([] {}, "nothing");
  cluster.coordinator().schedule(nothing);
  cluster.coordinator().join();
  say(report, "idle", cluster.processes());
  const Scope scope = cluster.strategy().scope();
  nn::Embedding table({.name = "table", .rows = kHashedRows, .dim = kHashedDim});
  nn::Adagrad adagrad({.learning_rate = 0.01f});
  Function step = cluster.strategy().function(
      [&] {
        adagrad.minimize(mean(square(table(
            Array(Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{1, kHashedRows - 1}))))));
      },
      "touch");
  cluster.coordinator().schedule(step);
  cluster.coordinator().join();
  const NamedProcesses processes = cluster.processes();
  say(report, str("table of ", static_cast<int>(kTableMegabytes), " MB"), processes);
  for (const auto& [name, pid] : processes)
    if (name.starts_with("ps"))
      report.figure(str("memory: ", name, ", of its rows and slots"),
                    static_cast<double>(private_memory_bytes(pid)) / kMegabyte / kTableMegabytes);
}

// The same table, hashed: rows are created as they are updated. Ids are hashes, so that no two
// steps share one.
void of_a_hashed_table(const Options& options, Report& report) {
  constexpr std::int64_t kIdsAStep = 50'000, kManyRows = std::int64_t{1} << 40;
  Cluster cluster(options, {.transport = options.transports.front()});
  const Scope scope = cluster.strategy().scope();
  nn::Embedding table({.name = "table", .rows = kManyRows, .dim = kHashedDim, .hashed = true});
  nn::Adagrad adagrad({.learning_rate = 0.01f});
  Function step = cluster.strategy().function(
      [&](const Array& ids) { adagrad.minimize(mean(square(table(ids)))); }, "touch");
  std::vector<std::int64_t> ids(kIdsAStep);
  std::uint64_t next = options.seed;
  for (std::int64_t rows = 0; rows < kHashedRows; rows += kIdsAStep) {
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(mix_bits(next++) % kManyRows);
    cluster.coordinator().schedule(step, {Tensor::of<std::int64_t>({kIdsAStep}, ids)});
    // arguments are a coordinator's data
    if (rows % (20 * kIdsAStep) == 0) cluster.coordinator().join();
  }
  cluster.coordinator().join();
  const NamedProcesses processes = cluster.processes();
  say(report, str("hashed table of ", static_cast<int>(kTableMegabytes), " MB"), processes);
  for (const auto& [name, pid] : processes)
    if (name.starts_with("ps"))
      report.figure(str("memory: hashed, ", name, ", of its rows and slots"),
                    static_cast<double>(private_memory_bytes(pid)) / kMegabyte / kTableMegabytes);
}

void after_training(const Options& options, Report& report) {
  TemporaryFolder folder;
  const std::string data = folder.path() + "/wide_deep.bin";
  write_wide_deep_records(data, options.seed);
  TrainedModel model = trained_wide_deep(data, options.prefetch);
  model.bench = "memory";
  model.variant = "wide-deep, ";
  const Series series = train_on_cluster(options, report, model,
                                         {options.transports.front(), options.depths.front()}, 1);
  for (std::size_t i = 0; i < series.memory.size(); ++i)
    report.figure(str("memory: after training, ", series.processes[i].first), series.memory[i],
                  "MB");
}

}  // namespace

void bench_memory(const Options& options, Limits&, Report& report) {
  of_a_table(options, report);
  of_a_hashed_table(options, report);
  after_training(options, report);
}

}  // namespace cairn::bench
