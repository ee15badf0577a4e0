// The three models differ only in what stands between the vectors and the top, so they share tables
// and layers; a checkpoint of one kind does not fit another, because variables differ.
#include "nn/layers/click_model.h"

#include "core/base/error.h"
#include "core/graph/ops.h"

namespace cairn::nn {
namespace {

std::vector<std::int64_t> ended_by(std::vector<std::int64_t> units, std::int64_t last) {
  units.push_back(last);
  return units;
}

}  // namespace

// Every layer gets the same seed: keys of initial values have the variable's name in them, so no
// two variables begin alike. Layers that a kind does not use make no variables, since they are
// never called.
ClickModel::ClickModel(ClickModelOptions options)
    : options_(std::move(options)),
      bottom_({.units = ended_by(options_.bottom, options_.dim),
               .last_linear = false,
               .name = "bottom",
               .seed = options_.seed}),
      top_({.units = ended_by(options_.top, 1), .name = "top", .seed = options_.seed}),
      cross_({.layers = options_.cross_layers, .seed = options_.seed}) {
  if (options_.tables.empty())
    throw InvalidArgumentError("a click model wants at least one table of ids");
  for (const ClickModelOptions::Table& table : options_.tables) {
    std::optional<Combiner> combiner;
    if (table.bags) combiner = options_.combiner;
    tables_.emplace_back(EmbeddingOptions{.name = table.name,
                                          .rows = table.rows,
                                          .dim = options_.dim,
                                          .combiner = combiner,
                                          .seed = options_.seed,
                                          .hashed = table.hashed,
                                          .policy = table.policy});
    if (options_.kind == ClickModelKind::kDeepFm)
      weights_.emplace_back(EmbeddingOptions{.name = table.name + "/weight",
                                             .rows = table.rows,
                                             .dim = 1,
                                             .combiner = combiner,
                                             .seed = options_.seed,
                                             .hashed = table.hashed,
                                             .policy = table.policy});
  }
}

Array ClickModel::operator()(const Array& numbers, const std::vector<Array>& ids) const {
  std::vector<Ids> all;
  for (const Array& each : ids) all.push_back({.values = each});
  return (*this)(numbers, all);
}

Array ClickModel::operator()(const Array& numbers, const std::vector<Ids>& ids) const {
  if (ids.size() != tables_.size())
    throw InvalidArgumentError(
        str("this click model has ", tables_.size(), " tables, and is given ids for ", ids.size()));
  std::vector<Array> vectors;
  if (numbers.defined()) vectors.push_back(bottom_(numbers));
  for (std::size_t i = 0; i < ids.size(); ++i) vectors.push_back(tables_[i](ids[i]));
  switch (options_.kind) {
    case ClickModelKind::kDlrm:
      return top_(DotInteraction({.keep_first = numbers.defined()})(vectors));
    case ClickModelKind::kDcnV2: return top_(cross_(concat(vectors, 1)));
    case ClickModelKind::kDeepFm: break;
  }
  // DeepFM: the deep part, the pairwise products and the linear part are added, and share the
  // embeddings.
  Array logits = top_(concat(vectors, 1)) + factorization_machine(vectors);
  for (std::size_t i = 0; i < ids.size(); ++i) logits = logits + weights_[i](ids[i]);
  return logits;
}

}  // namespace cairn::nn
