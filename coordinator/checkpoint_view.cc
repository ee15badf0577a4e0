#include "coordinator/checkpoint_view.h"

namespace cairn {

bool CheckpointView::holds(const VariableSpec& spec) const {
  auto found = variables.find(spec.name);
  if (found == variables.end()) return false;
  TensorType wanted{spec.dtype, spec.shape};
  const bool same = found->second.type == wanted;
  if (!same && partial) return false;
  if (!same)
    throw FailedPreconditionError(str(
        "variable \"", spec.name, "\" is ", wanted.to_string(), ", in checkpoint ", folder,
        " it is ", found->second.type.to_string(), ": restore it with the model that saved it"));
  return true;
}

}  // namespace cairn
