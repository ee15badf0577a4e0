// What a step pushes by ids: rows of equal ids become one in the host's memory.
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/base/clones.h"
#include "core/exec/step.h"
#include "core/graph/op_def.h"

namespace cairn {
namespace {

// Rows are added in the order in which they occur, so equal inputs give equal bits.
CAIRN_CLONES void sum_floats(const std::int32_t* places, std::int64_t n, std::int64_t dim,
                             const float* rows, float* sums) {
  if (dim == 1) {
    for (std::int64_t i = 0; i < n; ++i) sums[places[i]] += rows[i];
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    float* __restrict to = sums + places[i] * dim;
    const float* __restrict from = rows + i * dim;
    for (std::int64_t j = 0; j < dim; ++j) to[j] += from[j];
  }
}

// T is unsigned, since overflow is defined there: the sum wraps around.
template <typename T>
void sum_integers(const std::int32_t* places, std::int64_t n, std::int64_t dim,
                  const std::byte* rows, std::byte* sums) {
  const T* from = reinterpret_cast<const T*>(rows);
  T* to = reinterpret_cast<T*>(sums);
  for (std::int64_t i = 0; i < n * dim; ++i) to[places[i / dim] * dim + i % dim] += from[i];
}

// Rows of equal ids become one, element by element, from `first` on, which leaves any other number
// as it is.
template <typename T, typename F>
void fold_elements(const std::int32_t* places, std::int64_t n, std::int64_t dim,
                   const std::byte* rows, std::byte* folded, std::int64_t count, T first, F fold) {
  const T* from = reinterpret_cast<const T*>(rows);
  T* const to = reinterpret_cast<T*>(folded);
  std::fill_n(to, count * dim, first);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < dim; ++j) {
      T& one = to[places[i] * dim + j];
      one = fold(one, from[i * dim + j]);
    }
}

// Products of integers wrap around, so they are computed unsigned.
template <typename T, typename Unsigned = T>
void fold_rows(EqualIds how, const std::int32_t* places, std::int64_t n, std::int64_t dim,
               const std::byte* rows, std::byte* folded, std::int64_t count) {
  using Limits = std::numeric_limits<T>;
  constexpr bool kInfinite = Limits::has_infinity;
  switch (how) {
    case EqualIds::kProduct:
      return fold_elements<Unsigned>(places, n, dim, rows, folded, count, Unsigned{1},
                                     [](Unsigned a, Unsigned b) { return a * b; });
    case EqualIds::kMin:
      return fold_elements<T>(places, n, dim, rows, folded, count,
                              kInfinite ? Limits::infinity() : Limits::max(),
                              [](T a, T b) { return b < a ? b : a; });
    case EqualIds::kMax:
      return fold_elements<T>(places, n, dim, rows, folded, count,
                              kInfinite ? -Limits::infinity() : Limits::lowest(),
                              [](T a, T b) { return b > a ? b : a; });
    default: CAIRN_CHECK(false, "summed rows have a loop of their own, and the last needs none");
  }
}

void fold_rows(DType dtype, EqualIds how, const std::int32_t* places, std::int64_t n,
               std::int64_t dim, const std::byte* rows, std::byte* folded, std::int64_t count) {
  switch (dtype) {
    case DType::kFloat32: return fold_rows<float>(how, places, n, dim, rows, folded, count);
    case DType::kInt32:
      return fold_rows<std::int32_t, std::uint32_t>(how, places, n, dim, rows, folded, count);
    case DType::kInt64:
      return fold_rows<std::int64_t, std::uint64_t>(how, places, n, dim, rows, folded, count);
    default: throw UnimplementedError(str("a sparse update of rows of ", dtype_name(dtype)));
  }
}

}  // namespace

// Rows of equal ids become one as equal_ids() says: mostly their sum, in ascending order of
// occurrence.
Tensor Step::sum_rows(BoundUpdate& update, const UniqueIds& ids, const UpdateRule& rule) {
  std::int32_t value = input(update.node, 1);
  TensorType type = bound_->type(value);
  std::int64_t n = static_cast<std::int64_t>(ids.inverse().size()), dim = type.shape.row_elements();
  type.shape = type.shape.with_dim(0, static_cast<std::int64_t>(ids.unique().size()));
  std::size_t row_bytes = static_cast<std::size_t>(dim) * dtype_bytes(type.dtype);
  Tensor summed;
  if (space_.on_host) {
    auto place =
        places_.update_place(stored_variable(update.node), ids.unique().size() * row_bytes);
    std::byte* to = place != nullptr ? place.get() : arena_at(update.sums_offset);
    summed =
        Tensor::borrowed(type.dtype, type.shape, to, place != nullptr ? std::move(place) : arena_);
  } else {
    summed = host_tensor(update.node, type);
  }
  std::byte* const sums = summed.mutable_raw();
  const std::byte* const rows = on_host(value);
  const std::int32_t* places = ids.inverse().data();
  const EqualIds how = equal_ids(rule.kind);
  if (how == EqualIds::kLast) {
    for (std::int64_t i = 0; i < n; ++i)
      std::memcpy(sums + static_cast<std::size_t>(places[i]) * row_bytes,
                  rows + static_cast<std::size_t>(i) * row_bytes, row_bytes);
    return summed;
  }
  const auto count = static_cast<std::int64_t>(ids.unique().size());
  if (how != EqualIds::kSum) {
    fold_rows(type.dtype, how, places, n, dim, rows, sums, count);
    return summed;
  }
  std::memset(sums, 0, ids.unique().size() * row_bytes);
  switch (type.dtype) {
    case DType::kFloat32:
      sum_floats(places, n, dim, reinterpret_cast<const float*>(rows),
                 reinterpret_cast<float*>(sums));
      break;
    case DType::kInt32: sum_integers<std::uint32_t>(places, n, dim, rows, sums); break;
    case DType::kInt64: sum_integers<std::uint64_t>(places, n, dim, rows, sums); break;
    default: throw UnimplementedError(str("a sparse update of rows of ", dtype_name(type.dtype)));
  }
  return summed;
}

}  // namespace cairn
