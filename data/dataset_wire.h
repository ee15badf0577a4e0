// A Dataset as bytes (data/pipeline.capnp), for the wire and for checkpoints.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace cairn {

inline constexpr std::size_t kDatasetBytesMax = 64u << 20;
inline constexpr std::size_t kDatasetStagesMax = 256;
inline constexpr std::size_t kDatasetColumnsMax = 4096;
inline constexpr std::size_t kPathsMax = 1u << 16;
inline constexpr std::size_t kVocabularyValuesMax = 4u << 20;

// Equal descriptions give equal bytes. InvalidArgument: larger than kDatasetBytesMax.
std::vector<std::byte> serialize(const Dataset& dataset);
// Reads and verifies as the calls of Dataset do. InvalidArgument: damaged, of another version, or
// beyond a limit; nothing is allocated on a sender's word alone.
Dataset parse_dataset(std::span<const std::byte> bytes);
// 64 bits of a hash over the description; what an IteratorState is bound to.
std::uint64_t fingerprint(const Dataset& dataset);

}  // namespace cairn
