// ReplicationOptions: how a ps sends the backups of its shards what happens to their rows.
#pragma once
#include <cstddef>

#include "core/base/clock.h"

namespace cairn::ps {

struct ReplicationOptions {
  // A backup that has not acknowledged a record for so long is sent nothing any more.
  Duration patience = std::chrono::seconds(1);
  // At most so much waits to be sent to a backup whose rows are being copied.
  std::size_t unsent_bytes_max = std::size_t{256} << 20;
  std::size_t block_bytes = std::size_t{1} << 20;
};

}  // namespace cairn::ps
