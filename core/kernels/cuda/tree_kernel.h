// What the kernels that tree_source.h writes have in common: their parameter, how they read leaves
// and write results, and how threads share the elements. NVRTC compiles it, which has no headers
// but those that it is given (kernel_headers.h); tests compile it for the host.
#pragma once
#include <cstdint>

#include "core/kernels/cuda/casts.h"
#include "core/kernels/cuda/divisor.h"
#include "core/kernels/cuda/elementwise.h"

namespace cairn::cuda {

struct TreeArguments {
  static constexpr int kLeavesMax = 16, kPeriodsMax = 4;
  std::int64_t elements;
  bool packed;  // all that is read and written by packs lies on their boundaries
  void* result;
  const void* leaves[kLeavesMax];
  Divisor periods[kPeriodsMax];
};

// Neighbouring elements, read and written in words of at most 16 bytes.
inline constexpr int kWordMax = 16;
constexpr int boundary_of(int bytes) { return bytes < kWordMax ? bytes : kWordMax; }
template <typename Stored, int kCount>
struct alignas(boundary_of(sizeof(Stored) * kCount)) Pack {
  Stored at[kCount];
};

// Elements [first, first + kCount) of a leaf, by how it is stretched (Leaf::Mode). kWhole: each row
// is a number of whole packs, of which the first begins where the row does.
template <typename Stored, int kCount>
CAIRN_DEVICE Pack<Stored, kCount> dense(const void* from, std::int64_t first) {
  return *reinterpret_cast<const Pack<Stored, kCount>*>(static_cast<const Stored*>(from) + first);
}

template <typename Stored, int kCount, bool kWhole>
CAIRN_DEVICE Pack<Stored, kCount> inner(const void* from, const Divisor& period,
                                        std::int64_t first) {
  std::int64_t at = period.remainder(first);
  if constexpr (kWhole || kCount == 1) {
    return dense<Stored, kCount>(from, at);
  } else {
    Pack<Stored, kCount> made;
    CAIRN_UNROLL
    for (int l = 0; l < kCount; ++l) {
      made.at[l] = static_cast<const Stored*>(from)[at];
      if (++at == period.by) at = 0;
    }
    return made;
  }
}

template <typename Stored, int kCount, bool kWhole>
CAIRN_DEVICE Pack<Stored, kCount> outer(const void* from, const Divisor& period,
                                        std::int64_t first) {
  const Stored* const rows = static_cast<const Stored*>(from);
  std::int64_t row = period.divide(first);
  Pack<Stored, kCount> made;
  if constexpr (kWhole || kCount == 1) {
    const Stored one = rows[row];
    CAIRN_UNROLL
    for (int l = 0; l < kCount; ++l) made.at[l] = one;
  } else {
    std::int64_t left = (row + 1) * period.by - first;  // of the row
    CAIRN_UNROLL
    for (int l = 0; l < kCount; ++l) {
      made.at[l] = rows[row];
      if (--left > 0) continue;
      ++row;
      left = period.by;
    }
  }
  return made;
}

template <typename Stored>
CAIRN_DEVICE Stored scalar(const void* from) {
  return *static_cast<const Stored*>(from);
}

template <typename Stored, int kCount>
CAIRN_DEVICE void write(void* to, std::int64_t first, const Pack<Stored, kCount>& made) {
  *reinterpret_cast<Pack<Stored, kCount>*>(static_cast<Stored*>(to) + first) = made;
}

// What one of `threads` threads computes: packs, and one by one what is left of them, or everything
// where the memory does not lie on the boundaries of packs.
template <typename Tree>
CAIRN_DEVICE void walk(const TreeArguments& arguments, std::int64_t thread, std::int64_t threads) {
  const Tree tree(arguments);
  const std::int64_t packs = arguments.packed ? arguments.elements / Tree::kPack : 0;
  for (std::int64_t i = thread; i < packs; i += threads)
    tree.template compute<Tree::kPack>(i * Tree::kPack);
  for (std::int64_t i = packs * Tree::kPack + thread; i < arguments.elements; i += threads)
    tree.template compute<1>(i);
}

}  // namespace cairn::cuda

#ifdef __CUDACC__
#define CAIRN_TREE_KERNEL(TREE)                                                               \
  extern "C" __global__ void __launch_bounds__(cairn::cuda::kBlock)                           \
      TREE(const __grid_constant__ cairn::cuda::TreeArguments arguments) {                    \
    const std::int64_t threads = std::int64_t{gridDim.x} * cairn::cuda::kBlock;               \
    const std::int64_t thread = std::int64_t{blockIdx.x} * cairn::cuda::kBlock + threadIdx.x; \
    cairn::cuda::walk<cairn::cuda::trees::TREE>(arguments, thread, threads);                  \
  }
#else
#define CAIRN_TREE_KERNEL(TREE)                                                          \
  extern "C" void TREE(const cairn::cuda::TreeArguments& arguments, std::int64_t thread, \
                       std::int64_t threads);                                            \
  extern "C" void TREE(const cairn::cuda::TreeArguments& arguments, std::int64_t thread, \
                       std::int64_t threads) {                                           \
    cairn::cuda::walk<cairn::cuda::trees::TREE>(arguments, thread, threads);             \
  }
#endif
