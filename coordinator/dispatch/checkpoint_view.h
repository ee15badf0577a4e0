// CheckpointView: a checkpoint as the engine uses it, where rows, step, positions and applied
// closures come from. RowSources: the two of them that tables take their rows from.
//   Thread  the engine's; a view that was read or committed does not change, but for `partial`.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cluster/loss_ledger.h"
#include "coordinator/cluster/shard_client.h"
#include "coordinator/progress/pipelines.h"
#include "coordinator/restore/restore_options.h"
#include "coordinator/restore/restore_plan.h"
#include "storage/manifest.h"

namespace cairn {

struct CheckpointView {
  std::string folder;
  std::vector<storage::DatabaseInfo> databases;
  std::uint64_t checkpoint = 0;  // its number in its folder
  std::uint64_t session = 0;
  std::vector<storage::Ancestor> ancestors;  // of the session
  std::uint64_t seed = 0;
  std::int64_t global_step = 0;
  std::uint64_t lost_updates = 0;  // on the way to it
  AppliedClosures applied;
  std::shared_ptr<const RestorePlan> plan = std::make_shared<RestorePlan>();  // of its variables
  bool partial = false;    // variables of another dtype or shape begin anew, without a word
  bool on_demand = false;  // RestoreOptions::on_demand
  RestoreOptions options;  // of the plan
  std::vector<PipelinePosition> positions;
  LossLedger::Holdings holdings;  // of this session's updates

  // The rows of the checkpoint that the variable takes; none: it keeps its initial values.
  // FailedPrecondition: they do not fit it, and a partial restore is not expected.
  std::optional<RowMove> move_of(const VariableSpec& spec) const;
};

// Where rows come from that no shard has. Written by Checkpointer.
struct RowSources {
  // The checkpoint that the program restored, for rows of new variables. Null: none was restored.
  std::shared_ptr<CheckpointView> restored;
  // The source for rebuilding a lost ps: the newest checkpoint of this run, or `restored`.
  std::shared_ptr<CheckpointView> newest;
  // A cut is marked on the shards, or its rows are on their way to the disk: `newest` is about to
  // be replaced, and a shard cannot be restored meanwhile.
  bool writing = false;
};

}  // namespace cairn
