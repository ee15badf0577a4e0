#include "coordinator/dispatch/dispatch_gate.h"

namespace cairn {
namespace {

std::string place_of(std::uint64_t sequence, const ClusterMembers& members) {
  for (const Lane* lane : members.lanes)
    if (lane->inflight.find(sequence) || (lane->preparing && lane->preparing->sequence == sequence))
      return str("on ", lane->worker->name, " lane ", lane->index);
  return "(to be run again)";
}

}  // namespace

// Told in the order in which the obstacles are removed: tables are made only once every ps is
// there, and rows are brought into them last.
std::string DispatchGate::obstacle(const Closure& closure) const {
  for (const auto& ps : members_.ps)
    if (closure.function->uses_variables && !ps->ready)
      return str("waiting for ", ps->name, ", which is away (", ps->trouble, ")");
  if (!tables_.have(closure.oldest_layout)) return "waiting for the ps to make its tables";
  if (closure.function->uses_variables && lock_.held())
    return "waiting for tables to be made or restored";
  return bound_obstacle(closure);
}

std::string DispatchGate::bound_obstacle(const Closure& closure) const {
  const auto oldest = bound_.holder(closure);
  if (!oldest) return rounds_.holder(closure);
  return str("waiting for the bound: closure ", oldest->sequence, " ",
             place_of(oldest->sequence, members_), " is ", oldest->landed, " updates behind, with ",
             oldest->under_way, " more under way; bounded(", bound_.steps(), ") allows ",
             bound_.limit() - 1);
}

}  // namespace cairn
