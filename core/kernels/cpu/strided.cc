#include "core/kernels/cpu/strided.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"

namespace cairn {
namespace {

// Joins neighbouring axes that are one run in the source, so that the inner loop is as long as can
// be: a transposition of whole matrices within a batch, or a bias stretched over all rows, ends in
// two axes whatever the rank was. An axis joins the one before it where a step of that one is as
// far as the whole of this one; stretched axes have stride 0 and join each other by the same rule.
// Axes of size 1 are dropped.
StridedCopy joined(const std::vector<std::int64_t>& dims,
                   const std::vector<std::int64_t>& strides) {
  StridedCopy made;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (!made.dims.empty() && made.strides.back() == strides[i] * dims[i]) {
      made.dims.back() *= dims[i];
      made.strides.back() = strides[i];
    } else {
      made.dims.push_back(dims[i]);
      made.strides.push_back(strides[i]);
    }
  }
  if (made.dims.empty()) {
    made.dims.push_back(1);
    made.strides.push_back(0);
  }
  return made;
}

std::vector<std::int64_t> row_major(const Shape& shape) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(shape.rank()), 1);
  for (int i = shape.rank() - 2; i >= 0; --i)
    strides[static_cast<std::size_t>(i)] = strides[static_cast<std::size_t>(i) + 1] * shape[i + 1];
  return strides;
}

// The innermost axis: contiguous, stretched, or a column.
template <typename T>
void copy_run(const T* from, std::int64_t stride, T* to, std::int64_t n) {
  if (stride == 1)
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  else if (stride == 0)
    std::fill_n(to, n, *from);
  else
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
}

// Begins anywhere in the output, because an elementwise tree asks for its inputs block by block
// (core/exec/fused.h). The index of the first element is found by division once; from there it is
// counted up like an odometer, and `offset` moves along with it.
template <typename T>
void copy(const StridedCopy& s, const T* from, T* to, std::int64_t begin, std::int64_t count) {
  if (count == 0) return;  // some dimension may be 0
  std::size_t rank = s.dims.size(), last = rank - 1;
  std::int64_t index[32];
  CAIRN_CHECK(rank <= 32, "rank ", rank);
  std::int64_t rest = begin, offset = 0;
  for (std::size_t i = rank; i-- > 0;) {
    index[i] = rest % s.dims[i];
    rest /= s.dims[i];
    offset += index[i] * s.strides[i];
  }
  while (count > 0) {
    std::int64_t n = std::min(count, s.dims[last] - index[last]);
    copy_run(from + offset, s.strides[last], to, n);
    to += n;
    count -= n;
    offset -= index[last] * s.strides[last];
    index[last] = 0;
    for (std::size_t i = last; i-- > 0;) {  // carry into the axes before
      offset += s.strides[i];
      if (++index[i] < s.dims[i]) break;
      offset -= s.dims[i] * s.strides[i];
      index[i] = 0;
    }
  }
}

}  // namespace

// Shapes are aligned at their last axis; what is missing in front, or is 1, has stride 0.
StridedCopy StridedCopy::broadcast(const Shape& from, const Shape& to) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(to.rank()), 0), own = row_major(from);
  for (int i = 0; i < from.rank(); ++i) {
    auto axis = static_cast<std::size_t>(i + to.rank() - from.rank());
    if (from[i] != 1) strides[axis] = own[static_cast<std::size_t>(i)];
  }
  return joined(to.dims(), strides);
}

StridedCopy StridedCopy::transpose(const Shape& from,
                                   const std::vector<std::int64_t>& permutation) {
  std::vector<std::int64_t> dims, strides, own = row_major(from);
  for (auto axis : permutation) {
    dims.push_back(from[static_cast<int>(axis)]);
    strides.push_back(own[static_cast<std::size_t>(axis)]);
  }
  return joined(dims, strides);
}

void StridedCopy::run(const std::byte* from, std::byte* to, std::int64_t begin, std::int64_t count,
                      std::size_t width) const {
  switch (width) {
    case 1:
      return copy(*this, reinterpret_cast<const std::uint8_t*>(from),
                  reinterpret_cast<std::uint8_t*>(to), begin, count);
    case 2:
      return copy(*this, reinterpret_cast<const std::uint16_t*>(from),
                  reinterpret_cast<std::uint16_t*>(to), begin, count);
    case 4:
      return copy(*this, reinterpret_cast<const std::uint32_t*>(from),
                  reinterpret_cast<std::uint32_t*>(to), begin, count);
    case 8:
      return copy(*this, reinterpret_cast<const std::uint64_t*>(from),
                  reinterpret_cast<std::uint64_t*>(to), begin, count);
    default: CAIRN_CHECK(false, "elements of ", width, " bytes");
  }
}

}  // namespace cairn
