// The cost of a step on a ps: over each transport, and in this thread with no messages at all. The
// difference is the price of distribution.
#include <unistd.h>

#include <algorithm>

#include "bench/benches.h"
#include "bench/ps_step.h"

namespace cairn::bench {

void bench_ps_step(const Options& options, Limits& limits, Report& report) {
  const Series alone{.bench = "ps-step",
                     .configuration = "one thread, no messages",
                     .unit = "steps/s",
                     .processes = {{"process", ::getpid()}}};
  PsStepInProcess shard;
  const int alone_count =
      calibrate(options.seconds, 20, [&](int steps) { return shard.run(steps); });
  auto run_alone = [&] { return alone_count / shard.run(alone_count); };
  const Series first = measure(alone, options.windows, run_alone);
  report.add(first);
  // Steps a second at the machine's own random access, through the same loops.
  const double rows = kStepTables * kStepRows * 1e-6;
  const double peak =
      1 / (rows / limits.rows_gathered().median() + rows / limits.rows_updated().median());
  report.ratio("ps-step: one thread, of the machine's random rows", first, peak);
  {
    PsStepInProcess hashed_shard(kStepTableRows, true);
    const int count =
        calibrate(options.seconds, 20, [&](int steps) { return hashed_shard.run(steps); });
    Series series{.bench = "ps-step",
                  .configuration = "one thread, hashed tables",
                  .unit = "steps/s",
                  .processes = {{"process", ::getpid()}}};
    const auto [dense, hashed] = measure_in_turns(
        alone, run_alone, std::move(series), [&] { return count / hashed_shard.run(count); },
        options.windows);
    report.add(hashed);
    report.ratio("ps-step: one thread, hashed tables, of dense ones", hashed, dense);
  }
  const int shards = std::max(1, options.shards);
  const auto encoding = options.bfloat16.wire ? RowEncoding::kBfloat16 : RowEncoding::kRaw;
  for (const auto& transport : options.transports)
    for (const std::uint32_t depth : options.depths) {
      PsStepOverTheWire wire(transport, shards, kStepTableRows, encoding);
      auto run = [&](int steps) { return wire.run(steps, static_cast<int>(depth)); };
      const int count = calibrate(options.seconds, 20, run);
      Series series{.bench = "ps-step",
                    .configuration = str(transport, options.bfloat16.wire ? ", bf16 wire, " : ", ",
                                         shards, " shards, depth ", depth),
                    .unit = "steps/s",
                    .processes = wire.processes()};
      const auto [beside, measured] = measure_in_turns(
          alone, run_alone, std::move(series), [&] { return count / run(count); }, options.windows);
      report.add(measured);
      report.ratio(str("ps-step: ", measured.configuration, ", of one thread"), measured, beside);
    }
}

}  // namespace cairn::bench
