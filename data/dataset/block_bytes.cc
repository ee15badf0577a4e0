// The form: packed or batches, the number of elements, then each tensor: dtype, rank, dimensions,
// and its values; a string is its length and its bytes. All numbers have 8 bytes.
//
// The reader trusts nothing: a disk may return anything, and a checksum finds accidents only. Every
// size is compared with the bytes that are left before memory is allocated for it, and row splits
// are checked because later stages index with them.
#include "data/dataset/block_bytes.h"

#include <bit>
#include <cstring>

#include "core/base/error.h"

namespace cairn {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie");

constexpr std::uint64_t kRankMax = 16;

class Writer {
 public:
  void number(std::uint64_t value) { bytes(&value, sizeof value); }
  void bytes(const void* data, std::size_t size) {
    if (size == 0) return;
    const std::size_t at = out_.size();
    out_.resize(at + size);
    std::memcpy(out_.data() + at, data, size);
  }
  void tensor(const Tensor& tensor) {
    number(static_cast<std::uint64_t>(tensor.dtype()));
    number(static_cast<std::uint64_t>(tensor.shape().rank()));
    for (std::int64_t dim : tensor.shape().dims()) number(static_cast<std::uint64_t>(dim));
    if (tensor.dtype() != DType::kString) return bytes(tensor.raw(), tensor.bytes());
    for (const std::string& text : tensor.string_values()) {
      number(text.size());
      bytes(text.data(), text.size());
    }
  }
  void tensors(const std::vector<Tensor>& all) {
    for (const Tensor& one : all) tensor(one);
  }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  void want(bool good, const char* what) const {
    if (!good) throw InvalidArgumentError(str("a block of elements is damaged: ", what));
  }
  std::uint64_t number() {
    std::uint64_t value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::span<const std::byte> take(std::uint64_t size) {
    want(size <= left_.size(), "it ends early");
    const auto taken = left_.first(static_cast<std::size_t>(size));
    left_ = left_.subspan(static_cast<std::size_t>(size));
    return taken;
  }
  Tensor tensor() {
    const std::uint64_t dtype = number(), rank = number();
    want(dtype < static_cast<std::uint64_t>(kDTypeCount) && rank <= kRankMax, "no such type");
    const auto type = static_cast<DType>(dtype);
    std::vector<std::int64_t> dims;
    std::uint64_t elements = 1;
    for (std::uint64_t i = 0; i < rank; ++i) {
      const std::uint64_t dim = number();
      want(dim <= INT32_MAX, "a dimension is too large");
      elements *= dim;
      want(elements <= (std::uint64_t{1} << 32), "it is too large");
      dims.push_back(static_cast<std::int64_t>(dim));
    }
    if (type == DType::kString) return strings(Shape(std::move(dims)), elements);
    const auto values = take(elements * dtype_bytes(type));
    Tensor made(type, Shape(std::move(dims)));
    if (!values.empty()) std::memcpy(made.mutable_raw(), values.data(), values.size());
    return made;
  }
  std::vector<Tensor> tensors(std::size_t count) {
    std::vector<Tensor> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(tensor());
    return all;
  }
  bool at_end() const { return left_.empty(); }

 private:
  // Each string takes 8 bytes at least, which bounds their number before any is made.
  Tensor strings(Shape shape, std::uint64_t count) {
    want(count <= left_.size() / 8, "it ends early");
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto text = take(number());
      texts.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
    }
    return Tensor::strings(std::move(shape), std::move(texts));
  }
  std::span<const std::byte> left_;
};

using Role = BlockLayout::Role;

// Ascending, and within their values: what every operation on ragged columns relies on.
void check_splits(const Reader& in, const Tensor& splits, const Tensor& values) {
  in.want(splits.dtype() == DType::kInt64, "row splits are not int64");
  std::int64_t last = 0;
  for (const std::int64_t at : splits.values<std::int64_t>()) {
    in.want(at >= last, "row splits do not ascend");
    last = at;
  }
  in.want(values.shape().rank() > 0 && last <= values.shape()[0],
          "row splits go beyond their values");
}

void check_rows(const Reader& in, const BlockLayout& layout, const std::vector<Tensor>& columns,
                std::int64_t rows) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const BlockLayout::Column& column = layout.columns[i];
    in.want(columns[i].shape().rank() > 0, "a column without rows");
    if (column.role == Role::kDense)
      in.want(columns[i].shape()[0] == rows, "a column of another length");
    if (column.role != Role::kRowSplits) continue;
    in.want(columns[i].shape() == Shape{rows + 1}, "row splits of another length");
    check_splits(in, columns[i], columns[column.partner]);
  }
}

enum : std::uint64_t { kPacked = 0, kBatches = 1 };

}  // namespace

std::vector<std::byte> encode(const Block& block) {
  Writer out;
  out.number(block.elements().empty() ? kPacked : kBatches);
  out.number(static_cast<std::uint64_t>(block.size()));
  out.tensors(block.columns());
  for (const Element& element : block.elements()) out.tensors(element);
  return out.take();
}

Block decode_block(std::span<const std::byte> bytes,
                   const std::shared_ptr<const BlockLayout>& layout) {
  Reader in(bytes);
  const std::uint64_t form = in.number(), size = in.number();
  in.want(form <= kBatches && size > 0 && size <= INT32_MAX, "no such form");
  Block block;
  if (form == kPacked) {
    std::vector<Tensor> columns = in.tensors(layout->columns.size());
    check_rows(in, *layout, columns, static_cast<std::int64_t>(size));
    block = Block::packed(layout, static_cast<std::int64_t>(size), std::move(columns));
  } else {
    std::vector<Element> elements;
    for (std::uint64_t i = 0; i < size; ++i) elements.push_back(in.tensors(layout->columns.size()));
    block = Block::of(std::move(elements));
  }
  in.want(in.at_end(), "bytes are left over");
  return block;
}

}  // namespace cairn
