// Requests about checkpoints, and what a shard answers them: see shard.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/rows/shard_version.h"
#include "ps/shard/applied.h"
#include "storage/row_block.h"
#include "storage/row_log/row_reads.h"
#include "storage/row_store.h"

namespace cairn::ps {

// The memory that rows copied aside may take while a checkpoint is written.
struct SaveMemory {
  // Less than this is no bound that is worth a wait: it is the least where a share is given.
  static constexpr std::size_t kBytesMin = std::size_t{16} << 20;

  double share = 0.25;    // of the bytes of the rows
  std::size_t bytes = 0;  // of this shard, instead of a share; 0: the share
};

struct MarkOptions {
  // An earlier mark, whose checkpoint is whole and on the disk: the rows that changed since it are
  // all that this one's has to hold. 0: it holds all.
  std::uint64_t base = 0;
  bool track = false;  // which rows change from now on, so that this mark may be a base
  // This mark is none to go on from: what changed since an earlier one is still noted, so that that
  // one may be a base afterwards.
  bool passing = false;
};
struct MarkResult {
  ShardVersion version;
  AppliedSet applied;
  bool delta = false;  // of the base; otherwise all rows that were ever touched
};

// Rows of a marked table that are saved in any order (Shard::next_unordered()), or that were
// elsewhere (Shard::next_elsewhere()).
struct UnorderedRows {
  storage::TableRecord table;
  storage::StoredRows rows;
  std::vector<std::int64_t> gone;  // of the whole variable, ascending
};
struct RowsElsewhere {
  storage::TableRecord table;
  storage::StoredRows layout;  // of each of them
  storage::ReadRows read;      // by local row number, or what went wrong
};

// A database of a checkpoint that the shard has written.
struct SavedDatabase {
  std::vector<storage::FileInfo> files;  // named relative to the folder: "<database>/<file>"
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
};

// The outcome of a restore of this shard, gathered by restore(), returned by end_restore().
struct RestoreReport {
  std::uint64_t rows = 0;
  // variables of this shard that the checkpoint does not have: they keep their initial values
  std::vector<std::string> missing;
  // variables whose optimizer changed: their slots begin anew
  std::vector<std::string> slots_reset;
};

}  // namespace cairn::ps
