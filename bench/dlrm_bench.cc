// DLRM, large steps: batches of 2,048, 26 tables of 10.6 million rows x 16 in all.
#include <algorithm>
#include <memory>
#include <string>

#include "bench/benches.h"
#include "bench/cluster.h"
#include "bench/measure.h"
#include "bench/training.h"
#include "data/format/criteo_like.h"
#include "nn/nn.h"

namespace cairn::bench {
namespace {

constexpr std::int64_t kClicksPerBatch = 2048, kExamples = 200 * kClicksPerBatch;

std::shared_ptr<nn::ClickModel> dlrm() {
  nn::ClickModelOptions model{.dim = 16, .bottom = {64}, .top = {256, 64}};
  for (std::int64_t rows : criteo_table_rows())
    model.tables.push_back({str("C", model.tables.size() + 1), rows});
  return std::make_shared<nn::ClickModel>(model);
}

class Clicks {
 public:
  explicit Clicks(const Options& options) : options_(options), data_(options.data) {
    if (!data_.empty()) return;
    data_ = folder_.path() + "/clicks.bin";
    write_criteo_records(CriteoLike({.seed = options.seed}), 0, kExamples, data_);
  }
  // A model of its own each time.
  TrainedModel model() const {
    TrainedModel trained{.bench = "dlrm",
                         .batch = options_.batch > 0 ? options_.batch : kClicksPerBatch,
                         .optimizer = {.learning_rate = 0.02f}};
    // the last: all pairs
    trained.products =
        products_of({13, 64, 16}) + products_of({16 + 27 * 26 / 2, 256, 64, 1}) + 6 * 27 * 27 * 16;
    trained.batches = [this, batch = trained.batch] {
      return Dataset::records(data_, criteo_record_schema())
          .repeat()
          .batch(batch)
          .prefetch(options_.prefetch);
    };
    trained.loss = [model = dlrm()](const Features& features, const Array& label) {
      std::vector<Array> ids = split(features["ids"], kCriteoIds, 1);
      for (Array& each : ids) each = reshape(each, {-1});
      return mean(nn::sigmoid_cross_entropy((*model)(features["dense"], ids), label));
    };
    return trained;
  }

 private:
  const Options& options_;
  TemporaryFolder folder_;
  std::string data_;
};

}  // namespace

void bench_dlrm(const Options& options, Limits& limits, Report& report) {
  const Clicks clicks(options);
  bench_training(options, limits, report, [&] { return clicks.model(); });
}

// The same job asynchronously and under HybridStrategy, on clusters of their own, in turns.
void bench_hybrid(const Options& options, Limits&, Report& report) {
  const Clicks clicks(options);
  Options two = options;
  two.workers = std::max(2, options.workers);
  two.lanes = 1;
  for (const auto& transport : options.transports) {
    ClusterTraining async(two, clicks.model(), {transport, options.depths.front()}, 1);
    ClusterTraining hybrid(
        two, clicks.model(),
        {.transport = transport, .depth = options.depths.front(), .hybrid = true}, 1);
    const auto windows_of = [&](ClusterTraining& training) {
      training.run(4 * two.workers);
      const int closures =
          calibrate(options.seconds, 4 * two.workers, [&](int n) { return training.run(n); });
      return [&training, closures] {
        return closures * static_cast<double>(training.examples()) / training.run(closures);
      };
    };
    const auto [plain, mirrored] = measure_in_turns(
        async.series(), windows_of(async), hybrid.series(), windows_of(hybrid), options.windows);
    report.add(plain);
    report.add(mirrored);
    report.ratio(str("dlrm: ", mirrored.configuration, ", of asynchronous"), mirrored, plain);
  }
}

}  // namespace cairn::bench
