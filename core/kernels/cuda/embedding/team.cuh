// Teams: the lanes of a warp that work on one row together, and a row in their registers.
//
// A row of D floats is D / 4 vectors of 16 bytes. A team has as many lanes as the row has vectors,
// up to a whole warp, so that a row of 32 floats takes 8 lanes and a warp works on 4 rows; beyond
// 128 floats each lane has several vectors. Teams of one warp may run apart from one another: every
// exchange between lanes names the team's own lanes.
#pragma once
#include <cstdint>

#include "core/base/error.h"

namespace cairn::cuda {

// `Whole`: the team's lanes have all vectors of a row and no more. If not, lanes check.
template <int Lanes, int Vectors, bool Whole>
struct Shape {
  static constexpr int kLanes = Lanes;
  static constexpr int kVectors = Vectors;
  static constexpr bool kWhole = Whole;
  // Rows that a team has on their way at once.
  static constexpr int kFlight = Vectors == 1 ? 4 : 2;
};

// Calls `call` with the shape for rows of `dim` floats.
template <typename Call>
void with_shape(int dim, const Call& call) {
  if (dim <= 0 || dim % 4 != 0 || dim > 512)
    throw InvalidArgumentError(
        str("rows of ", dim, " floats: the dimension must be a multiple of 4 from 4 to 512"));
  if (dim == 32) return call(Shape<8, 1, true>());
  if (dim == 64) return call(Shape<16, 1, true>());
  if (dim == 128) return call(Shape<32, 1, true>());
  if (dim == 256) return call(Shape<32, 2, true>());
  if (dim < 128) return call(Shape<32, 1, false>());
  if (dim < 256) return call(Shape<32, 2, false>());
  return call(Shape<32, 4, false>());
}

// The same with a whole warp per team, also where lanes have nothing to do: for loops that are
// longer for some rows than for others. Teams of one warp that have parted wait for memory one
// after the other.
template <typename Call>
void with_warps(int dim, const Call& call) {
  with_shape(dim, [&](auto shape) {
    using S = decltype(shape);
    if constexpr (S::kLanes != 32)
      call(Shape<32, 1, false>());
    else
      call(shape);
  });
}

template <typename S>
struct Team {
  int lane = 0;       // within the team
  int dim = 0;        // floats per row
  unsigned mask = 0;  // the team's lanes within the warp

  __device__ explicit Team(int row_dim)
      : lane(static_cast<int>(threadIdx.x) % S::kLanes), dim(row_dim) {
    const int first = static_cast<int>(threadIdx.x) % 32 / S::kLanes * S::kLanes;
    mask = (S::kLanes == 32 ? ~0u : (1u << (S::kLanes % 32)) - 1u) << first;
  }

  // The number of this team, over all blocks of the launch.
  static __device__ std::int64_t number() {
    return (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / S::kLanes;
  }

  template <typename T>
  __device__ T from(T value, int source) const {
    return __shfl_sync(mask, value, source, S::kLanes);
  }

  // The next number of a counter that all teams of a launch share.
  __device__ unsigned take(unsigned* counter) const {
    unsigned ticket = 0;
    if (lane == 0) ticket = atomicAdd(counter, 1u);
    return from(ticket, 0);
  }

  // The sum over the team's lanes, in all of them. The order is a tree and always the same.
  __device__ float sum(float value) const {
#pragma unroll
    for (int half = S::kLanes / 2; half > 0; half /= 2)
      value += __shfl_xor_sync(mask, value, half, S::kLanes);
    return value;
  }

  // Where vector `v` of this lane begins in a row, and whether the row has it.
  __device__ int column(int v) const { return (v * S::kLanes + lane) * 4; }
  __device__ bool has(int v) const { return S::kWhole || column(v) < dim; }
};

// This lane's part of a row.
template <typename S>
struct Row {
  float4 part[S::kVectors];

  __device__ void clear() {
#pragma unroll
    for (int v = 0; v < S::kVectors; ++v) part[v] = make_float4(0, 0, 0, 0);
  }
  __device__ void load(const Team<S>& team, const float* row) {
#pragma unroll
    for (int v = 0; v < S::kVectors; ++v)
      part[v] = team.has(v) ? *reinterpret_cast<const float4*>(row + team.column(v))
                            : make_float4(0, 0, 0, 0);
  }
  // For memory that no thread writes during the launch.
  __device__ void load_constant(const Team<S>& team, const float* row) {
#pragma unroll
    for (int v = 0; v < S::kVectors; ++v)
      part[v] = team.has(v) ? __ldg(reinterpret_cast<const float4*>(row + team.column(v)))
                            : make_float4(0, 0, 0, 0);
  }
  // For what is read once: it is the first to leave the caches.
  __device__ void load_once(const Team<S>& team, const float* row) {
#pragma unroll
    for (int v = 0; v < S::kVectors; ++v)
      part[v] = team.has(v) ? __ldcs(reinterpret_cast<const float4*>(row + team.column(v)))
                            : make_float4(0, 0, 0, 0);
  }
  __device__ void store(const Team<S>& team, float* row) const {
#pragma unroll
    for (int v = 0; v < S::kVectors; ++v)
      if (team.has(v)) *reinterpret_cast<float4*>(row + team.column(v)) = part[v];
  }
  // For outputs, so that the L2 cache keeps the rows that are read often.
  __device__ void store_once(const Team<S>& team, float* row) const {
#pragma unroll
    for (int v = 0; v < S::kVectors; ++v)
      if (team.has(v)) __stcs(reinterpret_cast<float4*>(row + team.column(v)), part[v]);
  }
  __device__ void add(const Row& other) {
#pragma unroll
    for (int v = 0; v < S::kVectors; ++v) {
      part[v].x += other.part[v].x;
      part[v].y += other.part[v].y;
      part[v].z += other.part[v].z;
      part[v].w += other.part[v].w;
    }
  }
  __device__ void scale(float factor) {
#pragma unroll
    for (int v = 0; v < S::kVectors; ++v) {
      part[v].x *= factor;
      part[v].y *= factor;
      part[v].z *= factor;
      part[v].w *= factor;
    }
  }
};

}  // namespace cairn::cuda
