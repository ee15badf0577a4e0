// SeenCandidates: the distinct candidates so far, by their names, which are numbers or texts.
//   Thread  one.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_set>

#include "core/graph/ops.h"
#include "core/tensor/tensor.h"

namespace cairn::tools {

// Whole numbers of any width as one.
inline Tensor candidate_names(const Tensor& column) {
  if (column.dtype() == DType::kString || column.dtype() == DType::kInt64) return column;
  return cast(Array(column), DType::kInt64).eval();
}

class SeenCandidates {
 public:
  // Whether row `row` of the names is the first of its candidate.
  bool add(const Tensor& names, std::size_t row) {
    if (names.dtype() != DType::kString)
      return numbers_.insert(names.values<std::int64_t>()[row]).second;
    const std::string& text = names.string_values()[row];
    if (!texts_.insert(text).second) return false;
    text_bytes_ += text.size();
    return true;
  }
  std::int64_t count() const { return static_cast<std::int64_t>(numbers_.size() + texts_.size()); }
  std::uint64_t text_bytes() const { return text_bytes_; }

 private:
  std::unordered_set<std::int64_t> numbers_;
  std::unordered_set<std::string> texts_;
  std::uint64_t text_bytes_ = 0;
};

}  // namespace cairn::tools
