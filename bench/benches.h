// The benchmarks by name.
#pragma once
#include "bench/limits.h"
#include "bench/measure.h"
#include "bench/options.h"

namespace cairn::bench {

void bench_limits(const Options& options, Limits& limits, Report& report);
void bench_echo(const Options& options, Limits& limits, Report& report);
void bench_closures(const Options& options, Limits& limits, Report& report);
void bench_latency(const Options& options, Limits& limits, Report& report);
void bench_scheduling(const Options& options, Limits& limits, Report& report);
void bench_wide_deep(const Options& options, Limits& limits, Report& report);
void bench_dlrm(const Options& options, Limits& limits, Report& report);
void bench_hybrid(const Options& options, Limits& limits, Report& report);
void bench_collective(const Options& options, Limits& limits, Report& report);
void bench_dense(const Options& options, Limits& limits, Report& report);
void bench_growth(const Options& options, Limits& limits, Report& report);
void bench_memory(const Options& options, Limits& limits, Report& report);
void bench_storage(const Options& options, Limits& limits, Report& report);
void bench_cold_rows(const Options& options, Limits& limits, Report& report);
void bench_turnover(const Options& options, Limits& limits, Report& report);
void bench_ps_step(const Options& options, Limits& limits, Report& report);

// How many pieces of work fill a window: `run(count)` is called with growing counts, which also
// warms everything up.
template <typename Run>
int calibrate(double seconds, int first, Run run) {
  double rate = 0;
  for (int count = first; rate == 0; count *= 2)
    if (double took = run(count); took >= seconds / 4) rate = count / took;
  return static_cast<int>(rate * seconds) + 1;
}

}  // namespace cairn::bench
