// The common part of the kernels that tree_source.h writes: their parameter, how they read leaves
// and write results, and how threads share the elements. NVRTC compiles it, which has no headers
// but those that it is given (kernel_headers.h); tests compile it for the host.
#pragma once
#include <cstdint>

#include "core/kernels/cuda/trees/casts.h"
#include "core/kernels/cuda/trees/elementwise.h"

// Before a loop that is seldom walked: unrolled, it would only take longer to compile.
#ifdef __CUDACC__
#define CAIRN_KEEP_LOOP _Pragma("unroll 1")
#else
#define CAIRN_KEEP_LOOP
#endif

namespace cairn::cuda {

struct TreeArguments {
  static constexpr int kLeavesMax = 16, kPeriodsMax = 4;
  std::int64_t elements;  // below 2^32: division by 64 bits takes some 100 instructions
  bool packed;            // all that is read and written by packs lies on their boundaries
  void* result;
  const void* leaves[kLeavesMax];
  std::uint32_t periods[kPeriodsMax];  // lengths of rows
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

// An element of a value of rows. All leaves whose rows are as long use one division.
struct Place {
  std::uint32_t row, column;
};
CAIRN_DEVICE Place place_of(std::int64_t element, std::uint32_t period) {
  const auto at = static_cast<std::uint32_t>(element);
  const std::uint32_t row = at / period;
  return {row, at - row * period};
}

template <typename Stored, int kCount, bool kWhole>
CAIRN_DEVICE Pack<Stored, kCount> inner(const void* from, std::uint32_t period, Place first) {
  if constexpr (kWhole || kCount == 1) {
    return dense<Stored, kCount>(from, first.column);
  } else {
    Pack<Stored, kCount> made;
    CAIRN_UNROLL
    for (int l = 0; l < kCount; ++l) {
      made.at[l] = static_cast<const Stored*>(from)[first.column];
      if (++first.column == period) first.column = 0;
    }
    return made;
  }
}

template <typename Stored, int kCount, bool kWhole>
CAIRN_DEVICE Pack<Stored, kCount> outer(const void* from, std::uint32_t period, Place first) {
  const Stored* const rows = static_cast<const Stored*>(from);
  Pack<Stored, kCount> made;
  if constexpr (kWhole || kCount == 1) {
    const Stored one = rows[first.row];
    CAIRN_UNROLL
    for (int l = 0; l < kCount; ++l) made.at[l] = one;
  } else {
    CAIRN_UNROLL
    for (int l = 0; l < kCount; ++l) {
      made.at[l] = rows[first.row];
      if (++first.column < period) continue;
      ++first.row;
      first.column = 0;
    }
  }
  return made;
}

// Takes the innermost axis off an element's number: what is left is its number along the others,
// and `at` moves to its place along this one. The compiler divides by constants without a division.
template <std::uint32_t kDim, std::int64_t kStride>
CAIRN_DEVICE void take_axis(std::uint32_t& rest, std::int64_t& at) {
  const std::uint32_t outer = rest / kDim;
  at += static_cast<std::int64_t>(rest - outer * kDim) * kStride;
  rest = outer;
}

template <typename Stored>
CAIRN_DEVICE Stored scalar(const void* from) {
  return *static_cast<const Stored*>(from);
}

template <typename Stored, int kCount>
CAIRN_DEVICE void write(void* to, std::int64_t first, const Pack<Stored, kCount>& made) {
  *reinterpret_cast<Pack<Stored, kCount>*>(static_cast<Stored*>(to) + first) = made;
}

// Computes the share of one of `threads` threads: packs, then the elements behind the last pack one
// by one; all one by one where the memory does not lie on the boundaries of packs.
template <typename Tree>
CAIRN_DEVICE void walk(const TreeArguments& arguments, std::int64_t thread, std::int64_t threads) {
  const Tree tree(arguments);
  const std::int64_t packs = arguments.packed ? arguments.elements / Tree::kPack : 0;
  for (std::int64_t i = thread; i < packs; i += threads)
    tree.template compute<Tree::kPack>(i * Tree::kPack);
  CAIRN_KEEP_LOOP
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
