// Wide & Deep on the Adult census data, written against Cairn's C++ API. It runs on any cluster
// that TF_CONFIG names:
//
//   build/dev/bin/cairn up --ps 2 --workers 2 -- build/dev/bin/wide_deep examples/data/adult
//
// A second argument names the folder for the checkpoint. Under --consistency=synchronous the
// workers take steps together; --steps=50 takes so many.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include <cairn/cairn.h>

#include "examples/flags.h"

using namespace cairn;

namespace {

const std::vector<std::string> kCategories = {"workclass",  "education",     "marital-status",
                                              "occupation", "relationship",  "race",
                                              "sex",        "native-country"};
const std::vector<std::string> kNumbers = {"age", "education-num", "hours-per-week", "capital-gain",
                                           "capital-loss"};

CsvSchema adult_schema() {
  CsvSchema schema;
  for (std::string name :
       {"age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
        "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
        "native-country", "income"}) {
    bool number = std::find(kNumbers.begin(), kNumbers.end(), name) != kNumbers.end();
    schema.columns.push_back(
        {.name = name, .dtype = number ? DType::kInt32 : DType::kString, .skip = name == "fnlwgt"});
  }
  schema.label = {
      .column = "income", .positive = {">50K", ">50K."}, .negative = {"<=50K", "<=50K."}};
  schema.comment = "|";
  return schema;
}

// Standardised numbers, and an id per value of each category, as the training data has them.
std::vector<FeatureColumn> fit_columns(const Dataset& data) {
  FitRequest request;
  for (const auto& name : kNumbers) request.numeric.push_back({.column = name});
  request.vocabularies = kCategories;
  Fit fitted = fit(data, request);
  std::vector<FeatureColumn> columns{FeatureColumn::numeric(fitted.numeric)};
  for (std::size_t i = 0; i < kCategories.size(); ++i)
    columns.push_back(FeatureColumn::vocabulary(kCategories[i], fitted.vocabularies[i]));
  return columns;
}

struct WideDeep {
  explicit WideDeep(const std::vector<FeatureColumn>& columns) {
    for (std::size_t i = 0; i < kCategories.size(); ++i) {
      std::int64_t rows = columns[i + 1].ids();
      embeddings.emplace_back(nn::EmbeddingOptions{.name = kCategories[i], .rows = rows, .dim = 8});
      wide_columns.push_back({kCategories[i], rows});
    }
    wide = std::make_shared<nn::Wide>(
        nn::WideOptions{.columns = wide_columns, .crosses = {{{"education", "occupation"}, 1000}}});
  }
  Array operator()(const Features& features) const {
    std::vector<Array> deep{features["numeric"]};
    for (std::size_t i = 0; i < kCategories.size(); ++i)
      deep.push_back(embeddings[i](features[kCategories[i]]));
    const Array generalised = tower(concat(deep, 1)), memorised = (*wide)(features);
    return generalised + memorised;
  }
  std::vector<nn::Embedding> embeddings;
  std::vector<nn::WideColumn> wide_columns;
  std::shared_ptr<nn::Wide> wide;
  nn::Mlp tower{{.units = {64, 32, 1}}};
};

}  // namespace

int main(int argc, char** argv) try {
  const Flags flags(argc, argv,
                    {{"consistency", "asynchronous"}, {"steps", std::to_string(5 * 32'561 / 256)}});
  const std::string folder = flags.plain(0, "examples/data/adult");
  Dataset train = Dataset::csv(folder + "/adult.data.gz", adult_schema());
  Dataset test = Dataset::csv(folder + "/adult.test.gz", adult_schema());
  auto columns = fit_columns(train);

  ParameterServerStrategy strategy(TFConfigClusterResolver(),
                                   {.partitioner = MinSizePartitioner({.max_shards = 2}),
                                    .consistency = consistency_of(flags["consistency"])});
  ClusterCoordinator coordinator(strategy);
  WideDeep model(columns);
  nn::LazyAdam optimizer({.learning_rate = 0.001f});

  auto batches = coordinator.create_per_worker_dataset([&](const InputContext& context) {
    return train.features(columns).shard(context).shuffle(32'561).repeat().batch(256).prefetch(2);
  });
  Function step = strategy.function([&](Iterator input) {
    auto [features, label] = input.get_next();
    Array loss = mean(nn::sigmoid_cross_entropy(model(features), label));
    optimizer.minimize(loss);
    return loss;
  });
  const std::int64_t steps = flags.number("steps");
  RemoteValue last;
  for (std::int64_t i = 0; i < steps; ++i) last = coordinator.schedule(step, {batches});
  coordinator.join();

  nn::Auc auc;
  auto tests = coordinator.create_shared_dataset(test.features(columns).batch(2048));
  Function evaluate = strategy.function([&](Iterator input) {
    auto [features, label] = input.get_next();
    return auc.summary(nn::probability(model(features)), label);
  });
  std::vector<RemoteValue> summaries;
  for (int i = 0; i < (16'281 + 2047) / 2048; ++i)
    summaries.push_back(coordinator.schedule(evaluate, {tests}));
  for (const auto& summary : summaries) auc.add(summary.get());

  std::string checkpoint =
      Checkpoint(strategy).save(std::filesystem::absolute(flags.plain(1, "checkpoints")).string());
  std::printf("%lld steps, last loss %.4f, test AUC %.4f, checkpoint %s\n",
              static_cast<long long>(steps), last.get().item<float>(), auc.result(),
              checkpoint.c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "wide_deep: %s\n", error.what());
  return 1;
}
