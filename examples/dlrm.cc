// Click models on click logs: DLRM, DCN-v2 and DeepFM, written against Cairn's C++ API.
//
//   build/dev/bin/cairn generate criteo-like train.bin --rows 2000000
//   build/dev/bin/cairn generate criteo-like test.bin --rows 200000 --first 2000000
//   build/dev/bin/cairn up --ps 2 --workers 2 -- build/dev/bin/dlrm train.bin test.bin dlrm
//
// Under --consistency=synchronous the workers take steps together; --checkpoint=FOLDER saves what
// was learnt. --rows-max=N is for logs none of whose 26 tables of ids has more than N rows.
#include <cstdio>
#include <string>

#include <cairn/cairn.h>
#include <cairn/data/format/criteo_like.h>

#include "examples/flags.h"

using namespace cairn;

namespace {

constexpr std::int64_t kBatch = 2048, kTestBatch = 8192;

nn::ClickModel click_model(const std::string& kind, std::int64_t rows_max) {
  nn::ClickModelOptions options{.dim = 16, .bottom = {64}, .top = {256, 64}};
  if (kind == "dcn_v2")
    options.kind = nn::ClickModelKind::kDcnV2;
  else if (kind == "deepfm")
    options.kind = nn::ClickModelKind::kDeepFm;
  else if (kind != "dlrm")
    throw InvalidArgumentError(
        str("there is no model \"", kind, "\", only dlrm, dcn_v2 and deepfm"));
  for (std::int64_t rows : criteo_table_rows(rows_max))
    options.tables.push_back({str("C", options.tables.size() + 1), rows});
  return nn::ClickModel(options);
}

// The ids lie side by side in one column of the file, [b, 26].
Array logits(const nn::ClickModel& model, const Features& features) {
  std::vector<Array> ids = split(features["ids"], kCriteoIds, 1);
  for (Array& each : ids) each = reshape(each, {-1});
  return model(features["dense"], ids);
}

}  // namespace

int main(int argc, char** argv) try {
  const Flags flags(argc, argv,
                    {{"consistency", "asynchronous"}, {"checkpoint", ""}, {"rows-max", "2000000"}});
  if (flags.plain() < 2)
    throw InvalidArgumentError("usage: dlrm TRAIN.bin TEST.bin [dlrm | dcn_v2 | deepfm] [STEPS]");
  const Dataset train = Dataset::records(flags.plain(0, ""), criteo_record_schema());
  const Dataset test = Dataset::records(flags.plain(1, ""), criteo_record_schema());
  const std::int64_t steps =
      flags.plain() > 3 ? std::stoll(flags.plain(3, "")) : cardinality(train) / kBatch;

  ParameterServerStrategy strategy(TFConfigClusterResolver(),
                                   {.partitioner = MinSizePartitioner({.max_shards = 2}),
                                    .consistency = consistency_of(flags["consistency"])});
  ClusterCoordinator coordinator(strategy);
  const nn::ClickModel model = click_model(flags.plain(2, "dlrm"), flags.number("rows-max"));
  nn::Adagrad optimizer({.learning_rate = 0.02f});

  auto batches = coordinator.create_per_worker_dataset([&](const InputContext& context) {
    return train.shard(context).repeat().batch(kBatch).prefetch(2);
  });
  Function step = strategy.function([&](Iterator input) {
    auto [features, label] = input.get_next();
    Array loss = mean(nn::sigmoid_cross_entropy(logits(model, features), label));
    optimizer.minimize(loss);
    return loss;
  });
  RemoteValue last;
  for (std::int64_t i = 0; i < steps; ++i) last = coordinator.schedule(step, {batches});
  coordinator.join();

  nn::Auc auc;
  auto tests = coordinator.create_shared_dataset(test.batch(kTestBatch));
  Function evaluate = strategy.function([&](Iterator input) {
    auto [features, label] = input.get_next();
    return auc.summary(nn::probability(logits(model, features)), label);
  });
  std::vector<RemoteValue> summaries;
  for (std::int64_t i = 0; i * kTestBatch < cardinality(test); ++i)
    summaries.push_back(coordinator.schedule(evaluate, {tests}));
  for (const auto& summary : summaries) auc.add(summary.get());
  std::printf("%lld steps, last loss %.4f, test AUC %.4f\n", static_cast<long long>(steps),
              last.get().item<float>(), auc.result());
  if (!flags["checkpoint"].empty()) coordinator.save({.folder = flags["checkpoint"]});
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "dlrm: %s\n", error.what());
  return 1;
}
