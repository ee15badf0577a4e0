#include "ps/server/memory_shares.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn::ps {
namespace {

// Code, connections and their buffers, the heap's own: what a ps takes without rows, and with
// messages under way.
constexpr std::size_t kProcessBytes = std::size_t{96} << 20;
constexpr std::size_t kRowsMin = std::size_t{8} << 20;  // of a shard
constexpr std::size_t kRunMin = std::size_t{1} << 20, kRunMax = std::size_t{64} << 20;
// A run is this part of the rows, and while it is written, its blocks are in memory once more.
constexpr double kRunShare = 1.0 / 16, kRunCost = 1.5 * kRunShare;

}  // namespace

std::size_t memory_for_rows(const PsServerOptions& options) {
  const std::size_t rest = options.memory_limit - std::min(options.memory_limit, kProcessBytes);
  const SaveMemory& save = options.shard.save_memory;
  const std::size_t of_shard = rest / std::max<std::uint32_t>(options.shards, 1);
  const std::size_t copies = std::min(of_shard, save.bytes);
  return static_cast<std::size_t>(static_cast<double>(of_shard - copies) /
                                  (1 + kRunCost + (save.bytes > 0 ? 0 : save.share)));
}

std::size_t run_bytes(std::size_t memory_for_rows) {
  return std::clamp(static_cast<std::size_t>(static_cast<double>(memory_for_rows) * kRunShare),
                    kRunMin, kRunMax);
}

void verify_memory_limit(const PsServerOptions& options) {
  if (memory_for_rows(options) >= kRowsMin) return;
  const double save = options.shard.save_memory.bytes > 0 ? 0 : options.shard.save_memory.share;
  const double needed =
      static_cast<double>(options.shards) * (static_cast<double>(kRowsMin) * (1 + kRunCost + save) +
                                             static_cast<double>(options.shard.save_memory.bytes)) +
      static_cast<double>(kProcessBytes);
  throw InvalidArgumentError(str("a memory limit of ", options.memory_limit / 1'000'000,
                                 " MB is too little for ", options.shards,
                                 " shards, copies for a checkpoint and the process itself: give at "
                                 "least ",
                                 static_cast<std::size_t>(needed / 1e6) + 1,
                                 " MB, or fewer --shards"));
}

}  // namespace cairn::ps
