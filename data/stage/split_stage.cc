#include <charconv>
#include <string_view>

#include "data/dataset/dataset_calls.h"
#include "data/dataset/hash_split.h"
#include "data/dataset/stage.h"
#include "data/feature/hash.h"

namespace cairn {
namespace {

// Makes a value's place independent of the bucket that a hashed feature puts it in.
constexpr std::uint64_t kOfSplits = 0x73706C6974;

double place_of(std::string_view text) {
  return static_cast<double>(cross_hash(kOfSplits, text_hash(text)) >> 11) * 0x1p-53;
}

template <typename T, typename Visit>
void each_number(const Tensor& column, Visit visit) {
  for (const T value : column.values<T>()) {
    char text[24];
    const auto end = std::to_chars(text, text + sizeof text, static_cast<std::int64_t>(value)).ptr;
    visit(place_of({text, static_cast<std::size_t>(end - text)}));
  }
}

// Calls visit(place) for each value.
template <typename Visit>
void each_place(const Tensor& column, Visit visit) {
  switch (column.dtype()) {
    case DType::kInt32: return each_number<std::int32_t>(column, visit);
    case DType::kInt64: return each_number<std::int64_t>(column, visit);
    case DType::kUint8: return each_number<std::uint8_t>(column, visit);
    case DType::kBool: return each_number<bool>(column, visit);
    default:
      for (const std::string& text : column.string_values()) visit(place_of(text));
  }
}

class HashSplitStage final : public StageOver {
 public:
  HashSplitStage(StagePtr input, const StageSpec& spec)
      : StageOver(std::move(input)),
        split_(std::get<HashSplitSpec>(spec.kind)),
        column_(spec.element.find(split_.column)) {}

  // An element taken from below either goes on or is left out for good, so the state stays exact.
  Block next(std::int64_t most) override {
    for (;;) {
      Block block = input_->next(most);
      if (block.empty()) return block;
      choose(block);
      if (static_cast<std::int64_t>(rows_.size()) == block.size()) return block;
      if (!rows_.empty()) return block.select(rows_);
    }
  }

 private:
  void choose(const Block& block) {
    rows_.clear();
    std::int64_t row = 0;
    const auto look = [&](double place) {
      if (place >= split_.begin && place < split_.end) rows_.push_back(row);
      ++row;
    };
    if (block.columns().empty())
      for (const Element& element : block.elements()) each_place(element[column_], look);
    else
      each_place(block.columns()[column_], look);
  }

  const HashSplitSpec split_;
  const std::size_t column_;
  std::vector<std::int64_t> rows_;
};

}  // namespace

Dataset hash_split(const Dataset& dataset, std::string column, double begin, double end) {
  const StageSpec& below = input_of(dataset, "hash_split");
  if (below.batched())
    throw InvalidArgumentError("hash_split() chooses examples: put it before batch()");
  if (!(begin >= 0 && begin < end && end <= 1))  // not so if one is NaN
    throw InvalidArgumentError(
        str("hash_split: ", begin, " to ", end, " is no range within 0 to 1"));
  const TensorType& type = below.element.columns[below.element.find(column)].type;
  const bool hashable = type.dtype == DType::kString || type.dtype == DType::kInt32 ||
                        type.dtype == DType::kInt64 || type.dtype == DType::kUint8 ||
                        type.dtype == DType::kBool;
  if (type.shape.rank() > 0 || !hashable)
    throw InvalidArgumentError(str("hash_split: \"", column, "\" is ", type.to_string(),
                                   "; a column of one text or whole number is wanted"));
  return same_elements(dataset, "hash_split", HashSplitSpec{std::move(column), begin, end});
}

StagePtr make_hash_split_stage(StagePtr input, const StageSpec& spec) {
  return std::make_unique<HashSplitStage>(std::move(input), spec);
}

}  // namespace cairn
