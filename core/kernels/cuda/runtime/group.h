// Threads that compute one result together: a warp, a block, or, in host code, a single thread.
//
// A kernel body is written once for all three: it walks its data from rank() in steps of size(),
// and combines what the threads found. Compiled for the host it runs as plain loops, which is how
// machines without a GPU test it. What the host's own code calls too is CAIRN_ANYWHERE: nvcc makes
// of a host's call to a CAIRN_DEVICE function, without a word in templates, one to exit().
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define CAIRN_DEVICE __device__ __forceinline__
#define CAIRN_ANYWHERE __host__ __device__ __forceinline__
#define CAIRN_KERNEL_BODY __device__
#define CAIRN_UNROLL _Pragma("unroll")
#else
#define CAIRN_DEVICE inline
#define CAIRN_ANYWHERE inline
#define CAIRN_KERNEL_BODY
#define CAIRN_UNROLL
#endif

namespace cairn::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kBlock = 256;

#ifdef __CUDACC__

// The threads of a warp or of a whole block, which has kBlock. All threads of the group call
// combine() and sync() together.
class Group {
 public:
  CAIRN_DEVICE Group(int rank, int size, double* shared)
      : rank_(rank), size_(size), shared_(shared) {}
  CAIRN_DEVICE int rank() const { return rank_; }
  CAIRN_DEVICE int size() const { return size_; }

  // op over the values of all threads, in an order that depends on size() alone; every thread gets
  // the result.
  template <typename T, typename Op>
  CAIRN_DEVICE T combine(T value, Op op) const {
    for (int step = kWarp / 2; step > 0; step /= 2)
      value = op(value, __shfl_xor_sync(0xffffffffu, value, step));
    if (size_ == kWarp) return value;
    T* const of_warps = reinterpret_cast<T*>(shared_);
    __syncthreads();  // the combination before this one has been read
    if (rank_ % kWarp == 0) of_warps[rank_ / kWarp] = value;
    __syncthreads();
    value = of_warps[0];
    for (int warp = 1; warp < kBlock / kWarp; ++warp) value = op(value, of_warps[warp]);
    return value;
  }

 private:
  int rank_, size_;
  double* shared_;  // one place per warp
};

#else

class Group {
 public:
  int rank() const { return 0; }
  int size() const { return 1; }
  template <typename T, typename Op>
  T combine(T value, Op) const {
    return value;
  }
};

#endif

}  // namespace cairn::cuda
