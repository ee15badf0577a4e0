#include "coordinator/dealt_iterator.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace cairn {
namespace {

constexpr std::string_view kSplits = "/row_splits";

bool is_splits(const ColumnSpec& column) { return column.name.ends_with(kSplits); }

// The column that says where each example's values of `column` begin; -1: it has a value for each
// example.
std::ptrdiff_t splits_of(const ElementSpec& spec, const ColumnSpec& column) {
  const std::string name = column.name + std::string(kSplits);
  auto found = std::find_if(spec.columns.begin(), spec.columns.end(),
                            [&](const ColumnSpec& each) { return each.name == name; });
  return found == spec.columns.end() ? -1 : found - spec.columns.begin();
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

// Dimensions that may have any size have none, as in the reference.
Element empty_batch(const ElementSpec& spec) {
  Element batch;
  for (const ColumnSpec& column : spec.columns) {
    Shape shape = column.type.shape.with_dim(0, is_splits(column) ? 1 : 0);
    for (int axis = 1; axis < shape.rank(); ++axis)
      if (shape[axis] == Shape::kUnknown) shape = shape.with_dim(axis, 0);
    batch.push_back(column.type.dtype == DType::kString
                        ? Tensor::strings(shape, std::vector<std::string>{})
                        : Tensor(column.type.dtype, shape));
  }
  return batch;
}

// A piece may have any size, but where every batch has one that divides evenly.
DealtIterator::DealtIterator(const Dataset& dataset, Deal deal, int replicas, Offload& offload)
    : whole_(dataset.element_spec()), spec_(whole_), deal_(deal), replicas_(replicas) {
  if (!dataset.batched())
    throw InvalidArgumentError(
        "the dataset's elements are single examples, which cannot be dealt out to several "
        "replicas: "
        "batch() it, by the global batch size");
  for (std::size_t i = 0; i < spec_.columns.size(); ++i) {
    TensorType& type = spec_.columns[i].type;
    const bool of_examples =
        !is_splits(whole_.columns[i]) && splits_of(whole_, whole_.columns[i]) < 0;
    fixed_size_ = fixed_size_ || (of_examples && type.shape[0] != Shape::kUnknown);
    if (deal_ == Deal::kInTurn || type.shape[0] == Shape::kUnknown) continue;
    const bool even = deal_ == Deal::kCut && of_examples && type.shape[0] % replicas_ == 0;
    type.shape = type.shape.with_dim(0, even ? type.shape[0] / replicas_ : Shape::kUnknown);
  }
  iterator_ = open(dataset, {}, {.offload = &offload});
}

std::vector<Element> DealtIterator::next() const { return deal_ == Deal::kCut ? cut() : in_turn(); }

namespace {

OutOfRangeError end_of_data(const DatasetIterator& iterator) {
  return OutOfRangeError(str("the data ended after ", iterator.ordinal(), " batches"));
}

}  // namespace

// tf.data's legacy rebatching: ceil(size / replicas) each, so that the first replicas are full and
// the last ones may have nothing. A short last batch is cut by its own size.
std::vector<Element> DealtIterator::cut() const {
  const auto batch = iterator_->next();
  if (!batch) throw end_of_data(*iterator_);
  const std::int64_t size = batch_size(whole_, *batch);
  const std::int64_t piece = (size + replicas_ - 1) / replicas_;
  std::vector<Element> pieces;
  for (std::int64_t i = 0; i < replicas_; ++i)
    pieces.push_back(
        cut_batch(whole_, *batch, std::min(size, i * piece), std::min(size, (i + 1) * piece)));
  return pieces;
}

// An empty batch is cut off a full one, which has the right columns and inner dimensions.
std::vector<Element> DealtIterator::in_turn() const {
  std::vector<Element> elements;
  for (int i = 0; i < replicas_; ++i) {
    auto element = iterator_->next();
    if (!element) break;
    elements.push_back(std::move(*element));
  }
  const bool fixed_size = fixed_size_ && deal_ == Deal::kInTurn;
  const bool some = !elements.empty(), all = elements.size() == static_cast<std::size_t>(replicas_);
  if (!some || (!all && fixed_size)) throw end_of_data(*iterator_);
  while (elements.size() < static_cast<std::size_t>(replicas_))
    elements.push_back(cut_batch(whole_, elements.front(), 0, 0));
  return elements;
}

}  // namespace cairn
