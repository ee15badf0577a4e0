// Tables in pinned host memory behind a RowCache, and steps on them with the embedding kernels.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/gpu/embedding_host.h"
#include "bench/gpu/embedding_timing.h"
#include "core/kernels/cuda/embedding/tables.h"
#include "core/kernels/cuda/rows/row_cache.h"
#include "core/kernels/cuda/runtime/cuda_driver.h"

namespace cairn::bench {

// Thread: one.
class CachedTables {
 public:
  // The tables' contents are arbitrary. Each row has `dim` floats, then the rule's slots.
  CachedTables(const std::vector<std::int64_t>& rows, int dim, cuda::Rule rule,
               const cuda::RowCacheOptions& options)
      : rule_(rule),
        stride_(dim + cuda::slot_floats(rule, dim)),
        first_row_(running_sum(rows)),
        home_(reinterpret_cast<float*>(driver_.allocate_pinned(home_bytes()))),
        one_table_(to_device(std::vector<std::int64_t>{0, options.places})),
        one_range_(to_device(std::vector<std::int64_t>{0, options.lookups_max})) {
    const std::int64_t slots = rule == cuda::Rule::kSgd ? 0 : dim;
    cache_.emplace(queue_,
                   RowBlock{DType::kFloat32, reinterpret_cast<std::byte*>(home_), first_row_.back(),
                            dim, stride_, slots},
                   first_row_, options);
    tables_ = {reinterpret_cast<float*>(cache_->block().base),
               stride_,
               slots,
               dim,
               1,
               one_table_.get(),
               options.places};
    lookups_ = {nullptr, cuda::IdType::kInt32, one_range_.get(), options.lookups_max};
    groups_.emplace(tables_, options.lookups_max);
  }
  ~CachedTables() {
    cache_.reset();
    driver_.release_pinned(reinterpret_cast<std::byte*>(home_));
  }
  CachedTables(const CachedTables&) = delete;
  CachedTables& operator=(const CachedTables&) = delete;

  // Enqueues a step on the batch with these places: as many lookups as options.lookups_max.
  void step(const std::int32_t* places, float* out, const float* gradients,
            const cuda::Rates* rates) {
    cuda::Lookups lookups = lookups_;
    lookups.ids = places;
    fork_.record(stream());
    fork_.wait(side_.get());
    groups_->find(lookups, nullptr, side_.get());
    join_.record(side_.get());
    cuda::gather(tables_, lookups, out, stream());
    join_.wait(stream());
    cuda::apply(rule_, tables_, *groups_, gradients, rates, stream());
  }

  cuda::RowCache& cache() { return *cache_; }
  cuda::Queue& queue() { return queue_; }
  cudaStream_t stream() const { return queue_.stream(); }
  float* home() const { return home_; }
  std::int64_t stride() const { return stride_; }  // floats from row to row
  const std::vector<std::int64_t>& first_row() const { return first_row_; }

 private:
  std::size_t home_bytes() const {
    return static_cast<std::size_t>(first_row_.back() * stride_) * sizeof(float);
  }

  cuda::CudaDriver driver_{0};
  cuda::Queue queue_{driver_, cpu_device()};
  cuda::Rule rule_;
  std::int64_t stride_;
  std::vector<std::int64_t> first_row_;
  float* home_;
  cuda::Buffer<std::int64_t> one_table_, one_range_;
  std::optional<cuda::RowCache> cache_;
  cuda::Tables tables_;  // the cache's rows as one table
  cuda::Lookups lookups_;
  std::optional<cuda::RowGroups> groups_;
  OwnStream side_{OwnStream::Order::kAhead};
  Event fork_{Event::Use::kOrder}, join_{Event::Use::kOrder};
};

}  // namespace cairn::bench
