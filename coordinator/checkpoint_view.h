// A checkpoint as the engine uses it: where rows, step, positions and applied closures come from.
#pragma once
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "coordinator/engine.h"
#include "coordinator/loss_ledger.h"
#include "coordinator/pipelines.h"
#include "coordinator/restore_status.h"
#include "coordinator/shard_client.h"
#include "storage/manifest.h"

namespace cairn {

struct Engine::CheckpointView {
  std::string folder;
  // folders of the shards' databases, relative to `folder`
  std::vector<std::string> databases;
  std::uint64_t checkpoint = 0;  // its number in its folder
  std::uint64_t session = 0;
  std::vector<storage::Ancestor> ancestors;  // of the session
  std::uint64_t seed = 0;
  std::int64_t global_step = 0;
  std::uint64_t lost_updates = 0;  // on the way to it
  AppliedClosures applied;
  SavedVariables variables;
  bool partial = false;  // variables of another dtype or shape begin anew, without a word
  std::vector<PipelinePosition> positions;
  LossLedger::Holdings holdings;  // of this session's updates

  // Does the checkpoint hold the variable? If not, it keeps its initial values.
  // FailedPrecondition: it has another dtype or shape there, and a partial restore is not expected.
  bool holds(const VariableSpec& spec) const;
};

// What one cut found.
struct Engine::Cut {
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
  std::vector<ShardSaved> saved;  // in the order of all_shards()
  std::exception_ptr error;       // the first of a save's
};

}  // namespace cairn
