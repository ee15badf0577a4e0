// The cost of sending a closure: many at once, and one at a time beside the machine's own echo.
#include <chrono>

#include "bench/benches.h"
#include "bench/cluster.h"
#include "core/graph/ops.h"

namespace cairn::bench {
namespace {

double schedule_and_join(ClusterCoordinator& coordinator, Function& function, int count) {
  const auto begin = Stopwatch::now();
  for (int i = 0; i < count; ++i) coordinator.schedule(function);
  coordinator.join();
  return seconds_since(begin);
}

std::vector<double> fetch_one_by_one(ClusterCoordinator& coordinator, Function& function,
                                     double seconds) {
  std::vector<double> samples;
  const auto end = Stopwatch::now() + std::chrono::duration<double>(seconds);
  for (auto before = Stopwatch::now(); before < end;) {
    coordinator.schedule(function).get();
    const auto after = Stopwatch::now();
    samples.push_back(std::chrono::duration<double, std::micro>(after - before).count());
    before = after;
  }
  return samples;
}

}  // namespace

void bench_echo(const Options& options, Limits& limits, Report& report) {
  RawEcho& echo = limits.echo(EchoSocket::kUnix);
  for (auto [placement, where] :
       {std::pair{Placement::kAnywhere, ""}, std::pair{Placement::kTwoCores, ", two cores"}}) {
    Series series{.bench = "echo",
                  .configuration = str("Unix socket, 64 B", where, ", p50"),
                  .unit = "us",
                  .processes = echo.processes()};
    auto window = [&, placement = placement] {
      auto samples = echo.run(options.seconds, RawEcho::kBytesMin, placement);
      return percentile(samples, 0.5);
    };
    report.add(measure(series, options.windows, window));
  }
}

void bench_closures(const Options& options, Limits& limits, Report& report) {
  for (const auto& transport : options.transports) {
    Cluster cluster(options, {.transport = transport});
    Function nothing = cluster.strategy().function([] {}, "nothing");
    auto run = [&](int count) { return schedule_and_join(cluster.coordinator(), nothing, count); };
    const int count = calibrate(options.seconds, 1000, run);
    Series series{.bench = "closures",
                  .configuration = cluster.described(),
                  .unit = "closures/s",
                  .processes = cluster.processes()};
    series = measure(series, options.windows, [&] { return count / run(count); });
    report.add(series);
    report.ratio(str("closures: ", series.configuration, ", a round trip of 64 B"), series,
                 limits.round_trips(socket_of(transport)));
  }
}

void bench_latency(const Options& options, Limits& limits, Report& report) {
  RawEcho& echo = limits.echo(EchoSocket::kUnix);
  for (const auto& transport : options.transports) {
    Cluster cluster(options, {.transport = transport});
    Function constant =
        cluster.strategy().function([] { return cast(Array(1.0f), DType::kFloat32); }, "constant");
    fetch_one_by_one(cluster.coordinator(), constant, options.seconds / 2);
    Series raw{.bench = "latency",
               .configuration = "bare Unix-socket echo, p50",
               .unit = "us",
               .processes = echo.processes()};
    Series apart{.bench = "latency",
                 .configuration = "the same on two cores, p50",
                 .unit = "us",
                 .processes = echo.processes()};
    Series middle{.bench = "latency",
                  .configuration = str(cluster.described(), ", p50"),
                  .unit = "us",
                  .processes = cluster.processes()};
    Series tail{
        .bench = "latency", .configuration = str(cluster.described(), ", p99"), .unit = "us"};
    // Window by window side by side, so that whatever else the machine does meets both.
    for (int i = 0; i < options.windows; ++i) {
      auto bare = [&](Placement placement) {
        return [&, placement] {
          auto samples = echo.run(options.seconds / 4, RawEcho::kBytesMin, placement);
          return percentile(samples, 0.5);
        };
      };
      raw = measure(raw, 1, bare(Placement::kAnywhere));
      apart = measure(apart, 1, bare(Placement::kTwoCores));
      double p99 = 0;
      auto fetched = [&] {
        auto samples = fetch_one_by_one(cluster.coordinator(), constant, options.seconds);
        p99 = percentile(samples, 0.99);
        return percentile(samples, 0.5);
      };
      middle = measure(middle, 1, fetched);
      tail.windows.push_back(middle.windows.back());
      tail.windows.back().value = p99;
    }
    report.add(raw);
    report.add(apart);
    report.add(middle);
    report.add(tail);
    report.ratio(str("latency: ", transport, ", p50 to the echo's"), middle, raw);
    report.ratio(str("latency: ", transport, ", p50 to the echo's on two cores"), middle, apart);
  }
}

}  // namespace cairn::bench
