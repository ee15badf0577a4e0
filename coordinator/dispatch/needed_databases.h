// Which databases of a checkpoint a shard reads to restore its rows. All of those in the
// checkpoint's folder, as they say themselves which rows they hold; of those in local folders of
// the ps, which are not on every machine, only the ones that hold any of them by the manifest.
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
