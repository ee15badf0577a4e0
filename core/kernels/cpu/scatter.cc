// Rows changed by id, in ascending order of occurrence, so that repeated ids give the same bits in
// every run: sums are added in that order, and of several values for one row the last stays. The
// input is copied first; a graph's values are immutable.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/folds.h"

namespace cairn {
namespace {

struct Rows {
  std::int64_t bound, n, width;  // x [bound, width], rows [n, width]
};

template <template <typename> class Op, typename T, typename Id>
KernelRun scatter(Rows r) {
  return [r](const KernelCall& call) {
    const Id* ids = input_of<Id>(call, 1);
    const T* rows = input_of<T>(call, 2);
    T* out = output_of<T>(call);
    std::memcpy(out, call.inputs[0], static_cast<std::size_t>(r.bound * r.width) * sizeof(T));
    for (std::int64_t i = 0; i < r.n; ++i, rows += r.width) {
      if (ids[i] < 0 || ids[i] >= r.bound)
        throw InvalidArgumentError(
            str("id ", ids[i], " at position ", i, " is outside [0, ", r.bound, ")"));
      T* row = out + ids[i] * r.width;
      for (std::int64_t j = 0; j < r.width; ++j) row[j] = Op<T>::apply(row[j], rows[j]);
    }
  };
}

template <template <typename> class Op, typename T>
KernelRun scatter_by(const KernelTypes& types) {
  const Shape& x = types.inputs[0].shape;
  Rows r{x[0], types.inputs[1].shape[0], x.row_elements()};
  return types.inputs[1].dtype == DType::kInt32 ? scatter<Op, T, std::int32_t>(r)
                                                : scatter<Op, T, std::int64_t>(r);
}

template <template <typename> class Op>
KernelRun prepare(const KernelTypes& types) {
  switch (types.inputs[0].dtype) {
    case DType::kInt32: return scatter_by<Op, std::int32_t>(types);
    case DType::kInt64: return scatter_by<Op, std::int64_t>(types);
    default: return scatter_by<Op, float>(types);
  }
}

// Marks, for each distinct id, its last position: the gradient of scatter_update goes to the rows
// that stayed. Sorting positions by (id, position) needs no table as large as the ids' range.
template <typename Id>
KernelRun last_of_id(std::size_t n) {
  auto order = std::make_shared<std::vector<std::size_t>>(n);
  return [order](const KernelCall& call) {
    const Id* ids = input_of<Id>(call, 0);
    std::iota(order->begin(), order->end(), std::size_t{0});
    std::sort(order->begin(), order->end(), [&](std::size_t a, std::size_t b) {
      return ids[a] != ids[b] ? ids[a] < ids[b] : a < b;
    });
    auto* last = output_of<unsigned char>(call);
    for (std::size_t i = 0; i < order->size(); ++i) {
      std::size_t at = (*order)[i];
      last[at] = i + 1 == order->size() || ids[(*order)[i + 1]] != ids[at] ? 1 : 0;
    }
  };
}

KernelRun prepare_last_of_id(const KernelTypes& types) {
  auto n = static_cast<std::size_t>(types.inputs[0].shape.elements());
  return types.inputs[0].dtype == DType::kInt32 ? last_of_id<std::int32_t>(n)
                                                : last_of_id<std::int64_t>(n);
}

constexpr CpuKernel kScatterKernels[] = {
    {"scatter_add", prepare<fold::Sum>},     {"scatter_sub", prepare<fold::Difference>},
    {"scatter_max", prepare<fold::Max>},     {"scatter_min", prepare<fold::Min>},
    {"scatter_update", prepare<fold::Last>}, {"is_last_of_id", prepare_last_of_id},
};

}  // namespace

std::span<const CpuKernel> scatter_kernels() { return kScatterKernels; }

}  // namespace cairn
