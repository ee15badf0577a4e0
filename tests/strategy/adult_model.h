// Wide & Deep on the Adult data, small enough for a test: the model by which strategies are
// compared.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/graph/ops.h"
#include "data/stage/fit.h"
#include "nn/nn.h"
#include "testing/adult_schema.h"

namespace cairn::testing {

inline constexpr std::int64_t kAdultBatch = 128;
inline constexpr std::int64_t kHashedRows = std::int64_t{1} << 40;  // of which 16 are in use

inline const std::vector<std::string> kCategories = {"workclass", "education", "occupation",
                                                     "native-country"};

struct AdultData {
  AdultData() {
    Dataset raw = Dataset::csv(testing::kAdultTrain, testing::adult_schema());
    FitRequest request{.numeric = {{.column = "age"}, {.column = "hours-per-week"}},
                       .vocabularies = kCategories};
    Fit fitted = fit(raw, request);
    std::vector<FeatureColumn> columns{FeatureColumn::numeric(fitted.numeric)};
    for (std::size_t i = 0; i < kCategories.size(); ++i)
      columns.push_back(FeatureColumn::vocabulary(kCategories[i], fitted.vocabularies[i]));
    for (const auto& column : columns) rows.push_back(column.ids());
    columns.push_back(FeatureColumn::hashed("education", kHashedRows, "education of many"));
    batches = raw.features(columns).shuffle(1000, 7).repeat().batch(kAdultBatch);
    halves = raw.features(columns).shuffle(1000, 7).repeat().batch(kAdultBatch / 2);
    test = raw.features(columns).batch(2000);
  }
  Dataset batches, test;
  Dataset halves;  // of the batches, one after the other
  std::vector<std::int64_t> rows;
};

inline const AdultData& adult() {
  static const AdultData data;
  return data;
}

// Wide & Deep with the optimizers of both kinds: row rules, a table rule, and a schedule.
struct AdultModel {
  static const Dataset& batches() { return adult().batches; }
  static const Dataset& halves() { return adult().halves; }
  AdultModel() {
    for (std::size_t i = 0; i < kCategories.size(); ++i) {
      embeddings.emplace_back(
          nn::EmbeddingOptions{.name = kCategories[i], .rows = adult().rows[i + 1], .dim = 8});
      columns.push_back({kCategories[i], adult().rows[i + 1]});
    }
    embeddings.emplace_back(nn::EmbeddingOptions{
        .name = "education of many", .rows = kHashedRows, .dim = 8, .hashed = true});
    wide = std::make_shared<nn::Wide>(
        nn::WideOptions{.columns = columns, .crosses = {{{"education", "occupation"}, 100}}});
  }
  Array logits(const Features& features) const {
    std::vector<Array> deep{features["numeric"]};
    for (std::size_t i = 0; i < kCategories.size(); ++i)
      deep.push_back(embeddings[i](features[kCategories[i]]));
    deep.push_back(embeddings.back()(features["education of many"]));
    return tower(concat(deep, 1)) + (*wide)(features);
  }
  Array train(Iterator input) const {
    auto [features, label] = input.get_next();
    return update_by(mean(nn::sigmoid_cross_entropy(logits(features), label)));
  }
  // The same by one of several replicas, whose gradients are summed: its examples' part of the mean
  // over a global batch.
  Array train_in_sync(Iterator input) const {
    auto [features, label] = input.get_next();
    const float global_batch = kAdultBatch;
    return update_by(sum(nn::sigmoid_cross_entropy(logits(features), label)) / global_batch);
  }
  Array update_by(const Array& loss) const {
    std::vector<VariableGradient> tower_part, rest;
    for (auto& gradient : variable_gradients(check_numerics(loss, "loss")))
      (gradient.variable.name().starts_with("mlp") ? tower_part : rest).push_back(gradient);
    adam.apply_gradients(tower_part);
    adagrad.apply_gradients(rest);
    return loss;
  }
  std::vector<nn::Embedding> embeddings;
  std::vector<nn::WideColumn> columns;
  std::shared_ptr<nn::Wide> wide;
  nn::Mlp tower{{.units = {32, 16, 1}}};
  nn::Adam adam{{.learning_rate = nn::ExponentialDecay(
                     {.initial_learning_rate = 0.01f, .decay_steps = 50, .decay_rate = 0.9f})}};
  nn::Adagrad adagrad{{.learning_rate = 0.05f}};
};

}  // namespace cairn::testing
