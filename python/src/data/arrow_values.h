// The values of Arrow's arrays, as Cairn has them.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "arrow.h"
#include "core/tensor/tensor.h"
#include "tables.h"

namespace cairn::python {

// Numbers of a buffer, which may begin at any byte.
template <typename T>
struct ArrowNumbers {
  const std::byte* bytes = nullptr;
  T operator[](std::int64_t i) const {
    T value;
    std::memcpy(&value, bytes + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return value;
  }
};

// Elements [offset, offset + length) of an array's buffers.
struct ArrowSlice {
  const ArrowSchema* schema = nullptr;
  const ArrowArray* array = nullptr;
  std::int64_t offset = 0, length = 0;

  // The same elements of a child.
  //   Errors  InvalidArgument: the child is shorter.
  ArrowSlice child(std::int64_t i, std::int64_t from, std::int64_t count) const;
  bool may_have_nulls() const;
  bool is_null(std::int64_t i) const;
  // The first null; -1: none.
  std::int64_t first_null() const;
  // Buffer i, which an array with elements must have, from its beginning.
  const std::byte* buffer(std::int64_t i) const;
  // The same from the slice's first number on.
  template <typename T>
  ArrowNumbers<T> numbers(std::int64_t i) const {
    return {buffer(i) + offset * static_cast<std::int64_t>(sizeof(T))};
  }
};

// The column that an Arrow type becomes.
struct ArrowType {
  enum class Lists : std::uint8_t { kNone, kRagged, kFixed };
  Lists lists = Lists::kNone;
  bool wide_offsets = false;  // of large_list
  std::int64_t width = 1;     // of kFixed
  DType dtype = DType::kFloat32;
  bool as_it_lies = false;  // the numbers lie in Arrow's buffer as in Cairn's
};
//   Errors  InvalidArgument: a type that Cairn has not; names it, the column and the cure.
ArrowType arrow_type_of(const ArrowSchema& schema, const std::string& column);

// A null that no default stands for, by its place in the slice.
struct ArrowNull {
  std::int64_t place;
};
// Where values go: one of the two, by dtype.
struct ArrowTarget {
  DType dtype = DType::kFloat32;
  std::byte* numbers = nullptr;
  std::string* texts = nullptr;
  ArrowTarget from(std::int64_t place) const;
};
// Reads a slice of plain values or of a dictionary's codes. `standing_in`: for nulls; undefined:
// ArrowNull is thrown for the first.
//   Errors  InvalidArgument: damage, and numbers beyond int64.
void read_arrow_values(const ArrowSlice& slice, const ArrowTarget& target,
                       const Tensor& standing_in, const std::string& column);

// Runs over pieces of [0, count), of at least a quarter million each, on several threads.
void in_pieces(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& run);

}  // namespace cairn::python
