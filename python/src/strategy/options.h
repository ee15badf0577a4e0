// Options of strategies and of checkpoints.
#pragma once
#include <memory>

#include "coordinator/cluster/engine_options.h"
#include "coordinator/cluster/restore_status.h"
#include "fields.h"
#include "owner.h"
#include "strategy/strategies.h"

namespace cairn::python {

// A Consistency, or the word of one without a number.
Consistency consistency_of(nb::handle given);
// The result of restore().
struct Restored {
  RestoreStatus status;
  SharedOwner owner;
  RestoreStatus& get() {
    owner->strategy();
    return status;
  }
};
// A folder, or a CheckpointPolicy.
CheckpointPolicy policy_of(nb::handle given);
// RestoreOptions, or the defaults for None.
RestoreOptions restore_options_of(nb::handle given);
// Saves and restores: the methods that strategies and coordinators share.
std::string save_by(const StrategyObject& of, nb::handle policy, const std::string& metadata);
Restored restore_by(const StrategyObject& of, const std::string& checkpoint, nb::handle options);
inline constexpr const char* kSaveSignature =
    "def save(self, folder: str | CheckpointPolicy, metadata: str = '{}') -> str";
inline constexpr const char* kRestoreSignature =
    "def restore(self, checkpoint: str, options: RestoreOptions | None = None) -> RestoreStatus";

void bind_consistency(nb::module_& m);
void bind_checkpoint_options(nb::module_& m);
void bind_engine_options(nb::module_& m);
void bind_cluster_spec(nb::module_& m);
void bind_local_cluster(nb::module_& m);
void bind_row_stream(nb::module_& m);
void bind_collectives(nb::module_& m);
void bind_restore_plan(nb::module_& m);

}  // namespace cairn::python
