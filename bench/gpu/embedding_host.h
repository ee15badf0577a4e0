// The host's side of the embedding benchmark: copies to and from the device, and comparisons.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "core/kernels/cuda/embedding/launch.h"

namespace cairn::bench {

// [0, first, first + second, ...]
inline std::vector<std::int64_t> running_sum(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> out = {0};
  for (const std::int64_t size : sizes) out.push_back(out.back() + size);
  return out;
}

template <typename T>
void copy_to(cuda::Buffer<T>& to, const std::vector<T>& values) {
  if (values.empty()) return;
  cuda::check_cuda(
      cudaMemcpy(to.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
      "copying to the device");
  // A copy from pageable memory may still be on its way, and other streams would not wait for it.
  cuda::check_cuda(cudaDeviceSynchronize(), "copying to the device");
}

template <typename T>
cuda::Buffer<T> to_device(const std::vector<T>& values) {
  cuda::Buffer<T> out(static_cast<std::int64_t>(values.size()));
  copy_to(out, values);
  return out;
}

// `count` values from place `from` on, once the device is idle. What went wrong in a kernel shows
// here.
template <typename T>
std::vector<T> to_host(const T* from, std::int64_t count) {
  std::vector<T> out(static_cast<std::size_t>(count));
  cuda::check_cuda(cudaDeviceSynchronize(), "running kernels");
  if (count > 0)
    cuda::check_cuda(cudaMemcpy(out.data(), from, out.size() * sizeof(T), cudaMemcpyDeviceToHost),
                     "copying from the device");
  return out;
}
template <typename T>
std::vector<T> to_host(const cuda::Buffer<T>& from) {
  return to_host(from.get(), from.size());
}

inline bool failed(const std::string& what) {
  std::fprintf(stderr, "WRONG  %s\n", what.c_str());
  return false;
}

// Whether all values agree to `tolerance`, absolute and relative.
inline bool same(const std::string& what, const std::vector<float>& got,
                 const std::vector<double>& want, double tolerance) {
  if (got.size() != want.size())
    return failed(what + ": " + std::to_string(got.size()) + " values instead of " +
                  std::to_string(want.size()));
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::fabs(got[i] - want[i]) <= tolerance * (1 + std::fabs(want[i]))))
      return failed(what + ": value " + std::to_string(i) + " is " + std::to_string(got[i]) +
                    " instead of " + std::to_string(want[i]));
  return true;
}

}  // namespace cairn::bench
