// The two storage formats of 16 bits, converted as core/tensor does: to nearest, ties to even, a
// NaN stays a NaN.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/kernels/cuda/group.h"
#include "core/tensor/tensor.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace cairn::cuda {

#ifdef __CUDACC__
CAIRN_DEVICE float widen_bfloat16(std::uint16_t x) {
  return __uint_as_float(std::uint32_t{x} << 16);
}
CAIRN_DEVICE std::uint16_t narrow_bfloat16(float x) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}
CAIRN_DEVICE float widen_float16(std::uint16_t x) { return __half2float(__ushort_as_half(x)); }
CAIRN_DEVICE std::uint16_t narrow_float16(float x) { return __half_as_ushort(__float2half_rn(x)); }
#else
inline float widen_bfloat16(std::uint16_t x) { return from_bfloat16(x); }
inline std::uint16_t narrow_bfloat16(float x) { return to_bfloat16(x); }
inline float widen_float16(std::uint16_t x) { return from_float16(x); }
inline std::uint16_t narrow_float16(float x) { return to_float16(x); }
#endif

// How a float lies in memory, and how it is read and written there.
struct AsFloat32 {
  using Stored = float;
  CAIRN_DEVICE static float read(float x) { return x; }
  CAIRN_DEVICE static float write(float x) { return x; }
};
struct AsBfloat16 {
  using Stored = std::uint16_t;
  CAIRN_DEVICE static float read(std::uint16_t x) { return widen_bfloat16(x); }
  CAIRN_DEVICE static std::uint16_t write(float x) { return narrow_bfloat16(x); }
};

}  // namespace cairn::cuda
