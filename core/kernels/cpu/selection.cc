// The largest elements of rows, and elements that each row picks by ids of its own.
#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/order_key.h"
#include "core/kernels/picks.h"

namespace cairn {
namespace {

// The elements of a row as they are compared, and their places.
struct Ranking {
  std::vector<std::uint64_t> keys;
  std::vector<std::int64_t> places;
};

template <typename T>
KernelRun top_k(std::int64_t rows, std::int64_t n, std::int64_t k) {
  auto scratch = std::make_shared<Ranking>();
  scratch->keys.resize(static_cast<std::size_t>(n));
  scratch->places.resize(static_cast<std::size_t>(n));
  return [=](const KernelCall& call) {
    const T* x = input_of<T>(call, 0);
    T* values = output_of<T>(call, 0);
    std::int64_t* ids = output_of<std::int64_t>(call, 1);
    std::vector<std::int64_t>& places = scratch->places;
    std::uint64_t* const keys = scratch->keys.data();
    const auto comes_first = [keys](std::int64_t a, std::int64_t b) {
      return keys[a] > keys[b] || (keys[a] == keys[b] && a < b);
    };
    for (std::int64_t r = 0; r < rows; ++r, x += n) {
      for (std::int64_t i = 0; i < n; ++i) keys[i] = order_key(x[i]);
      std::iota(places.begin(), places.end(), std::int64_t{0});
      std::partial_sort(places.begin(), places.begin() + k, places.end(), comes_first);
      for (std::int64_t i = 0; i < k; ++i) {
        *ids++ = places[static_cast<std::size_t>(i)];
        *values++ = x[places[static_cast<std::size_t>(i)]];
      }
    }
  };
}

KernelRun prepare_top_k(const KernelTypes& types) {
  const Shape& shape = types.inputs[0].shape;
  const std::int64_t k = types.attributes.get<std::int64_t>("k");
  const Along a = along_axis(shape, shape.rank() - 1);
  switch (types.inputs[0].dtype) {
    case DType::kInt32: return top_k<std::int32_t>(a.outer, a.n, k);
    case DType::kInt64: return top_k<std::int64_t>(a.outer, a.n, k);
    default: return top_k<float>(a.outer, a.n, k);
  }
}

// Looked at before anything is read: ids come from data.
template <typename Id>
void check_ids_along(const Id* ids, std::int64_t count, std::int64_t bound) {
  for (std::int64_t i = 0; i < count; ++i)
    if (ids[i] < 0 || ids[i] >= bound)
      throw InvalidArgumentError(
          str("id ", ids[i], " at position ", i, " is outside [0, ", bound, ")"));
}

// picks [outer, n, inner] of [outer, bound, inner].
template <typename Id, typename Word>
KernelRun gather_along(Along picks, std::int64_t bound) {
  return [=](const KernelCall& call) {
    const Id* ids = input_of<Id>(call, 1);
    check_ids_along(ids, picks.outer * picks.n * picks.inner, bound);
    const Word* x = input_of<Word>(call, 0);
    Word* to = output_of<Word>(call);
    for (std::int64_t o = 0; o < picks.outer; ++o, x += bound * picks.inner)
      for (std::int64_t i = 0; i < picks.n; ++i)
        for (std::int64_t j = 0; j < picks.inner; ++j)
          *to++ = x[static_cast<std::int64_t>(*ids++) * picks.inner + j];
  };
}

template <typename Id>
KernelRun gather_along_grad(Along picks, std::int64_t bound) {
  return [=](const KernelCall& call) {
    const Id* ids = input_of<Id>(call, 1);
    check_ids_along(ids, picks.outer * picks.n * picks.inner, bound);
    const float* dy = input_of<float>(call, 0);
    float* sums = output_of<float>(call);
    std::fill_n(sums, picks.outer * bound * picks.inner, 0.0f);
    for (std::int64_t o = 0; o < picks.outer; ++o)
      for (std::int64_t i = 0; i < picks.n; ++i)
        for (std::int64_t j = 0; j < picks.inner; ++j)
          sums[(o * bound + *ids++) * picks.inner + j] += *dy++;
  };
}

template <typename Id>
KernelRun prepare_gather_along_by(const KernelTypes& types) {
  const std::int64_t axis = types.attributes.get<std::int64_t>("axis");
  const Along picks = along_axis(types.inputs[1].shape, axis);
  const std::int64_t bound = types.inputs[0].shape[static_cast<int>(axis)];
  switch (dtype_bytes(types.inputs[0].dtype)) {
    case 1: return gather_along<Id, std::uint8_t>(picks, bound);
    case 2: return gather_along<Id, std::uint16_t>(picks, bound);
    case 4: return gather_along<Id, std::uint32_t>(picks, bound);
    default: return gather_along<Id, std::uint64_t>(picks, bound);
  }
}
KernelRun prepare_gather_along(const KernelTypes& types) {
  return types.inputs[1].dtype == DType::kInt32 ? prepare_gather_along_by<std::int32_t>(types)
                                                : prepare_gather_along_by<std::int64_t>(types);
}

KernelRun prepare_gather_along_grad(const KernelTypes& types) {
  const std::int64_t axis = types.attributes.get<std::int64_t>("axis");
  const Along picks = along_axis(types.inputs[1].shape, axis);
  const std::int64_t bound = types.outputs[0].shape[static_cast<int>(axis)];
  return types.inputs[1].dtype == DType::kInt32 ? gather_along_grad<std::int32_t>(picks, bound)
                                                : gather_along_grad<std::int64_t>(picks, bound);
}

constexpr CpuKernel kSelectionKernels[] = {
    {"top_k", prepare_top_k},
    {"gather_along", prepare_gather_along},
    {"gather_along_grad", prepare_gather_along_grad},
};

}  // namespace

std::span<const CpuKernel> selection_kernels() { return kSelectionKernels; }

}  // namespace cairn
