#include "collective/local/group_store.h"

namespace cairn {

// If the rows are in one place, no member may read on before member 0 has applied the push.
void GroupStore::push(const StepContext& step, std::span<Update> updates) {
  const bool one_place = which_ == Rows::kOnePlace;
  const bool applies = !one_place || first_;
  const auto role = applies ? SharedUpdates::Role::kApplies : SharedUpdates::Role::kTakesPart;
  const std::span<Update> merged = updates_.merged(updates, role);
  if (applies && !merged.empty()) rows_.push(step, merged);
  if (one_place || updates_.shared()) updates_.applied();
}

}  // namespace cairn
