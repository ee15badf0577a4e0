#include "core/kernels/cuda/runtime/sort.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "core/kernels/cuda/runtime/cuda_error.h"
#include "core/kernels/cuda/runtime/half.h"

namespace cairn::cuda {

std::size_t sort_scratch(std::int64_t n, int bits) {
  std::size_t bytes = 0;
  const std::uint64_t* const keys = nullptr;
  const std::int32_t* const values = nullptr;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, static_cast<std::uint64_t*>(nullptr),
                                        values, static_cast<std::int32_t*>(nullptr),
                                        static_cast<int>(n), 0, bits),
        "asking for the scratch of a sort");
  return bytes;
}

void sort_pairs(Stream stream, std::int64_t n, int bits, const std::uint64_t* keys,
                std::uint64_t* sorted_keys, const std::int32_t* values, std::int32_t* sorted_values,
                std::byte* scratch, std::size_t scratch_bytes) {
  check(cub::DeviceRadixSort::SortPairs(scratch, scratch_bytes, keys, sorted_keys, values,
                                        sorted_values, static_cast<int>(n), 0, bits, stream),
        "sorting");
}

std::size_t sum_scratch(std::int64_t n) {
  std::size_t bytes = 0;
  const std::int32_t* const values = nullptr;
  check(cub::DeviceScan::InclusiveSum(nullptr, bytes, values, static_cast<std::int32_t*>(nullptr),
                                      static_cast<int>(n)),
        "asking for the scratch of running sums");
  return bytes;
}

void running_sums(Stream stream, std::int64_t n, const std::int32_t* values, std::int32_t* sums,
                  std::byte* scratch, std::size_t scratch_bytes) {
  check(cub::DeviceScan::InclusiveSum(scratch, scratch_bytes, values, sums, static_cast<int>(n),
                                      stream),
        "running sums");
}

namespace {

// Eight numbers a thread: 32 bytes in, 16 out.
__global__ void __launch_bounds__(kBlock)
    narrow_kernel(std::int64_t n, const float* from, std::uint16_t* to) {
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x; i * 8 < n; i += step) {
    if (i * 8 + 8 <= n) {
      const float4 a = reinterpret_cast<const float4*>(from)[i * 2],
                   b = reinterpret_cast<const float4*>(from)[i * 2 + 1];
      union {
        uint4 all;
        __nv_bfloat162 pair[4];
      } made;
      made.pair[0] = __floats2bfloat162_rn(a.x, a.y);
      made.pair[1] = __floats2bfloat162_rn(a.z, a.w);
      made.pair[2] = __floats2bfloat162_rn(b.x, b.y);
      made.pair[3] = __floats2bfloat162_rn(b.z, b.w);
      reinterpret_cast<uint4*>(to)[i] = made.all;
    } else {
      for (std::int64_t k = i * 8; k < n; ++k) to[k] = narrow_bfloat16(from[k]);
    }
  }
}

}  // namespace

void narrow(Stream stream, std::int64_t n, const float* from, std::uint16_t* to) {
  if (n == 0) return;
  const std::int64_t blocks = (n / 8 + kBlock) / kBlock;
  narrow_kernel<<<static_cast<unsigned>(blocks < 132 * 16 ? blocks : 132 * 16), kBlock, 0,
                  stream>>>(n, from, to);
  check(cudaGetLastError(), "rounding to bfloat16");
}

}  // namespace cairn::cuda
