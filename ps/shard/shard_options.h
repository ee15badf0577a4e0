// ShardOptions, and who looks on: see shard.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/incarnation.h"
#include "core/base/machine.h"
#include "ps/shard/checkpoint_requests.h"
#include "ps/shard/requests.h"
#include "ps/shard/row_source.h"
#include "ps/shard/row_waits.h"
#include "ps/shard/staging.h"
#include "ps/shard/tiered_rows.h"

namespace cairn::ps {

class ChangeLog;

// Sees what a shard does about pushes. For tests of a whole cluster; called on the shard's thread.
class PushObserver {
 public:
  virtual void fenced(LaneIncarnation newest, std::span<const LaneIncarnation> alive) = 0;
  // not applied: it was a duplicate. `staleness` as the push is answered it.
  // A share of a round counts as applied when it is kept.
  virtual void pushed(const StepContext& step, bool applied, std::uint64_t staleness) = 0;
  // `applied`: now, and not before.
  virtual void applied_round(const RoundRequest&, bool /*applied*/) {}

 protected:
  ~PushObserver() = default;
};

struct ShardOptions {
  Lineage lineage = 1;  // until the first restore; never none
  // of values a pull; callers cut theirs to about 4 MB
  std::size_t answer_bytes_max = std::size_t{32} << 20;
  // of all rows and slots that it is configured with
  std::size_t tables_bytes_max = machine_memory_bytes();
  std::size_t tables_max = 1 << 20;
  StagingOptions staging;
  // Where rows are that are not in memory; outlives the shard. Null: all of them are.
  RowSource* row_source = nullptr;
  TieringOptions tiering;  // instead of it
  RowWaitsOptions waits;
  SaveMemory save_memory;
  PushObserver* observer = nullptr;  // is not told what a copy replays
  // Outlives the shard. Null: nobody follows its changes.
  ChangeLog* log = nullptr;
};

}  // namespace cairn::ps
