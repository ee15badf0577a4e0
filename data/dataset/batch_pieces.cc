#include "data/dataset/batch_pieces.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "data/dataset/stage_spec.h"

namespace cairn {
namespace {

bool is_splits(const ColumnSpec& column) { return column.name.ends_with(kRowSplits); }

// The column that says where each example's values of `column` begin; -1: it has a value for each
// example.
std::ptrdiff_t splits_of(const ElementSpec& spec, const ColumnSpec& column) {
  const std::string name = column.name + kRowSplits;
  auto found = std::find_if(spec.columns.begin(), spec.columns.end(),
                            [&](const ColumnSpec& each) { return each.name == name; });
  return found == spec.columns.end() ? -1 : found - spec.columns.begin();
}

bool is_of_examples(const ElementSpec& spec, const ColumnSpec& column) {
  return !is_splits(column) && splits_of(spec, column) < 0;
}

Tensor cut_splits(const Tensor& splits, std::int64_t begin, std::int64_t end) {
  const Tensor own = splits.rows(begin, end + 1);
  Tensor moved(DType::kInt64, own.shape());
  const auto from = own.values<std::int64_t>();
  std::transform(from.begin(), from.end(), moved.mutable_values<std::int64_t>().begin(),
                 [&](std::int64_t at) { return at - from[0]; });
  return moved;
}

}  // namespace

// A ragged column has as many values as its examples have together, so its splits are asked first.
std::int64_t batch_size(const ElementSpec& spec, const Element& batch) {
  for (std::size_t i = 0; i < spec.columns.size(); ++i)
    if (is_splits(spec.columns[i])) return batch[i].shape()[0] - 1;
  return batch.at(0).shape()[0];
}

// Pieces share the batch's memory, but for splits, which begin at 0 in each piece, and strings.
Element cut_batch(const ElementSpec& spec, const Element& batch, std::int64_t begin,
                  std::int64_t end) {
  Element piece;
  for (std::size_t i = 0; i < spec.columns.size(); ++i) {
    if (is_splits(spec.columns[i])) {
      piece.push_back(cut_splits(batch[i], begin, end));
      continue;
    }
    const std::ptrdiff_t splits = splits_of(spec, spec.columns[i]);
    if (splits < 0) {
      piece.push_back(batch[i].rows(begin, end));
      continue;
    }
    const auto at = batch[static_cast<std::size_t>(splits)].values<std::int64_t>();
    piece.push_back(
        batch[i].rows(at[static_cast<std::size_t>(begin)], at[static_cast<std::size_t>(end)]));
  }
  return piece;
}

std::vector<Element> cut_in_pieces(const ElementSpec& spec, const Element& batch,
                                   std::int64_t count) {
  const std::int64_t size = batch_size(spec, batch), piece = (size + count - 1) / count;
  std::vector<Element> pieces;
  for (std::int64_t i = 0; i < count; ++i)
    pieces.push_back(
        cut_batch(spec, batch, std::min(size, i * piece), std::min(size, (i + 1) * piece)));
  return pieces;
}

// Dimensions that may have any size have none, as in the reference.
Element empty_batch(const ElementSpec& spec) {
  Element batch;
  for (const ColumnSpec& column : spec.columns) {
    if (is_splits(column)) {
      batch.push_back(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{0}));
      continue;
    }
    Shape shape = column.type.shape.with_dim(0, 0);
    for (int axis = 1; axis < shape.rank(); ++axis)
      if (shape[axis] == Shape::kUnknown) shape = shape.with_dim(axis, 0);
    batch.push_back(column.type.dtype == DType::kString
                        ? Tensor::strings(shape, std::vector<std::string>{})
                        : Tensor(column.type.dtype, shape));
  }
  return batch;
}

bool has_fixed_size(const ElementSpec& batches) {
  return std::ranges::any_of(batches.columns, [&](const ColumnSpec& column) {
    return is_of_examples(batches, column) && column.type.shape[0] != Shape::kUnknown;
  });
}

ElementSpec pieces_spec(const ElementSpec& batches, std::int64_t count) {
  ElementSpec pieces = any_size_spec(batches);
  for (std::size_t i = 0; i < pieces.columns.size(); ++i) {
    const ColumnSpec& whole = batches.columns[i];
    const std::int64_t size = whole.type.shape[0];
    if (is_of_examples(batches, whole) && size != Shape::kUnknown && size % count == 0)
      pieces.columns[i].type.shape = whole.type.shape.with_dim(0, size / count);
  }
  return pieces;
}

ElementSpec rebatched_spec(const ElementSpec& batches, const std::vector<std::int64_t>& sizes,
                           bool drop_remainder) {
  ElementSpec rebatched = any_size_spec(batches);
  const std::int64_t size = sizes.front();
  if (!std::ranges::all_of(sizes, [&](std::int64_t each) { return each == size; }))
    return rebatched;
  for (std::size_t i = 0; i < rebatched.columns.size(); ++i) {
    const ColumnSpec& whole = batches.columns[i];
    const std::int64_t from = whole.type.shape[0];
    const bool fits = drop_remainder || (from != Shape::kUnknown && from % size == 0);
    if (is_of_examples(batches, whole) && fits)
      rebatched.columns[i].type.shape = whole.type.shape.with_dim(0, size);
  }
  return rebatched;
}

ElementSpec any_size_spec(const ElementSpec& batches) {
  ElementSpec any = batches;
  for (ColumnSpec& column : any.columns)
    column.type.shape = column.type.shape.with_dim(0, Shape::kUnknown);
  return any;
}

}  // namespace cairn
