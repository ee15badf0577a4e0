// The records that the wide-deep benchmark reads, of the layout that other systems' benchmarks read
// as well.
#pragma once
#include <cstdint>
#include <string>

#include "data/dataset/dataset.h"

namespace cairn::bench {

inline constexpr std::int64_t kWideDeepExamples = 32'768, kWideDeepBatch = 256;
inline constexpr std::int64_t kDeepColumns = 8, kDeepRows = 1000, kWideColumns = 10,
                              kWideRows = 28'000, kNumbers = 8;

// f32 label | f32 numeric[8] | i32 deep_id[8], each below 1,000 | i32 wide_id[10], each below
// 28,000. Ids are skewed and few, as categories are; the label depends on them. The same seed gives
// the same bytes.
void write_wide_deep_records(const std::string& file, std::uint64_t seed);

// Batches of it, for ever.
Dataset wide_deep_batches(const std::string& file, std::int64_t prefetch,
                          std::int64_t batch = kWideDeepBatch);

}  // namespace cairn::bench
