// Sorting and adding up on the device, by CUB.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/kernels/cuda/runtime/driver.h"

namespace cairn::cuda {

// As Driver::sort_scratch() and Driver::sort() have it.
std::size_t sort_scratch(std::int64_t n, int bits);
void sort_pairs(Stream stream, std::int64_t n, int bits, const std::uint64_t* keys,
                std::uint64_t* sorted_keys, const std::int32_t* values, std::int32_t* sorted_values,
                std::byte* scratch, std::size_t scratch_bytes);

// As Driver::sum_scratch() and Driver::running_sums() have it.
std::size_t sum_scratch(std::int64_t n);
void running_sums(Stream stream, std::int64_t n, const std::int32_t* values, std::int32_t* sums,
                  std::byte* scratch, std::size_t scratch_bytes);

// to[i] = from[i] rounded to bfloat16.
void narrow(Stream stream, std::int64_t n, const float* from, std::uint16_t* to);

}  // namespace cairn::cuda
