// A dense variable of 100 MB, cut into as many parts as there are shards: all of it read, a
// gradient as large pushed, and both in a step. What the bulk path carries.
#include <unistd.h>

#include <functional>
#include <tuple>

#include "bench/benches.h"
#include "bench/cluster.h"
#include "core/graph/ops.h"
#include "strategy/base/one_device_strategy.h"

namespace cairn::bench {
namespace {

constexpr std::int64_t kRows = 100'000, kDim = 250;
constexpr double kBytes = kRows * kDim * sizeof(float);

// The steps on one variable; each answers with a single row.
struct DenseSteps {
  explicit DenseSteps(Strategy& strategy) {
    const Scope scope = strategy.scope();
    VariableSpec spec;
    spec.name = "dense";
    spec.shape = {kRows, kDim};
    variable = strategy.create_variable(spec);
    steps = {
        {"pull", 1, strategy.function([v = variable] { return slice(v.read(), 0, 0, 1); }, "pull")},
        {"push", 1,
         strategy.function([v = variable] { v.update({RuleKind::kSgd}, made(), 0.0f); }, "push")},
        {"pull and push", 2,
         strategy.function(
             [v = variable] {
               Array first = slice(v.read(), 0, 0, 1);
               v.update({RuleKind::kSgd}, made(), 0.0f);
               return first;
             },
             "both")}};
  }
  // As large as the variable, and made where the step runs, at the cost of filling it.
  static Array made() {
    const std::vector<float> row(kDim, 1.0f);
    return unsorted_segment_sum(Array(Tensor::of<float>({1, kDim}, row)),
                                Array(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{7})),
                                kRows);
  }

  struct Step {
    const char* what;
    int times;  // that the variable's bytes travel
    Function function;
  };
  Variable variable;
  std::vector<Step> steps;
};

// A limit of the machine that is measured in turns with the figure held against it, for memory's
// speed drifts; `work` measures one window.
struct Beside {
  std::string what;
  NamedProcesses processes;
  std::function<double()> work;
};

struct Carried {
  Series series, beside;
};

// `run(step, count)` takes seconds; GB/s of the variable's bytes.
template <typename Run>
std::vector<Carried> carried(const Options& options, Report& report,
                             const std::string& configuration, const NamedProcesses& processes,
                             DenseSteps& steps, Run run, const Beside* beside = nullptr) {
  std::vector<Carried> all;
  for (auto& step : steps.steps) {
    run(step, 4);  // the first ones take their memory
    const int count = calibrate(options.seconds, 1, [&](int n) { return run(step, n); });
    Series series{.bench = "dense",
                  .configuration = str(step.what, ", ", configuration),
                  .unit = "GB/s",
                  .processes = processes};
    auto work = [&] { return 1e-9 * kBytes * step.times * count / run(step, count); };
    Series limit;
    if (beside != nullptr) {
      limit = {.bench = "dense",
               .configuration = str(beside->what, ", beside ", series.configuration),
               .unit = "GB/s",
               .processes = beside->processes};
      std::tie(series, limit) = measure_in_turns(std::move(series), work, std::move(limit),
                                                 beside->work, options.windows);
    } else {
      series = measure(std::move(series), options.windows, work);
    }
    report.add(series);
    if (beside != nullptr) report.add(limit);
    all.push_back({std::move(series), std::move(limit)});
  }
  return all;
}

void in_one_process(const Options& options, Report& report) {
  OneDeviceStrategy strategy(options.seed);
  DenseSteps steps(strategy);
  carried(options, report, "OneDeviceStrategy", {{"process", ::getpid()}}, steps,
          [&](DenseSteps::Step& step, int count) {
            const auto begin = Stopwatch::now();
            for (int i = 0; i < count; ++i) strategy.run(step.function);
            return seconds_since(begin);
          });
}

constexpr const char kMemoryCopy[] = "memory copy", kThereAndBack[] = "4 MB there and back";

// The limit that bounds this transport: through shared memory nothing goes over the socket.
Beside limit_of(const Options& options, Limits& limits, const std::string& transport) {
  if (transport == "auto")
    return {kMemoryCopy, {{"coordinator", ::getpid()}}, [&] {
              return limits.memory_copy_now(options.seconds);
            }};
  const EchoSocket socket = socket_of(transport);
  return {kThereAndBack, limits.echo(socket).processes(),
          [&, socket] { return limits.ping_pong_now(socket, options.seconds); }};
}

std::vector<Carried> on_cluster(const Options& options, const Beside& beside, Report& report,
                                const std::string& transport) {
  const int parts = options.ps * std::max(1, options.shards);
  Cluster cluster(options, {.transport = transport, .partitioner = FixedShardsPartitioner(parts)});
  DenseSteps steps(cluster.strategy());
  const std::string configuration =
      parts > 1 ? str(cluster.described(), ", in ", parts, " parts") : cluster.described();
  return carried(
      options, report, configuration, cluster.processes(), steps,
      [&](DenseSteps::Step& step, int count) {
        const auto begin = Stopwatch::now();
        for (int i = 0; i < count; ++i) cluster.coordinator().schedule(step.function);
        cluster.coordinator().join();
        return seconds_since(begin);
      },
      &beside);
}

}  // namespace

void bench_dense(const Options& options, Limits& limits, Report& report) {
  const Series& copy = limits.memory_copy();
  if (options.one_device) in_one_process(options, report);
  for (const auto& transport : options.transports) {
    const Beside beside = limit_of(options, limits, transport);
    for (const auto& [series, limit] : on_cluster(options, beside, report, transport)) {
      report.ratio(str("dense: ", series.configuration, ", of ", beside.what), series, limit);
      if (beside.what != kMemoryCopy)
        report.ratio(str("dense: ", series.configuration, ", of ", kMemoryCopy), series, copy);
    }
  }
}

}  // namespace cairn::bench
