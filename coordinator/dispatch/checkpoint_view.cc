#include "coordinator/dispatch/checkpoint_view.h"

namespace cairn {

bool CheckpointView::holds(const VariableSpec& spec) const {
  auto found = variables.find(spec.name);
  if (found == variables.end()) return false;
  TensorType wanted{spec.dtype, spec.shape};
  // Rows of another dtype or shape are no rows of this variable. To begin it anew in silence would
  // train on half a model, so this is an error unless the program said that it expects it.
  const bool same = found->second.type == wanted;
  if (!same && partial) return false;
  if (!same)
    throw FailedPreconditionError(str(
        "variable \"", spec.name, "\" is ", wanted.to_string(), ", in checkpoint ", folder,
        " it is ", found->second.type.to_string(), ": restore it with the model that saved it"));
  return true;
}

}  // namespace cairn
