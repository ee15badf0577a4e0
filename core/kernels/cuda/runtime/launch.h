// Launches: a body for each index, or for each group of threads. Under nvcc they become kernels on
// the queue's stream; in host code, loops.
//
//   for_each(queue, n, [=] CAIRN_KERNEL_BODY(std::int64_t i) { out[i] = in[i] + 1; });
//
// Bodies capture by value: pointers to device memory and numbers.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/kernels/cuda/runtime/group.h"
#include "core/kernels/cuda/runtime/queue.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif

namespace cairn::cuda {

// As many blocks as keep a large device busy; each walks in steps.
inline unsigned grid_of(std::int64_t blocks) {
  constexpr std::int64_t kBlocksMax = 132 * 32;
  return static_cast<unsigned>(std::min(blocks, kBlocksMax));
}

#ifdef __CUDACC__

template <typename Body>
__global__ void __launch_bounds__(kBlock)
    each_index(std::int64_t n, const __grid_constant__ Body body) {
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x; i < n; i += step) body(i);
}

// kThreads: of a group, kWarp or kBlock. A block serves kBlock / kThreads groups at a time.
template <int kThreads, typename Body>
__global__ void __launch_bounds__(kBlock)
    each_group(std::int64_t groups, const __grid_constant__ Body body) {
  __shared__ double shared[kBlock / kWarp];
  constexpr int kGroups = kBlock / kThreads;
  const Group group(static_cast<int>(threadIdx.x) % kThreads, kThreads, shared);
  const std::int64_t step = std::int64_t{gridDim.x} * kGroups;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kGroups + threadIdx.x / kThreads; i < groups;
       i += step)
    body(group, i);
}

#endif

// body(i) for i in [0, n), in any order and at the same time.
template <typename Body>
void for_each(Queue& queue, std::int64_t n, const Body& body) {
  if (n <= 0) return;
#ifdef __CUDACC__
  each_index<<<grid_of((n + kBlock - 1) / kBlock), kBlock, 0, queue.stream()>>>(n, body);
  queue.launched();
#else
  queue.driver().run_on_host([=] {
    for (std::int64_t i = 0; i < n; ++i) body(i);
  });
#endif
}

// body(group, i) for i in [0, n): `work` says how many elements a group walks, and so whether a
// warp or a block is its size.
template <typename Body>
void for_each_group(Queue& queue, std::int64_t n, std::int64_t work, const Body& body) {
  if (n <= 0) return;
#ifdef __CUDACC__
  constexpr std::int64_t kWarpWork = 1024;
  if (work <= kWarpWork) {
    constexpr std::int64_t kGroups = kBlock / kWarp;
    each_group<kWarp><<<grid_of((n + kGroups - 1) / kGroups), kBlock, 0, queue.stream()>>>(n, body);
  } else {
    each_group<kBlock><<<grid_of(n), kBlock, 0, queue.stream()>>>(n, body);
  }
  queue.launched();
#else
  (void)work;
  queue.driver().run_on_host([=] {
    const Group alone;
    for (std::int64_t i = 0; i < n; ++i) body(alone, i);
  });
#endif
}

// body(group, i) for i in [0, n) by warps of at most `blocks` blocks at a time: for work that waits
// for something slow, such as the bus, and must leave the device to others meanwhile.
template <typename Body>
void for_each_warp(Queue& queue, std::int64_t n, std::int64_t blocks, const Body& body) {
  if (n <= 0) return;
#ifdef __CUDACC__
  constexpr std::int64_t kGroups = kBlock / kWarp;
  const std::int64_t grid = std::min(blocks, (n + kGroups - 1) / kGroups);
  each_group<kWarp><<<grid_of(grid), kBlock, 0, queue.stream()>>>(n, body);
  queue.launched();
#else
  (void)blocks;
  for_each_group(queue, n, 1, body);
#endif
}

}  // namespace cairn::cuda
