// A small model with one of everything that a saved model must keep: dense layers, a hashed table
// whose rows are not all there, ragged ids, a number; and data from which it learns something.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/graph/ops.h"
#include "data/dataset/dataset_iterator.h"
#include "model/saved/loaded_model.h"
#include "model/saved/saved_model.h"
#include "nn/layers/dense.h"
#include "nn/layers/embedding.h"
#include "nn/losses/losses.h"
#include "nn/metrics/metrics.h"
#include "nn/optimizers/optimizer.h"
#include "strategy/base/strategy.h"
#include "tests/tools/temp_folder.h"

namespace cairn::testing {

// 40 lines "label,word,ids,x"; the words and ids of odd examples are others than those of even
// ones.
inline std::string small_data() {
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    std::string ids = std::to_string(i % 7);
    for (int k = 0; k < i % 3; ++k) ids += "|" + std::to_string((i * 5 + k) % 20);
    lines +=
        str(i % 2, ",w", i % 2 * 100 + i % 11, ",", i % 5 == 0 ? "" : ids, ",", i * 0.25f, "\n");
  }
  return lines;
}

inline Dataset small_examples(const std::string& file) {
  CsvSchema schema;
  schema.columns = {{.name = "label"},
                    {.name = "word", .dtype = DType::kString},
                    {.name = "ids", .dtype = DType::kInt64, .separator = '|'},
                    {.name = "x"}};
  schema.label.column = "label";
  return Dataset::csv(file, schema)
      .features({FeatureColumn::hashed("word", std::int64_t{1} << 40),
                 FeatureColumn::as_is("ids", 20),
                 FeatureColumn::numeric({{.column = "x", .mean = 4, .stddev = 3}})});
}

// The columns of a batch without its label.
inline ElementSpec input_of(const Dataset& examples) {
  ElementSpec spec = examples.batch(4).element_spec();
  std::erase_if(spec.columns, [&](const ColumnSpec& column) { return column.name == spec.label; });
  spec.label.clear();
  return spec;
}

struct SmallModel {
  nn::Embedding words{{.name = "words", .rows = std::int64_t{1} << 40, .dim = 4, .hashed = true}};
  nn::Embedding ids{{.name = "ids", .rows = 20, .dim = 3, .combiner = Combiner::kMean}};
  nn::Mlp tower{nn::MlpOptions{.units = {8, 1}, .name = "tower"}};
  nn::Adagrad optimizer{nn::AdagradOptions{.learning_rate = 0.1f}};

  Array logits(const Features& features) const {
    return tower(
        concat({words(features["word"]), ids(features.values("ids"), features.row_splits("ids")),
                features["numeric"]},
               1));
  }
  Function step(Strategy& strategy) {
    return strategy.function([this](Iterator input) {
      const Batch batch = input.get_next();
      const Array loss = mean(nn::sigmoid_cross_entropy(logits(batch.features), batch.label));
      optimizer.minimize(loss);
      return loss;
    });
  }
  Function predict(Strategy& strategy) {
    return strategy.function(
        [this](Iterator input) {
          const Array all = logits(input.get_next().features);
          return Outputs{{"probability", nn::probability(all)}, {"logits", all}};
        },
        "predict");
  }
};

// Trains on the first `taken` examples, so that some words are never seen.
inline void train(Strategy& strategy, SmallModel& model, const Dataset& examples, int steps = 12) {
  auto scope = strategy.scope();
  Function step = model.step(strategy);
  auto batches = strategy.iterate(strategy.experimental_distribute_dataset(
      examples.take(24).repeat().batch(8, {.drop_remainder = true})));
  for (int i = 0; i < steps; ++i) strategy.run(step, {batches});
}

// The strategy's own predictions for its replicas' parts of batches, one behind the other.
inline std::vector<std::vector<Tensor>> own_predictions(Strategy& strategy, SmallModel& model,
                                                        const Dataset& examples, std::int64_t batch,
                                                        int batches) {
  auto scope = strategy.scope();
  Function predict = model.predict(strategy);
  auto data = strategy.iterate(strategy.experimental_distribute_dataset(examples.batch(batch)));
  std::vector<std::vector<Tensor>> all;
  for (int i = 0; i < batches; ++i) {
    const RunResult result = strategy.run(predict, {data});
    std::vector<std::vector<Tensor>> of_replicas;
    for (std::size_t o = 0; o < result.size(); ++o) {
      const auto values = strategy.experimental_local_results(result[o]);
      of_replicas.resize(values.size());
      for (std::size_t r = 0; r < values.size(); ++r) of_replicas[r].push_back(values[r].tensor());
    }
    for (auto& each : of_replicas) all.push_back(std::move(each));
  }
  return all;
}

inline std::vector<std::vector<Tensor>> loaded_predictions(LoadedModel& model,
                                                           const Dataset& examples,
                                                           std::int64_t batch) {
  std::vector<std::vector<Tensor>> all;
  model.predict(examples, [&](const std::vector<Tensor>& outputs) { all.push_back(outputs); },
                {.batch = batch});
  return all;
}

inline void expect_equal_bits(const std::vector<std::vector<Tensor>>& got,
                              const std::vector<std::vector<Tensor>>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), wanted[i].size());
    for (std::size_t o = 0; o < got[i].size(); ++o) {
      ASSERT_EQ(got[i][o].type(), wanted[i][o].type());
      EXPECT_EQ(std::memcmp(got[i][o].raw(), wanted[i][o].raw(), got[i][o].bytes()), 0)
          << "batch " << i << ", output " << o;
    }
  }
}

// Everything that save_model() wants, for a strategy that has been trained.
struct SmallSave {
  tools::TempFolder folder;
  std::string data = folder.path() + "/data.csv";
  std::string path = folder.path() + "/models/small";
  SmallModel model;

  SmallSave() { folder.write("data.csv", small_data()); }
  Dataset examples() const { return small_examples(data); }
  SavedModel save(Strategy& strategy, SaveModelOptions options = {}) {
    if (!options.examples.defined()) options.examples = examples();
    if (options.label.empty()) options.label = "label";
    return save_model(strategy, model.predict(strategy), input_of(examples()), options, path);
  }
};

}  // namespace cairn::testing
