// The coordinator's cost per closure with few workers connected and with many. Engine, lanes and
// messages are real, the network and the clock simulated, all in this thread: a figure is the time
// of the user's call, the engine and the lane together.
#include <unistd.h>

#include "bench/benches.h"
#include "testing/simulated_cluster.h"

namespace cairn::bench {
namespace {

constexpr int kFew = 10, kMany = 1000;

class SimulatedWorkers {
 public:
  explicit SimulatedWorkers(int workers)
      : cluster_({.ps = 1, .workers = workers}), coordinator_(cluster_.strategy()) {
    run(workers);  // every lane knows the function
  }
  // Microseconds a closure.
  double run(int count) {
    const auto begin = Stopwatch::now();
    for (int i = 0; i < count; ++i) coordinator_.schedule(nothing_);
    coordinator_.join();
    return seconds_since(begin) / count * 1e6;
  }

 private:
  SimulatedCluster cluster_;
  ClusterCoordinator coordinator_;
  Function nothing_ = cluster_.strategy().function([] {}, "nothing");
};

// One loop a thread: a cluster ends before the next begins.
Series measure_with(int workers, const Options& options, double seconds) {
  SimulatedWorkers cluster(workers);
  const int count = calibrate(seconds, 50 * kMany, [&](int n) { return cluster.run(n) * n / 1e6; });
  Series series{.bench = "scheduling",
                .configuration = str(workers, " simulated workers"),
                .unit = "us/closure",
                .processes = {{"all", ::getpid()}}};
  return measure(series, options.windows, [&] { return cluster.run(count); });
}

}  // namespace

void bench_scheduling(const Options& options, Limits&, Report& report) {
  const Series few = measure_with(kFew, options, options.seconds),
               many = measure_with(kMany, options, options.seconds);
  report.add(few);
  report.add(many);
  report.ratio(str("scheduling: with ", kMany, " workers, to ", kFew), many, few);
}

}  // namespace cairn::bench
