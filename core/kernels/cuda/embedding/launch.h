// Needed by every launch here: CUDA's status as an Error, grid sizes, and device memory that ends.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/base/error.h"

namespace cairn::cuda {

// ResourceExhausted: no device memory is left. Internal: anything else that CUDA refuses.
inline void check_cuda(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that the next call does not report this one again
  const std::string message =
      str(doing, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")");
  if (status == cudaErrorMemoryAllocation) throw ResourceExhaustedError(message);
  throw InternalError(message);
}

inline constexpr int kThreads = 256;  // of every block here

// Blocks of kThreads that give each of `threads` one thread.
inline unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

// The device's multiprocessors.
inline unsigned processors() {
  int device = 0, count = 0;
  check_cuda(cudaGetDevice(&device), "asking for the device");
  check_cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
             "counting multiprocessors");
  return static_cast<unsigned>(count);
}

// `count` values of device memory, of any contents.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::int64_t count) : count_(count) {
    if (count == 0) return;
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(count) * sizeof(T)),
               "allocating device memory");
    data_ = static_cast<T*>(memory);
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(Buffer&& other) noexcept : data_(other.data_), count_(other.count_) {
    other.data_ = nullptr;
    other.count_ = 0;
  }
  Buffer& operator=(Buffer&& other) noexcept {
    if (this == &other) return *this;
    cudaFree(data_);
    data_ = other.data_;
    count_ = other.count_;
    other.data_ = nullptr;
    other.count_ = 0;
    return *this;
  }
  T* get() const { return data_; }
  std::int64_t size() const { return count_; }

 private:
  T* data_ = nullptr;
  std::int64_t count_ = 0;
};

}  // namespace cairn::cuda
