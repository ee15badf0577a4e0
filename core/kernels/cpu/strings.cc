// Text and keys to numbers.
#include <algorithm>
#include <string>

#include "core/kernels/cpu/kernel_table.h"

namespace cairn {
namespace {

// FNV-1a (Fowler, Noll, Vo), then the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014):
// FNV's low bits alone are poor. A trained model's rows are found by this hash, so it may never
// change; data/feature/hash.h has the same one for features that are hashed in a pipeline.
std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

KernelRun prepare_hash(const KernelTypes& types) {
  auto buckets = static_cast<std::uint64_t>(types.attributes.get<std::int64_t>("buckets"));
  return [n = types.inputs[0].shape.elements(), buckets](const KernelCall& call) {
    for (std::int64_t i = 0; i < n; ++i)
      output_of<std::int64_t>(call)[i] =
          static_cast<std::int64_t>(hash(input_of<std::string>(call, 0)[i]) % buckets);
  };
}

// The sender of the graph may not have sorted the keys. Then a key may be missed, but the position
// is within bounds all the same.
template <typename Key>
KernelRun find_key(std::int64_t n, std::int64_t sorted) {
  return [n, sorted](const KernelCall& call) {
    const Key *asked = input_of<Key>(call, 0), *begin = input_of<Key>(call, 1);
    const Key* const end = begin + sorted;
    for (std::int64_t i = 0; i < n; ++i) {
      const Key* const at = std::lower_bound(begin, end, asked[i]);
      output_of<std::int64_t>(call)[i] = at != end && *at == asked[i] ? at - begin : sorted;
    }
  };
}

KernelRun prepare_find_key(const KernelTypes& types) {
  const std::int64_t n = types.inputs[0].shape.elements();
  const std::int64_t sorted = types.inputs[1].shape.elements();
  return types.inputs[0].dtype == DType::kString ? find_key<std::string>(n, sorted)
                                                 : find_key<std::int64_t>(n, sorted);
}

constexpr CpuKernel kStringsKernels[] = {{"string_hash_bucket", prepare_hash},
                                         {"find_key", prepare_find_key}};

}  // namespace

std::span<const CpuKernel> string_kernels() { return kStringsKernels; }

}  // namespace cairn
