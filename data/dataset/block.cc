// Ragged columns are what makes this file long. Their values have no row of their own, so every
// operation handles a pair of columns: the splits are cut, picked or joined as rows, and the values
// follow what the splits say.
#include "data/dataset/block.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "data/dataset/stage_spec.h"

namespace cairn {
namespace {

using Role = BlockLayout::Role;

Tensor like(const Tensor& column, std::int64_t rows) {
  return Tensor(column.dtype(), column.shape().with_dim(0, rows));
}

// Writes rows[i] of `from` to row i of the result.
Tensor gather_rows(const Tensor& from, std::span<const std::int64_t> rows) {
  auto count = static_cast<std::int64_t>(rows.size());
  if (from.dtype() == DType::kString) {
    auto width = static_cast<std::size_t>(from.shape().row_elements());
    auto all = from.string_values();
    std::vector<std::string> picked;
    picked.reserve(rows.size() * width);
    for (auto row : rows)
      for (std::size_t i = 0; i < width; ++i)
        picked.push_back(all[static_cast<std::size_t>(row) * width + i]);
    return Tensor::strings(from.shape().with_dim(0, count), std::move(picked));
  }
  Tensor to = like(from, count);
  auto bytes = static_cast<std::size_t>(from.shape().row_elements()) * dtype_bytes(from.dtype());
  std::byte* out = to.mutable_raw();
  auto copy = [&]<std::size_t kBytes>() {  // a constant size becomes one move instruction
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(out + i * kBytes, from.raw() + static_cast<std::size_t>(rows[i]) * kBytes,
                  kBytes);
  };
  if (bytes == 4) {
    copy.operator()<4>();
  } else if (bytes == 8) {
    copy.operator()<8>();
  } else {
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(out + i * bytes, from.raw() + static_cast<std::size_t>(rows[i]) * bytes, bytes);
  }
  return to;
}

// Columns of fixed size are joined as bytes.
Tensor concat_rows(const std::vector<Tensor>& parts) {
  std::int64_t rows = 0;
  for (const auto& part : parts) {
    if (part.shape().without_front() != parts.front().shape().without_front())
      throw InvalidArgumentError(
          str("a batch of elements of different shapes: first ",
              parts.front().shape().without_front().to_string(), ", element ", rows, " ",
              part.shape().without_front().to_string(), "; use padded_batch()"));
    rows += part.shape()[0];
  }
  if (parts.front().dtype() == DType::kString) {
    std::vector<std::string> all;
    for (const auto& part : parts)
      all.insert(all.end(), part.string_values().begin(), part.string_values().end());
    return Tensor::strings(parts.front().shape().with_dim(0, rows), std::move(all));
  }
  Tensor to = like(parts.front(), rows);
  std::byte* out = to.mutable_raw();
  for (const auto& part : parts) {
    std::memcpy(out, part.raw(), part.bytes());
    out += part.bytes();
  }
  return to;
}

// The values that `splits` refer to, and the splits counted from their beginning.
std::pair<Tensor, Tensor> from_zero(const Tensor& values, const Tensor& splits) {
  auto at = splits.values<std::int64_t>();
  if (at.front() == 0 && at.back() == values.shape()[0]) return {values, splits};
  Tensor moved(DType::kInt64, splits.shape());
  for (std::size_t i = 0; i < at.size(); ++i)
    moved.mutable_values<std::int64_t>()[i] = at[i] - at.front();
  return {values.rows(at.front(), at.back()), moved};
}

// Rows of a ragged column: the places of all their values are listed first, so that gather_rows()
// can do the copying for every dtype.
std::pair<Tensor, Tensor> select_ragged(const Tensor& values, const Tensor& splits,
                                        std::span<const std::int64_t> rows) {
  auto at = splits.values<std::int64_t>();
  Tensor picked_splits(DType::kInt64, {static_cast<std::int64_t>(rows.size()) + 1});
  auto out = picked_splits.mutable_values<std::int64_t>();
  std::vector<std::int64_t> places;
  out[0] = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto row = static_cast<std::size_t>(rows[i]);
    for (auto place = at[row]; place < at[row + 1]; ++place) places.push_back(place);
    out[i + 1] = static_cast<std::int64_t>(places.size());
  }
  return {gather_rows(values, places), picked_splits};
}

Tensor concat_splits(const std::vector<Tensor>& parts, std::int64_t rows) {
  // of parts that begin at 0
  Tensor to(DType::kInt64, {rows + 1});
  auto out = to.mutable_values<std::int64_t>();
  std::int64_t base = 0;
  std::size_t at = 0;
  out[at++] = 0;
  for (const auto& part : parts) {
    auto splits = part.values<std::int64_t>();
    for (std::size_t i = 1; i < splits.size(); ++i) out[at++] = base + splits[i];
    base += splits.back();
  }
  return to;
}

// Columns of a batch are aligned to 8 bytes; a slice of a longer column may lie anywhere.
Tensor aligned(Tensor column) {
  bool misaligned =
      column.dtype() != DType::kString && reinterpret_cast<std::uintptr_t>(column.raw()) % 8 != 0;
  return misaligned ? column.clone() : column;
}

}  // namespace

BlockLayout::BlockLayout(const ElementSpec& spec) : columns(spec.columns.size()) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < spec.columns.size(); ++i) places[spec.columns[i].name] = i;
  for (std::size_t i = 0; i < spec.columns.size(); ++i) {
    auto splits = places.find(spec.columns[i].name + kRowSplits);
    if (splits == places.end()) continue;
    columns[i] = {Role::kRaggedValues, splits->second};
    columns[splits->second] = {Role::kRowSplits, i};
  }
}

bool has_known_shapes(const ElementSpec& spec) {
  const BlockLayout layout(spec);
  for (std::size_t i = 0; i < spec.columns.size(); ++i)
    if (layout.columns[i].role == Role::kDense && !spec.columns[i].type.shape.known()) return false;
  return true;
}

Block Block::packed(std::shared_ptr<const BlockLayout> layout, std::int64_t size,
                    std::vector<Tensor> columns) {
  Block block;
  block.size_ = size;
  block.layout_ = std::move(layout);
  block.columns_ = std::move(columns);
  return block;
}

Block Block::of(Element element) {
  Block block;
  block.size_ = 1;
  block.elements_.push_back(std::move(element));
  return block;
}

Block Block::of(std::vector<Element> batches) {
  Block block;
  block.size_ = static_cast<std::int64_t>(batches.size());
  block.elements_ = std::move(batches);
  return block;
}

// For limits on what a batch or a shuffle may hold. Strings count with their objects; blocks that
// share memory count each for themselves.
std::size_t Block::bytes() const {
  auto of = [](const Tensor& tensor) {
    if (tensor.dtype() != DType::kString) return tensor.bytes();
    std::size_t bytes = 0;
    for (const std::string& one : tensor.string_values()) bytes += sizeof one + one.size();
    return bytes;
  };
  std::size_t bytes = 0;
  for (const Tensor& column : columns_) bytes += of(column);
  for (const Element& element : elements_)
    for (const Tensor& column : element) bytes += of(column);
  return bytes;
}

// The values of a ragged column stay whole, and only the splits are cut: a slice is then no copy. A
// slice of n rows has n + 1 splits.
Block Block::slice(std::int64_t begin, std::int64_t end) const {
  if (begin == 0 && end == size_) return *this;
  Block part;
  part.size_ = end - begin;
  part.layout_ = layout_;
  if (!elements_.empty()) part.elements_.assign(elements_.begin() + begin, elements_.begin() + end);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    Role role = layout_->columns[i].role;
    part.columns_.push_back(
        role == Role::kRaggedValues
            ? columns_[i]
            : columns_[i].rows(begin, role == Role::kRowSplits ? end + 1 : end));
  }
  return part;
}

Block Block::select(std::span<const std::int64_t> rows) const {
  Block picked;
  picked.size_ = static_cast<std::int64_t>(rows.size());
  picked.layout_ = layout_;
  if (!elements_.empty())
    for (auto row : rows) picked.elements_.push_back(elements_[static_cast<std::size_t>(row)]);
  picked.columns_.resize(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const auto& column = layout_->columns[i];
    if (column.role == Role::kDense) {
      picked.columns_[i] = gather_rows(columns_[i], rows);
    } else if (column.role == Role::kRaggedValues) {
      std::tie(picked.columns_[i], picked.columns_[column.partner]) =
          select_ragged(columns_[i], columns_[column.partner], rows);
    }
  }
  return picked;
}

// Splits are joined together with their values, which is why they are passed over when they come up
// themselves.
Block Block::concat(std::vector<Block> parts) {
  if (parts.empty()) return {};
  if (parts.size() == 1) return std::move(parts.front());
  const bool loose = !parts.front().elements_.empty();
  if (std::ranges::any_of(parts,
                          [loose](const Block& part) { return part.elements_.empty() == loose; }))
    for (Block& part : parts) part = part.loosen();
  Block all;
  all.layout_ = parts.front().layout_;
  for (auto& part : parts) {
    all.size_ += part.size_;
    for (auto& element : part.elements_) all.elements_.push_back(std::move(element));
  }
  all.columns_.resize(parts.front().columns_.size());
  for (std::size_t i = 0; i < all.columns_.size(); ++i) {
    const auto& column = all.layout_->columns[i];
    if (column.role == Role::kRowSplits) continue;  // made beside its values
    std::vector<Tensor> pieces, splits;
    for (const auto& part : parts) {
      pieces.push_back(part.columns_[i]);
      if (column.role != Role::kRaggedValues) continue;
      splits.emplace_back();
      std::tie(pieces.back(), splits.back()) =
          from_zero(part.columns_[i], part.columns_[column.partner]);
    }
    all.columns_[i] = concat_rows(pieces);
    if (column.role == Role::kRaggedValues)
      all.columns_[column.partner] = concat_splits(splits, all.size_);
  }
  return all;
}

Element Block::element(std::int64_t i) const {
  if (!elements_.empty()) return elements_[static_cast<std::size_t>(i)];
  Element example = slice(i, i + 1).batch();
  for (std::size_t c = 0; c < example.size(); ++c)
    if (layout_->columns[c].role == Role::kDense)
      example[c] = example[c].reshaped(example[c].shape().without_front());
  return example;
}

Block Block::pack(const std::shared_ptr<const BlockLayout>& layout) const {
  if (elements_.empty()) return *this;
  std::vector<Block> rows;
  for (const Element& element : elements_) {
    std::vector<Tensor> columns = element;
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (layout->columns[i].role == Role::kDense)
        columns[i] = columns[i].reshaped(columns[i].shape().with_front(1));
    rows.push_back(packed(layout, 1, std::move(columns)));
  }
  return concat(std::move(rows));
}

Block Block::loosen() const {
  if (!elements_.empty()) return *this;
  std::vector<Element> all;
  for (std::int64_t i = 0; i < size_; ++i) all.push_back(element(i));
  return of(std::move(all));
}

Block Block::trimmed() const {
  Block all = *this;
  for (std::size_t i = 0; i < all.columns_.size(); ++i) {
    const auto& column = layout_->columns[i];
    if (column.role == Role::kRaggedValues)
      std::tie(all.columns_[i], all.columns_[column.partner]) =
          from_zero(all.columns_[i], all.columns_[column.partner]);
  }
  return all;
}

Element Block::batch() const {
  CAIRN_CHECK(elements_.empty(), "a batch of batches");
  Element all = trimmed().columns_;
  for (auto& column : all) column = aligned(std::move(column));
  return all;
}

}  // namespace cairn
