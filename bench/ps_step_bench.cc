// What a step costs on a ps: over each transport, and in this thread with no messages at all. The difference is the price of
// distribution.
#include <unistd.h>

#include <algorithm>

#include "bench/benches.h"
#include "bench/ps_step.h"

namespace cairn::bench {

void bench_ps_step(const Options& options, Limits& limits, Report& report) {
  Series alone{.bench = "ps-step", .configuration = "one thread, no messages", .unit = "steps/s", .processes = {{"process", ::getpid()}}};
  {
    PsStepInProcess shard;
    const int count = calibrate(options.seconds, 20, [&](int steps) { return shard.run(steps); });
    alone = measure(alone, options.windows, [&] { return count / shard.run(count); });
  }
  report.add(alone);
  // Steps a second at the machine's own random access, through the same loops.
  const double rows = kStepTables * kStepRows * 1e-6;
  const double peak = 1 / (rows / limits.rows_gathered().median() + rows / limits.rows_updated().median());
  report.ratio("ps-step: one thread, of the machine's random rows", alone, peak);
  for (const auto& transport : options.transports)
    for (const std::uint32_t depth : options.depths) {
      PsStepOverTheWire wire(transport, std::max(1, options.shards));
      auto run = [&](int steps) { return wire.run(steps, static_cast<int>(depth)); };
      const int count = calibrate(options.seconds, 20, run);
      Series series{.bench = "ps-step", .configuration = str(transport, ", ", std::max(1, options.shards), " shards, depth ", depth), .unit = "steps/s",
                    .processes = wire.processes()};
      series = measure(series, options.windows, [&] { return count / run(count); });
      report.add(series);
      report.ratio(str("ps-step: ", series.configuration, ", of one thread"), series, alone);
    }
}

}  // namespace cairn::bench
