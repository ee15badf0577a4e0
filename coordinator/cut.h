// CutMaker: the cut of a checkpoint: a moment at which every closure is done on all shards or on
// none. Pushes are held while every shard marks; training goes on otherwise.
//
// A cut is made when no closure is torn between shards, no push is in flight and every result has
// been read: what the shards have applied is then committed here, and step, positions and losses
// are noted at the same moment.
//   Thread  the engine's. One cut at a time: Checkpointer calls make().
//   Errors  Unavailable: a ps was given up. Others: what no repetition mends. If somebody was lost
//           on the way, or too slow to hold its pushes, the cut is made anew once that is mended.
//   Sets    RowSources::writing, from the marks on. The caller clears it when the rows are saved.
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "coordinator/checkpoint_view.h"
#include "coordinator/cluster_members.h"
#include "coordinator/dispatcher.h"
#include "coordinator/loss_ledger.h"
#include "coordinator/progress_book.h"
#include "coordinator/session.h"
#include "coordinator/shard_tables.h"
#include "coordinator/table_lock.h"
#include "rpc/task.h"

namespace cairn {

// What one cut found.
struct Cut {
  std::uint64_t id = 0;    // of the checkpoint
  std::uint64_t mark = 0;  // by which the shards know the cut: another one for each attempt
  std::shared_ptr<const Layout> layout;
  AppliedClosures applied;
  std::int64_t global_step = 0;
  std::uint64_t lost_updates = 0;
  std::vector<PipelinePosition> positions;
  LossLedger::Holdings holdings;
  // by ps: of which time that it was attached its marks are
  std::vector<std::uint64_t> attached;
  std::vector<ShardSaved> saved;  // in the order of ClusterMembers::all_shards()
  std::exception_ptr error;       // the first of a save's
};

// What a checkpoint is made of: the parts that Checkpointer and its CutMaker both work with. All
// outlive the two.
struct CheckpointParts {
  Session& session;
  ClusterMembers& members;
  ShardTables& tables;
  TableLock& lock;
  RowSources& sources;
  ProgressBook& progress;
  LossLedger& losses;
};

class CutMaker {
 public:
  CutMaker(const CheckpointParts& parts, Dispatcher& dispatcher)
      : session_(parts.session),
        members_(parts.members),
        tables_(parts.tables),
        lock_(parts.lock),
        sources_(parts.sources),
        progress_(parts.progress),
        losses_(parts.losses),
        dispatcher_(dispatcher) {}

  rpc::Task<Cut> make(std::uint64_t checkpoint);
  // Has the shards forget a mark, without waiting for it.
  void drop(std::uint64_t mark);

 private:
  bool may_be_made() const;
  rpc::Task<bool> mark_shards(Cut* cut);
  void take_positions(Cut& cut) const;

  Session& session_;
  ClusterMembers& members_;
  const ShardTables& tables_;
  const TableLock& lock_;
  RowSources& sources_;
  const ProgressBook& progress_;
  const LossLedger& losses_;
  Dispatcher& dispatcher_;
  std::uint64_t next_mark_ = 1;
};

}  // namespace cairn
