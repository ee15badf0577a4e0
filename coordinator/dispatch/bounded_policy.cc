#include "coordinator/dispatch/bounded_policy.h"

#include <algorithm>
#include <utility>

#include "coordinator/dispatch/function_registry.h"

namespace cairn {

BoundedPolicy::BoundedPolicy(PolicyParts parts)
    : ConsistencyPolicy(std::move(parts)), steps_(parts_.session.options.consistency.steps()) {}

bool BoundedPolicy::fits(const Closure& next) const {
  if (open_.empty()) return true;
  return begun_ + pushes_of(*next.function) - open_.begin()->second.ended_before <= limit();
}

void BoundedPolicy::begun(const std::shared_ptr<Closure>& closure, const LaneState&) {
  if (passes(*closure)) return;
  const std::uint64_t pushes = pushes_of(*closure->function);
  open_.try_emplace(closure->sequence, Open{pushes, ended_});
  begun_ += pushes;
  give_step(*closure);
}

void BoundedPolicy::ended(const Closure& closure) {
  const auto found = open_.find(closure.sequence);
  if (found == open_.end()) return;
  ended_ += found->second.pushes;
  open_.erase(found);
}

std::size_t BoundedPolicy::lane_window(std::size_t most) const {
  return std::min<std::size_t>(most, std::max(1u, steps_ / 2));
}

// The open closure that left the queue first is the one that all others wait for.
std::string BoundedPolicy::held_back(const Closure& next) const {
  if (may_start(next)) return "";
  const auto& [sequence, oldest] = *open_.begin();
  const std::uint64_t landed = ended_ - oldest.ended_before;
  const std::uint64_t under_way = begun_ - oldest.ended_before - landed - oldest.pushes;
  return str("waiting for the bound: closure ", sequence, " ", place_of(sequence), " is ", landed,
             " updates behind, with ", under_way, " more under way; bounded(", steps_, ") allows ",
             limit() - 1);
}

// Once for each function.
std::uint64_t BoundedPolicy::pushes_of(const RegisteredFunction& function) const {
  if (function.id >= pushes_.size()) pushes_.resize(function.id + 1);
  std::uint64_t& pushes = pushes_[function.id];
  if (pushes == 0) pushes = count_pushes(function.concrete->graph);
  return pushes;
}

}  // namespace cairn
