// Wide & Deep, small steps: batches of 256.
#include "bench/benches.h"
#include "bench/cluster.h"
#include "bench/training.h"
#include "bench/wide_deep_model.h"

namespace cairn::bench {

void bench_wide_deep(const Options& options, Limits& limits, Report& report) {
  TemporaryFolder folder;
  std::string data = options.data;
  if (data.empty()) {
    data = folder.path() + "/wide_deep.bin";
    write_wide_deep_records(data, options.seed);
  }
  bench_training(options, limits, report, [&] {
    return trained_wide_deep(data, options.prefetch,
                             options.batch > 0 ? options.batch : kWideDeepBatch);
  });
}

}  // namespace cairn::bench
