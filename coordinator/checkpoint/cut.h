// CutMaker: the cut of a checkpoint: a moment at which every closure is done on all shards or on
// none. Pushes are held while every shard marks; training goes on otherwise.
//
// A cut is made when no closure is torn between shards, no push is in flight and every result has
// been read: what the shards have applied is then committed here, and step, positions and losses
// are noted at the same moment.
//
// However an attempt ends, the pushes are released, after 30 s of holding and 30 s of marking at
// the latest. The marks of an attempt that came to nothing are dropped.
//   Thread  the engine's. One cut at a time: Checkpointer calls make().
//   Errors  Unavailable: a ps was given up. Others: those that no repetition mends. If a task was
//           lost on the way, or too slow to hold its pushes or to mark, the cut is made anew once
//           that is mended.
//   Sets    RowSources::writing, from the marks on; cleared if the attempt comes to nothing. Of a
//           cut that was made the caller clears it when the rows are saved.
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/checkpoint/local_rows.h"
#include "coordinator/cluster/cluster_members.h"
#include "coordinator/cluster/loss_ledger.h"
#include "coordinator/cluster/session.h"
#include "coordinator/dispatch/checkpoint_view.h"
#include "coordinator/dispatch/closure_scheduler.h"
#include "coordinator/dispatch/shard_tables.h"
#include "coordinator/dispatch/table_lock.h"
#include "coordinator/journal/recorder.h"
#include "coordinator/progress/progress_book.h"
#include "rpc/loop/task.h"
#include "storage/row_encoding.h"

namespace cairn {

// The cluster's state at one cut.
struct Cut {
  std::uint64_t id = 0;    // of the checkpoint
  std::uint64_t mark = 0;  // by which the shards know the cut: another one for each attempt
  std::shared_ptr<const Layout> layout;
  AppliedClosures applied;
  std::int64_t global_step = 0;
  std::uint64_t lost_updates = 0;
  std::vector<PipelinePosition> positions;
  LossLedger::Holdings holdings;
  bool delta = false;  // of the base that was asked for, on some shard
  // By ps: its Ps::attached as its shards marked. One that was attached again has no mark any more.
  std::vector<std::uint64_t> attached;

  // Written by Checkpointer as it saves the rows:
  storage::ChosenEncoding encoding;
  std::string rows;                   // the folder that the shards write into
  std::vector<LocalRows> local_rows;  // by ps: a folder of each instead; empty: there is none
  std::vector<ShardSaved> saved;      // in the order of ClusterMembers::all_shards()
  // The ps and the number of each of these shards.
  std::vector<std::pair<std::uint32_t, ShardId>> savers;
  std::exception_ptr error;  // of the shard that failed first
};

// The parts of the engine that Checkpointer and its CutMaker both make a checkpoint with. All
// outlive the two.
struct CheckpointParts {
  Session& session;
  ClusterMembers& members;
  ShardTables& tables;
  TableLock& lock;
  RowSources& sources;
  ProgressBook& progress;
  LossLedger& losses;
  Recorder& recorder;
};

class CutMaker {
 public:
  CutMaker(const CheckpointParts& parts, ClosureScheduler& scheduler)
      : session_(parts.session),
        members_(parts.members),
        tables_(parts.tables),
        lock_(parts.lock),
        sources_(parts.sources),
        progress_(parts.progress),
        losses_(parts.losses),
        scheduler_(scheduler) {}

  // The cut of the checkpoint of this number, once it can be made.
  rpc::Task<Cut> make(std::uint64_t checkpoint, CutBase base);
  // Has every shard that is there forget a mark, and does not wait for it.
  void drop(std::uint64_t mark);

 private:
  bool may_be_made() const;
  rpc::Task<bool> mark_shards(Cut* cut, CutBase base);
  void take_positions(Cut& cut) const;

  Session& session_;
  ClusterMembers& members_;
  const ShardTables& tables_;
  const TableLock& lock_;
  RowSources& sources_;
  const ProgressBook& progress_;
  const LossLedger& losses_;
  ClosureScheduler& scheduler_;
  std::uint64_t marks_ = 0;  // of this coordinator
};

}  // namespace cairn
