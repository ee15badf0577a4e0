// The values that the measured jobs start from (rows, gradients and rates), and what a row must be
// after the first step, computed by plain loops in double precision.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/gpu/embedding_job.h"
#include "core/kernels/cuda/embedding/hashed.h"
#include "core/kernels/cuda/embedding/hashed_lookup.cuh"
#include "core/kernels/cuda/embedding/tables.h"

namespace cairn::bench {

inline constexpr std::uint64_t kSeed = 20260101;
inline const cuda::UniformRows kInitial{kSeed, -0.05f, 0.05f};
inline const cuda::UniformRows kGradients{kSeed + 1, -1e-3f, 1e-3f};

// Every value of [rows, stride] becomes a function of its place; beyond `dim` it is 0.
static __global__ void fill(float* out, std::int64_t rows, std::int64_t stride, int dim,
                            cuda::UniformInitial initial) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       at < rows * stride; at += step) {
    const int column = static_cast<int>(at % stride);
    out[at] = column < dim ? initial(0, at / stride, column) : 0.0f;
  }
}

inline constexpr cuda::Rates kRates{
    .rate = 0.05f, .share_1 = 0.1f, .share_2 = 0.001f, .epsilon = 1e-5f};

// Lookups of the last table whose rows are looked at: of frequent rows and of others.
inline std::vector<std::int64_t> probes(const JobSize& size) {
  std::vector<std::int64_t> made;
  const std::int64_t count = size.lookups * size.tables;
  for (std::int64_t at = count - size.lookups; at < count; at += size.lookups / 12)
    made.push_back(at);
  return made;
}

// The row that a lookup leads to, counted over all tables.
inline std::int64_t row_of(const JobSize& size, const std::vector<std::int64_t>& ids,
                           std::int64_t lookup) {
  return lookup / size.lookups * size.rows + ids[static_cast<std::size_t>(lookup)];
}

// The parameters of that row after the job's first step, which has looked up `ids`.
inline std::vector<double> row_after_a_step(const JobSize& size, cuda::Rule rule,
                                            const std::vector<std::int64_t>& ids,
                                            std::int64_t lookup) {
  const std::int64_t begin = lookup / size.lookups * size.lookups;
  const std::int64_t id = ids[static_cast<std::size_t>(lookup)], row = row_of(size, ids, lookup);
  const cuda::UniformInitial gradient{kGradients}, initial{kInitial};
  std::vector<double> sum(static_cast<std::size_t>(size.dim), 0.0), made;
  for (std::int64_t at = begin; at < begin + size.lookups; ++at)
    if (ids[static_cast<std::size_t>(at)] == id)
      for (int j = 0; j < size.dim; ++j) sum[static_cast<std::size_t>(j)] += gradient(0, at, j);
  for (int j = 0; j < size.dim; ++j) {
    const double g = sum[static_cast<std::size_t>(j)];
    const double adam = kRates.share_1 * g / (std::sqrt(kRates.share_2 * g * g) + kRates.epsilon);
    made.push_back(initial(0, row, j) - kRates.rate * (rule == cuda::Rule::kAdam ? adam : g));
  }
  return made;
}
inline double tolerance(cuda::Rule rule) { return rule == cuda::Rule::kAdam ? 1e-3 : 1e-5; }

}  // namespace cairn::bench
