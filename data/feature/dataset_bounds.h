// Bounds of descriptions: no sensible dataset reaches them, and none that comes over the wire makes
// its reader take more.
#pragma once
#include <cstddef>

namespace cairn {

inline constexpr std::size_t kDatasetBytesMax = 64u << 20;
inline constexpr std::size_t kDatasetStagesMax = 256;
inline constexpr std::size_t kDatasetColumnsMax = 4096;
inline constexpr std::size_t kPathsMax = 1u << 16;
inline constexpr std::size_t kVocabularyValuesMax = 4u << 20;

}  // namespace cairn
