// The forward pass. A team takes as many lookups as it has lanes: each lane finds where one of them
// leads, and then the rows are copied one after the other, several on their way at once.
//
// Rows are read through the caches and outputs bypass them, because the rows of a power law repeat
// and outputs do not: of 105,000 lookups in a table of 1.68 million rows a third are distinct, and
// these lie in the L2 cache while the table's lookups are served.
//
// A gather takes half of each multiprocessor: kBlocks blocks have 64 KB on their way, twice what
// memory needs to be busy, and the rest is free for the grouping of the lookups on another stream,
// whose short kernels would otherwise wait for blocks to end.
#include <algorithm>
#include <type_traits>

#include "core/kernels/cuda/embedding/launch.h"
#include "core/kernels/cuda/embedding/lookup.cuh"
#include "core/kernels/cuda/embedding/tables.h"
#include "core/kernels/cuda/embedding/team.cuh"

namespace cairn::cuda {
namespace {

constexpr unsigned kBlocks = 4;  // per multiprocessor

template <typename S, typename Id>
__global__ void __launch_bounds__(kThreads)
    gather_rows(Tables tables, const Id* __restrict__ ids,
                const std::int64_t* __restrict__ first_lookup, std::int64_t count,
                float* __restrict__ out) {
  static_assert(S::kLanes % S::kFlight == 0);
  const Team<S> team(tables.dim);
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t begin = Team<S>::number() * S::kLanes; begin < count; begin += threads) {
    const int n = static_cast<int>(min(static_cast<std::int64_t>(S::kLanes), count - begin));
    std::int64_t offset = -1;
    if (team.lane < n) offset = row_offset(tables, ids, first_lookup, begin + team.lane);
    for (int i = 0; i < n; i += S::kFlight) {
      Row<S> rows[S::kFlight];
#pragma unroll
      for (int k = 0; k < S::kFlight; ++k) {
        const std::int64_t at = team.from(offset, i + k);  // -1 beyond n
        rows[k].clear();
        if (at >= 0) rows[k].load_constant(team, tables.rows + at);
      }
#pragma unroll
      for (int k = 0; k < S::kFlight; ++k)
        if (i + k < n) rows[k].store_once(team, out + (begin + i + k) * tables.dim);
    }
  }
}

template <typename S, typename Id>
__global__ void __launch_bounds__(kThreads)
    pool_rows(Tables tables, const Id* __restrict__ ids,
              const std::int64_t* __restrict__ first_lookup, Bags bags, float* __restrict__ out) {
  const Team<S> team(tables.dim);
  const std::int64_t bag = Team<S>::number();
  if (bag >= bags.count) return;
  const std::int64_t begin = __ldg(bags.first + bag), end = __ldg(bags.first + bag + 1);
  Row<S> sum;
  sum.clear();
  for (std::int64_t from = begin; from < end; from += S::kLanes) {
    const int n = static_cast<int>(min(static_cast<std::int64_t>(S::kLanes), end - from));
    std::int64_t offset = -1;
    if (team.lane < n) offset = row_offset(tables, ids, first_lookup, from + team.lane);
    for (int i = 0; i < n; i += S::kFlight) {
      Row<S> rows[S::kFlight];
#pragma unroll
      for (int k = 0; k < S::kFlight; ++k) {
        const std::int64_t at = team.from(offset, i + k);
        rows[k].clear();
        if (at >= 0) rows[k].load_constant(team, tables.rows + at);
      }
#pragma unroll
      for (int k = 0; k < S::kFlight; ++k) sum.add(rows[k]);
    }
  }
  if (bags.pooling == Pooling::kMean && end > begin)
    sum.scale(1.0f / static_cast<float>(end - begin));
  sum.store_once(team, out + bag * tables.dim);
}

}  // namespace

void gather(const Tables& tables, const Lookups& lookups, float* out, Stream stream) {
  if (lookups.count == 0) return;
  const unsigned blocks = std::min(blocks_for(lookups.count), kBlocks * processors());
  with_shape(tables.dim, [&](auto shape) {
    with_id_type(lookups.type, [&](auto* null) {
      using Id = std::remove_pointer_t<decltype(null)>;
      gather_rows<decltype(shape), std::remove_const_t<Id>><<<blocks, kThreads, 0, stream>>>(
          tables, static_cast<Id*>(lookups.ids), lookups.first_lookup, lookups.count, out);
    });
  });
  check_cuda(cudaGetLastError(), "launching a gather of embedding rows");
}

void pool(const Tables& tables, const Lookups& lookups, const Bags& bags, float* out,
          Stream stream) {
  if (bags.count == 0) return;
  with_shape(tables.dim, [&](auto shape) {
    using S = decltype(shape);
    with_id_type(lookups.type, [&](auto* null) {
      using Id = std::remove_pointer_t<decltype(null)>;
      pool_rows<S, std::remove_const_t<Id>>
          <<<blocks_for(bags.count * S::kLanes), kThreads, 0, stream>>>(
              tables, static_cast<Id*>(lookups.ids), lookups.first_lookup, bags, out);
    });
  });
  check_cuda(cudaGetLastError(), "launching a pooling of embedding rows");
}

}  // namespace cairn::cuda
