#include "bench/wide_deep_model.h"

#include <memory>

#include "core/graph/ops.h"

namespace cairn::bench {

WideDeepModel::WideDeepModel()
    : wide_({.name = "wide", .rows = kWideRows, .dim = 1, .combiner = Combiner::kSum}),
      wide_numbers_({.units = 1,
                     .use_bias = false,
                     .kernel_initializer = Initializer::zeros(),
                     .name = "wide_numbers"}),
      tower_({.units = {128, 64, 1}}) {
  for (std::int64_t i = 0; i < kDeepColumns; ++i)
    tables_.emplace_back(nn::EmbeddingOptions{.name = str("deep", i), .rows = kDeepRows, .dim = 8});
}

Array WideDeepModel::logits(const Features& features) const {
  const Array& ids = features["deep_id"];
  std::vector<Array> deep;
  for (std::size_t i = 0; i < tables_.size(); ++i)
    deep.push_back(tables_[i](squeeze(slice(ids, 1, static_cast<std::int64_t>(i), 1), 1)));
  deep.push_back(features["numeric"]);
  return tower_(concat(deep, 1)) + wide_(features["wide_id"]) + wide_numbers_(features["numeric"]);
}

TrainedModel trained_wide_deep(const std::string& data, std::int64_t prefetch, std::int64_t batch) {
  TrainedModel trained{.bench = "wide-deep",
                       .batch = batch,
                       .optimizer = {.learning_rate = 0.02f},
                       .products = products_of({72, 128, 64, 1})};
  trained.batches = [=] { return wide_deep_batches(data, prefetch, batch); };
  trained.loss = [model = std::make_shared<WideDeepModel>()](const Features& features,
                                                             const Array& label) {
    return mean(nn::sigmoid_cross_entropy(model->logits(features), label));
  };
  return trained;
}

}  // namespace cairn::bench
