// padded_batch(): examples of different lengths in one batch, filled up to the longest.
#include <algorithm>
#include <cstring>

#include "data/dataset/stage.h"

namespace cairn {
namespace {

// A column of one example, or of several that are packed together: `shape` is of all of them.
struct Part {
  Tensor values;
  Shape shape;
};

// Copies the part's rows into `to`, from row `row` on, cell by cell of the first dimensions and
// elements of the last one at once.
class Filler {
 public:
  Filler(DType dtype, Shape shape) : shape_(std::move(shape)), dtype_(dtype) {
    const auto elements = static_cast<std::size_t>(shape_.elements());
    if (dtype == DType::kString) {
      texts_.resize(elements);
    } else {
      tensor_ = Tensor(dtype, shape_);
      if (tensor_.bytes() > 0) std::memset(tensor_.mutable_raw(), 0, tensor_.bytes());
    }
  }
  void put(const Part& part, std::int64_t row) {
    const std::int64_t to = row * shape_.row_elements();
    std::int64_t from = 0;
    for (std::int64_t i = 0; i < part.shape[0]; ++i)
      copy(part, 1, from, to + i * shape_.row_elements());
  }
  Tensor done() && {
    return dtype_ == DType::kString ? Tensor::strings(shape_, std::move(texts_))
                                    : std::move(tensor_);
  }

 private:
  static std::int64_t elements_from(const Shape& shape, int axis) {
    std::int64_t all = 1;
    for (; axis < shape.rank(); ++axis) all *= shape[axis];
    return all;
  }
  void copy(const Part& part, int axis, std::int64_t& from, std::int64_t to) {
    if (axis + 1 >= shape_.rank()) {
      const std::int64_t count = axis < shape_.rank() ? part.shape[axis] : 1;
      copy_run(part.values, from, to, count);
      from += count;
      return;
    }
    for (std::int64_t i = 0; i < part.shape[axis]; ++i)
      copy(part, axis + 1, from, to + i * elements_from(shape_, axis + 1));
  }
  void copy_run(const Tensor& values, std::int64_t from, std::int64_t to, std::int64_t count) {
    if (count == 0) return;
    if (dtype_ == DType::kString) {
      const auto all = values.string_values();
      std::copy_n(all.begin() + from, count, texts_.begin() + to);
      return;
    }
    const auto width = static_cast<std::int64_t>(dtype_bytes(dtype_));
    std::memcpy(tensor_.mutable_raw() + to * width, values.raw() + from * width,
                static_cast<std::size_t>(count * width));
  }
  Shape shape_;
  DType dtype_;
  Tensor tensor_;
  std::vector<std::string> texts_;
};

class PaddedBatchStage final : public StageOver {
 public:
  PaddedBatchStage(StagePtr input, const StageSpec& spec, std::size_t bytes_max)
      : StageOver(std::move(input)),
        spec_(std::get<PaddedBatchSpec>(spec.kind)),
        layout_(std::make_shared<const BlockLayout>(spec.input->element)),
        bytes_max_(bytes_max) {}

  Block next(std::int64_t) override {
    std::vector<Block> parts;
    std::int64_t size = 0;
    std::size_t bytes = 0;
    while (size < spec_.n) {
      Block part = input_->next(std::min<std::int64_t>(spec_.n - size, 1 << 16));
      if (part.empty()) break;
      size += part.size();
      bytes += part.bytes();
      check_bytes(bytes);
      add(parts, part);
    }
    if (size == 0 || (size < spec_.n && spec_.drop_remainder)) return {};
    Element batch;
    for (std::size_t i = 0; i < layout_->columns.size(); ++i)
      if (layout_->columns[i].role != BlockLayout::Role::kRowSplits)
        batch.push_back(padded(column_of(parts, i), size));
    return Block::of(std::move(batch));
  }

 private:
  // Loose examples one by one, as their shapes may differ.
  void add(std::vector<Block>& parts, const Block& part) const {
    if (part.elements().empty()) return parts.push_back(part.trimmed());
    for (const Element& example : part.elements())
      parts.push_back(Block::of(example).pack(layout_));
  }
  void check_bytes(std::size_t bytes) const {
    if (bytes > bytes_max_)
      throw ResourceExhaustedError(str("a padded batch of ", spec_.n, " examples takes more than ",
                                       bytes_max_, " bytes; make it smaller"));
  }
  std::vector<Part> column_of(const std::vector<Block>& blocks, std::size_t at) const {
    std::vector<Part> parts;
    const bool ragged = layout_->columns[at].role == BlockLayout::Role::kRaggedValues;
    for (const Block& block : blocks) {
      const Tensor& values = block.columns()[at];
      if (!ragged) {
        parts.push_back({values, values.shape()});
        continue;
      }
      const auto splits = block.columns()[layout_->columns[at].partner].values<std::int64_t>();
      for (std::size_t row = 0; row + 1 < splits.size(); ++row)
        parts.push_back({values.rows(splits[row], splits[row + 1]),
                         values.shape().with_dim(0, splits[row + 1] - splits[row]).with_front(1)});
    }
    return parts;
  }
  Tensor padded(const std::vector<Part>& parts, std::int64_t size) const {
    Shape shape = parts.front().shape.with_dim(0, size);
    for (const Part& part : parts)
      for (int axis = 1; axis < shape.rank(); ++axis)
        shape = shape.with_dim(axis, std::max(shape[axis], part.shape[axis]));
    const DType dtype = parts.front().values.dtype();
    const auto width = std::max<std::size_t>(dtype_bytes(dtype), 1);
    std::size_t bytes = width;
    for (const std::int64_t dim : shape.dims()) {
      if (dim > 0 && bytes > bytes_max_ / static_cast<std::size_t>(dim)) check_bytes(SIZE_MAX);
      bytes *= static_cast<std::size_t>(dim);
    }
    Filler filler(dtype, shape);
    std::int64_t row = 0;
    for (const Part& part : parts) {
      filler.put(part, row);
      row += part.shape[0];
    }
    return std::move(filler).done();
  }

  const PaddedBatchSpec spec_;
  const std::shared_ptr<const BlockLayout> layout_;
  const std::size_t bytes_max_;
};

}  // namespace

StagePtr make_padded_batch_stage(StagePtr input, const StageSpec& spec, std::size_t bytes_max) {
  return std::make_unique<PaddedBatchStage>(std::move(input), spec, bytes_max);
}

}  // namespace cairn
