#include "nn/layers/wide.h"

#include <span>
#include <utility>

#include "core/graph/function.h"

namespace cairn::nn {
namespace {

Array as_int64(const Array& ids, const std::string& column) {
  if (!ids.defined() || ids.rank() != 1 ||
      (ids.dtype() != DType::kInt32 && ids.dtype() != DType::kInt64))
    throw InvalidArgumentError(str("wide column \"", column,
                                   "\" wants int32 or int64 ids of shape [batch], got ",
                                   ids.defined() ? ids.type().to_string() : "nothing"));
  return ids.dtype() == DType::kInt64 ? ids : cast(ids, DType::kInt64);
}

}  // namespace

Wide::Wide(WideOptions options) : options_(std::move(options)) {
  if (options_.columns.empty())
    throw InvalidArgumentError(str("wide part \"", options_.name, "\" has no column"));
  for (const WideColumn& column : options_.columns) {
    if (column.rows < 1)
      throw InvalidArgumentError(
          str("wide column \"", column.name, "\": rows must be at least 1, got ", column.rows));
    if (!column.bags) plain_.push_back(offsets_.size());
    offsets_.push_back(rows_);
    rows_ += column.rows;
  }
  for (const WideCross& cross : options_.crosses) {
    crosses_.push_back(resolve(cross));
    offsets_.push_back(rows_);
    rows_ += crosses_.back().combined.rows();
  }
  table_.emplace_back(EmbeddingOptions{.name = options_.name,
                                       .rows = rows_,
                                       .dim = 1,
                                       .combiner = Combiner::kSum,
                                       .initializer = options_.initializer,
                                       .hashed = options_.hashed});
}

Wide::Cross Wide::resolve(const WideCross& cross) const {
  std::vector<std::size_t> columns;
  std::vector<std::int64_t> rows;
  for (const std::string& name : cross.columns) {
    std::size_t i = 0;
    while (i < options_.columns.size() && options_.columns[i].name != name) ++i;
    if (i == options_.columns.size())
      throw InvalidArgumentError(str("wide part \"", options_.name, "\" crosses column \"", name,
                                     "\", which is not among its columns"));
    if (options_.columns[i].bags)
      throw InvalidArgumentError(str("wide part \"", options_.name, "\" crosses column \"", name,
                                     "\", whose examples have any number of ids"));
    columns.push_back(i);
    rows.push_back(options_.columns[i].rows);
  }
  try {
    return {std::move(columns), IdCross(std::move(rows), cross.buckets)};
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str("wide part \"", options_.name, "\": ", error.what()));
  }
}

// Columns share one table, so an id beyond its column would be some other column's row. It becomes
// -1, which the lookup refuses. Crosses need no such check: they are made of the same ids.
Array Wide::placed_columns(const std::vector<Array>& ids) const {
  const Shape columns{static_cast<std::int64_t>(plain_.size())};
  std::vector<std::int64_t> limits, offsets;
  std::vector<Array> plain;
  for (const std::size_t i : plain_) {
    limits.push_back(options_.columns[i].rows);
    offsets.push_back(offsets_[i]);
    plain.push_back(ids[i]);
  }
  const Array stacked = stack(plain, 1);
  const Array inside = logical_and(greater_equal(stacked, Array(std::int64_t{0})),
                                   less(stacked, Array(Tensor::of<std::int64_t>(columns, limits))));
  const Array placed = stacked + Array(Tensor::of<std::int64_t>(columns, offsets));
  return where(inside, placed, Array(std::int64_t{-1}));
}

Array Wide::placed_bags(std::size_t column, const Array& ids) const {
  const Array inside = logical_and(greater_equal(ids, Array(std::int64_t{0})),
                                   less(ids, Array(options_.columns[column].rows)));
  return where(inside, ids + Array(offsets_[column]), Array(std::int64_t{-1}));
}

Array Wide::placed_crosses(const std::vector<Array>& ids) const {
  std::vector<Array> crossed;
  for (const Cross& cross : crosses_) {
    std::vector<Array> of_columns;
    for (const std::size_t i : cross.columns) of_columns.push_back(ids[i]);
    crossed.push_back(cross.combined(of_columns));
  }
  std::span<const std::int64_t> offsets(offsets_);
  return stack(crossed, 1) +
         Array(Tensor::of<std::int64_t>(Shape{static_cast<std::int64_t>(crossed.size())},
                                        offsets.subspan(options_.columns.size())));
}

Array Wide::operator()(const std::vector<Array>& ids) const {
  std::vector<Ids> all;
  for (const Array& each : ids) all.push_back({.values = each});
  return (*this)(all);
}

// [b, columns, 1] -> [b, 1] by the table's combiner, which is the sum, and the same for each column
// of bags.
Array Wide::operator()(const std::vector<Ids>& ids) const {
  if (ids.size() != options_.columns.size())
    throw InvalidArgumentError(str("wide part \"", options_.name, "\" has ",
                                   options_.columns.size(), " columns, got ids of ", ids.size()));
  std::vector<Array> all;
  for (std::size_t i = 0; i < ids.size(); ++i)
    all.push_back(as_int64(ids[i].values, options_.columns[i].name));
  Array logits;
  if (!plain_.empty()) {
    Array placed = placed_columns(all);
    if (!crosses_.empty()) placed = concat({placed, placed_crosses(all)}, 1);
    logits = table_[0](placed);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!options_.columns[i].bags) continue;
    const Array sums = table_[0](Ids{placed_bags(i, all[i]), ids[i].row_splits, ids[i].weights});
    logits = logits.defined() ? logits + sums : sums;
  }
  if (!options_.use_bias) return logits;
  const auto& bias = bias_.in_scope([&](VariableCreator& creator) {
    return std::vector<Variable>{
        creator.create_variable({.name = options_.name + "/bias", .shape = {1}})};
  });
  return logits + bias[0].read();
}

Array Wide::operator()(const Features& features) const {
  std::vector<Ids> ids;
  for (const WideColumn& column : options_.columns) {
    Ids& made = ids.emplace_back(Ids{features[column.name]});
    if (column.bags) made.row_splits = features.row_splits(column.name);
    if (!column.weights.empty()) made.weights = features[column.weights];
  }
  return (*this)(ids);
}

std::vector<Variable> Wide::variables() const {
  std::vector<Variable> all = table_[0].variables();
  if (options_.use_bias) all.push_back(bias_.made(options_.name)[0]);
  return all;
}

}  // namespace cairn::nn
