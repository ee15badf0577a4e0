#include "coordinator/dispatch/dispatch_gate.h"

namespace cairn {

// In the order in which the obstacles are removed: tables are made only once every ps is
// there, and rows are brought into them last.
std::string DispatchGate::obstacle(const Closure& closure) const {
  for (const auto& ps : members_.ps)
    if (closure.function->uses_variables && !ps->ready)
      return str("waiting for ", ps->name, ", which is away (", ps->trouble, ")");
  if (!tables_.have(closure.oldest_layout)) return "waiting for the ps to make its tables";
  if (closure.function->uses_variables && lock_.held())
    return "waiting for tables to be made or restored";
  return policy_.held_back(closure);
}

}  // namespace cairn
