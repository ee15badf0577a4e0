// Between the engine's view of a checkpoint and storage's manifest.
//   Thread  any that may touch files.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/cluster/engine_options.h"
#include "coordinator/dispatch/checkpoint_view.h"
#include "coordinator/progress/pipelines.h"
#include "coordinator/restore/restore_plan.h"
#include "core/disk/disk.h"
#include "storage/manifest.h"

namespace cairn {

struct Cut;

std::uint64_t next_checkpoint_id(Disk& disk, const std::string& folder);
std::string checkpoint_path(const std::string& folder, std::uint64_t id);
// Commits the checkpoint: before this it does not exist. `base` is the name of the one that it is a
// delta of.
void write_manifest(Disk& disk, const std::string& path, const CheckpointView& checkpoint,
                    const Cut& cut, const CheckpointPolicy& policy, const std::string& metadata,
                    std::int64_t wall_microseconds, const std::string& base);
// Links the databases of the checkpoint in `base` into the folder `path` of one that is a delta of
// it, under names that are their own there: its own are "ckpt-00000007.ps-0-shard-0" there. Where
// files have no links, or lie in local folders of the ps, the delta names them where they are.
//   Errors  NotFound, DataLoss: the base is not there any more, or damaged; the disk's.
std::vector<storage::DatabaseInfo> link_databases(Disk& disk, const std::string& base,
                                                  const std::string& path);
// Where a pipeline stands.
storage::DatasetPosition to_manifest(const PipelinePosition& position);
PipelinePosition from_manifest(const storage::DatasetPosition& saved);
// The folder that shards write their databases into, for the checkpoint at `path`: the same one, or
// one beside it (rows_folder_name()).
std::string rows_path(const Disk& disk, const std::string& path, std::uint64_t session,
                      std::uint64_t attempt);
// Databases that were written into `rows`, named from the checkpoint at `path`.
void name_from(const std::string& path, const std::string& rows, storage::DatabaseInfo& database);
// Looks for what the shards say that they wrote into `rows`, before a manifest says it. A ps that
// does not share the folder has written it on its own machine.
//   Errors  FailedPrecondition: a file is not there, or has another size; says what to do.
void verify_shared(const Disk& disk, const std::string& rows, const std::vector<ShardSaved>& saved);
// After a save that has failed: removes what it has left, if no checkpoint is made of it.
void sweep(Disk& disk, const std::string& path, const std::string& rows, std::uint64_t session);
// The databases that a shard wrote.
std::vector<storage::DatabaseInfo> databases_of(const ShardSaved& shard);
// The databases that all shards wrote for the cut, named from the checkpoint at `path`.
std::vector<storage::DatabaseInfo> own_databases(const std::string& path, const Cut& cut);
SavedVariables saved_variables(const storage::Manifest& manifest);
// Reads the checkpoint at `path` and plans a restore of it with these options.
//   Errors  NotFound, DataLoss: as storage has them. InvalidArgument: as RestorePlan.
CheckpointView read_manifest(Disk& disk, const std::string& path,
                             const RestoreOptions& options = {});
// Removes, of the checkpoints of the saver of `checkpoint` and its ancestors, those that the policy
// does not keep.
void remove_older(Disk& disk, const CheckpointPolicy& policy, const CheckpointView& checkpoint);

}  // namespace cairn
