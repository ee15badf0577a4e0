// Chooses the databases of a checkpoint that a shard reads to restore its rows. It reads every
// database in the checkpoint's folder. A local folder of a ps may be on another machine, so the
// shard reads a database there only if the manifest says that it holds rows for it.
//   Thread  the engine's.
#pragma once
#include <string>
#include <vector>

#include "coordinator/dispatch/checkpoint_view.h"
#include "core/rows/layout.h"
#include "storage/manifest.h"

namespace cairn {

// Those that hold rows of the checkpoint that parts of these variables on the shard may take.
std::vector<storage::DatabaseInfo> needed_databases(const CheckpointView& source,
                                                    const Layout& layout, ShardId shard,
                                                    const std::vector<VariableId>& wanted);
// Those that hold rows of this variable of the checkpoint.
std::vector<storage::DatabaseInfo> needed_databases(const CheckpointView& source,
                                                    const std::string& saved);
std::vector<std::string> names_of(const std::vector<storage::DatabaseInfo>& databases);

}  // namespace cairn
