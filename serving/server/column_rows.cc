#include "serving/server/column_rows.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace cairn::serving {
namespace {

constexpr std::string_view kSplitsEnding = "/row_splits";

Tensor splits_between(const Tensor& splits, std::int64_t begin, std::int64_t end) {
  Tensor some(DType::kInt64, {end - begin + 1});
  const auto from = splits.values<std::int64_t>().subspan(static_cast<std::size_t>(begin));
  const auto to = some.mutable_values<std::int64_t>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i] - from[0];
  return some;
}

}  // namespace

ColumnRows::ColumnRows(ElementSpec input, const std::map<std::string, Tensor>& columns,
                       const std::string& output)
    : input_(std::move(input)) {
  for (const ColumnSpec& column : input_.columns) {
    const auto found = columns.find(column.name);
    if (found == columns.end())
      throw InvalidArgumentError(str("there is no column \"", column.name, "\", which the model's ",
                                     "output \"", output, "\" is computed from"));
    if (found->second.shape().rank() == 0)
      throw InvalidArgumentError(str("the column \"", column.name, "\" is a single value"));
    whole_.push_back(found->second);
  }
  verify_splits();
  for (std::size_t i = 0; i < whole_.size(); ++i) {
    if (splits_of(i) != nullptr) continue;
    const std::int64_t rows = whole_[i].shape()[0] - (is_splits(i) ? 1 : 0);
    if (rows_ >= 0 && rows != rows_)
      throw InvalidArgumentError(str("the column \"", input_.columns[i].name, "\" has ", rows,
                                     " rows, and another one ", rows_));
    rows_ = rows;
  }
}

Element ColumnRows::between(std::int64_t begin, std::int64_t end) const {
  Element batch;
  for (std::size_t i = 0; i < whole_.size(); ++i) {
    if (const Tensor* const splits = splits_of(i)) {
      const auto at = splits->values<std::int64_t>();
      batch.push_back(
          whole_[i].rows(at[static_cast<std::size_t>(begin)], at[static_cast<std::size_t>(end)]));
    } else if (is_splits(i)) {
      batch.push_back(splits_between(whole_[i], begin, end));
    } else {
      batch.push_back(whole_[i].rows(begin, end));
    }
  }
  return batch;
}

bool ColumnRows::is_splits(std::size_t i) const {
  return input_.columns[i].name.ends_with(kSplitsEnding);
}

const Tensor* ColumnRows::splits_of(std::size_t i) const {
  for (std::size_t j = 0; j < whole_.size(); ++j)
    if (input_.columns[j].name == input_.columns[i].name + std::string(kSplitsEnding))
      return &whole_[j];
  return nullptr;
}

void ColumnRows::verify_splits() const {
  for (std::size_t i = 0; i < whole_.size(); ++i) {
    const Tensor* const splits = splits_of(i);
    if (splits == nullptr) continue;
    const bool typed = splits->dtype() == DType::kInt64 && splits->shape().rank() == 1;
    const auto at = typed ? splits->values<std::int64_t>() : std::span<const std::int64_t>();
    if (at.empty() || at.front() != 0 || at.back() != whole_[i].shape()[0] ||
        !std::ranges::is_sorted(at))
      throw InvalidArgumentError(str("the row splits of the column \"", input_.columns[i].name,
                                     "\" do not ascend from 0 to its ", whole_[i].shape()[0],
                                     " values"));
  }
}

}  // namespace cairn::serving
