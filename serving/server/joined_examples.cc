#include "serving/server/joined_examples.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

namespace cairn::serving {
namespace {

constexpr std::string_view kRowSplits = "/row_splits";

Tensor joined_strings(const std::vector<const Element*>& parts, std::size_t column, Shape shape) {
  const auto wanted = static_cast<std::size_t>(shape.elements());
  std::vector<std::string> all;
  all.reserve(wanted);
  for (const Element* part : parts) {
    const auto values = (*part)[column].string_values();
    all.insert(all.end(), values.begin(), values.end());
  }
  const std::size_t row = all.size() < wanted ? static_cast<std::size_t>(shape.row_elements()) : 0;
  while (all.size() < wanted) all.push_back(all[all.size() - row]);
  return Tensor::strings(std::move(shape), std::move(all));
}

// Each part's splits begin with 0, which the end of the part before stands for.
Tensor joined_splits(const std::vector<const Element*>& parts, std::size_t column,
                     std::int64_t examples) {
  Tensor all(DType::kInt64, {examples + 1});
  const auto splits = all.mutable_values<std::int64_t>();
  auto to = splits.begin();
  std::int64_t before = 0;
  *to++ = 0;
  for (const Element* part : parts) {
    for (const std::int64_t split : (*part)[column].values<std::int64_t>().subspan(1))
      *to++ = before + split;
    before = *(to - 1);
  }
  std::fill(to, splits.end(), before);
  return all;
}

// `rows`: of the result; more than the parts have where examples are added.
Tensor joined(const std::vector<const Element*>& parts, std::size_t column, std::int64_t rows) {
  const Tensor& first = (*parts.front())[column];
  Shape shape = first.shape().with_dim(0, rows);
  if (first.dtype() == DType::kString) return joined_strings(parts, column, std::move(shape));
  const std::size_t row_bytes =
      static_cast<std::size_t>(shape.row_elements()) * dtype_bytes(first.dtype());
  Tensor all(first.dtype(), std::move(shape));
  std::byte *to = all.mutable_raw(), *const end = to + all.bytes();
  for (const Element* part : parts) {
    const Tensor& of = (*part)[column];
    if (of.bytes() > 0) std::memcpy(to, of.raw(), of.bytes());
    to += of.bytes();
  }
  for (; to < end; to += row_bytes) std::memcpy(to, to - row_bytes, row_bytes);
  return all;
}

bool has_row_splits(const ElementSpec& input, const std::string& name) {
  for (const ColumnSpec& column : input.columns)
    if (column.name == name + std::string(kRowSplits)) return true;
  return false;
}

}  // namespace

Element joined_examples(const ElementSpec& input, const std::vector<const Element*>& parts,
                        std::int64_t examples) {
  Element all;
  all.reserve(input.columns.size());
  for (std::size_t i = 0; i < input.columns.size(); ++i) {
    const std::string& name = input.columns[i].name;
    if (name.ends_with(kRowSplits)) {
      all.push_back(joined_splits(parts, i, examples));
      continue;
    }
    std::int64_t values = 0;  // of a ragged column no more than came
    for (const Element* part : parts) values += (*part)[i].shape()[0];
    all.push_back(joined(parts, i, has_row_splits(input, name) ? values : examples));
  }
  return all;
}

std::int64_t examples_of(const ElementSpec& input, const Element& columns) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string& name = input.columns[i].name;
    const std::int64_t rows = columns[i].shape()[0];
    if (name.ends_with(kRowSplits)) return rows - 1;
    if (!has_row_splits(input, name)) return rows;
  }
  return 0;
}

std::int64_t computed_as(std::int64_t examples) {
  const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(examples)));
  const std::int64_t between = power / 4 * 3;
  return examples <= between ? between : power;
}

}  // namespace cairn::serving
