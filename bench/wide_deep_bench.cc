// Wide & Deep, small steps: batches of 256.
#include <memory>

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
    auto model = std::make_shared<WideDeepModel>();
    TrainedModel trained{.bench = "wide-deep", .batch = kWideDeepBatch, .optimizer = {.learning_rate = 0.02f}, .products = products_of({72, 128, 64, 1})};
    trained.batches = [&] { return wide_deep_batches(data, options.prefetch); };
    trained.loss = [model](const Features& features, const Array& label) { return mean(nn::sigmoid_cross_entropy(model->logits(features), label)); };
    return trained;
  });
}

}  // namespace cairn::bench
