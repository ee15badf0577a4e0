#include "coordinator/dispatch/checkpoint_view.h"

namespace cairn {

// Rows of another dtype or shape are no rows of this variable. To begin it anew in silence would
// train on half a model, so this is an error unless the program said that it expects it.
std::optional<RowMove> CheckpointView::move_of(const VariableSpec& spec) const {
  if (partial && !plan->fits(spec)) return std::nullopt;
  return plan->move_of(spec);
}

}  // namespace cairn
