// The two storage formats of 16 bits, converted as core/tensor does: to nearest, ties to even, a
// NaN stays a NaN. On a device by its own instructions, for which CUDA's headers are not needed, so
// that kernels that are compiled at run time (tree_kernel.h) use the same lines.
//   Source  PTX ISA, "cvt"; compute capability 8.0 has them all.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/kernels/cuda/runtime/group.h"

#ifndef __CUDACC_RTC__
#include "core/tensor/tensor.h"
#endif

namespace cairn::cuda {

#ifdef __CUDACC__
CAIRN_DEVICE float widen_bfloat16(std::uint16_t x) {
  return __uint_as_float(std::uint32_t{x} << 16);
}
CAIRN_DEVICE std::uint16_t narrow_bfloat16(float x) {
  std::uint16_t rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(x));
  return rounded;
}
CAIRN_DEVICE float widen_float16(std::uint16_t x) {
  float widened;
  asm("cvt.f32.f16 %0, %1;" : "=f"(widened) : "h"(x));
  return widened;
}
CAIRN_DEVICE std::uint16_t narrow_float16(float x) {
  std::uint16_t rounded;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(x));
  return rounded;
}
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
struct AsFloat16 {
  using Stored = std::uint16_t;
  CAIRN_DEVICE static float read(std::uint16_t x) { return widen_float16(x); }
  CAIRN_DEVICE static std::uint16_t write(float x) { return narrow_float16(x); }
};

}  // namespace cairn::cuda
