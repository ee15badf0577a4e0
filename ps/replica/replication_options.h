// ReplicationOptions: how a ps sends the backups of its shards what happens to their rows.
#pragma once
#include <cstddef>

#include "core/base/clock.h"

namespace cairn::ps {

struct ReplicationOptions {
  // A backup that has not acknowledged a record for so long is sent nothing any more.
  Duration patience = std::chrono::seconds(1);
  // A shard that may be replaced answers pulls and pushes for so long after it last heard of its
  // coordinator or of its backups.
  Duration lease = std::chrono::seconds(1);
  // At most so much waits to be sent to a backup whose rows are being copied.
  std::size_t unsent_bytes_max = std::size_t{256} << 20;
  // In about this time the backups compare all of their rows with the primary's. 0: never.
  Duration comparison = std::chrono::minutes(1);
  // So much is compared at a time. Rows of a hashed table, which are found one by one, take about
  // 3 ms per MB, and pushes wait meanwhile.
  std::size_t compared_bytes = std::size_t{256} << 10;
  std::size_t block_bytes = std::size_t{1} << 20;
};

}  // namespace cairn::ps
