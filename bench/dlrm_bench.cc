// DLRM, large steps: batches of 2,048, 26 tables of 10.6 million rows x 16 in all.
#include <memory>

#include "bench/benches.h"
#include "bench/cluster.h"
#include "bench/training.h"
#include "data/criteo_like.h"
#include "nn/nn.h"

namespace cairn::bench {
namespace {

constexpr std::int64_t kBatch = 2048, kExamples = 200 * kBatch;

std::shared_ptr<nn::ClickModel> dlrm() {
  nn::ClickModelOptions model{.dim = 16, .bottom = {64}, .top = {256, 64}};
  for (std::int64_t rows : criteo_table_rows())
    model.tables.push_back({str("C", model.tables.size() + 1), rows});
  return std::make_shared<nn::ClickModel>(model);
}

}  // namespace

void bench_dlrm(const Options& options, Limits& limits, Report& report) {
  TemporaryFolder folder;
  std::string data = options.data;
  if (data.empty()) {
    data = folder.path() + "/clicks.bin";
    write_criteo_records(CriteoLike({.seed = options.seed}), 0, kExamples, data);
  }
  bench_training(options, limits, report, [&] {
    TrainedModel trained{.bench = "dlrm",
                         .batch = options.batch > 0 ? options.batch : kBatch,
                         .optimizer = {.learning_rate = 0.02f}};
    // the last: all pairs
    trained.products =
        products_of({13, 64, 16}) + products_of({16 + 27 * 26 / 2, 256, 64, 1}) + 6 * 27 * 27 * 16;
    trained.batches = [&, batch = trained.batch] {
      return Dataset::records(data, criteo_record_schema())
          .repeat()
          .batch(batch)
          .prefetch(options.prefetch);
    };
    trained.loss = [model = dlrm()](const Features& features, const Array& label) {
      std::vector<Array> ids = split(features["ids"], kCriteoIds, 1);
      for (Array& each : ids) each = reshape(each, {-1});
      return mean(nn::sigmoid_cross_entropy((*model)(features["dense"], ids), label));
    };
    return trained;
  });
}

}  // namespace cairn::bench
