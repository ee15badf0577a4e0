#include "coordinator/dispatch/staleness_bound.h"

#include "coordinator/dispatch/function_registry.h"

namespace cairn {

bool StalenessBound::fits(const Closure& next) const {
  if (open_.empty()) return true;
  return begun_ + pushes_of(*next.function) - open_.begin()->second.ended_before <= limit();
}

void StalenessBound::open(const Closure& closure) {
  const std::uint64_t pushes = pushes_of(*closure.function);
  open_.try_emplace(closure.sequence, Open{pushes, ended_});
  begun_ += pushes;
}

void StalenessBound::close(const Closure& closure) {
  const auto found = open_.find(closure.sequence);
  if (found == open_.end()) return;
  ended_ += found->second.pushes;
  open_.erase(found);
}

std::optional<StalenessBound::Oldest> StalenessBound::holder(const Closure& next) const {
  if (steps_ == 0 || passes(next) || fits(next)) return std::nullopt;
  const auto& [sequence, oldest] = *open_.begin();
  const std::uint64_t landed = ended_ - oldest.ended_before;
  return Oldest{sequence, landed, begun_ - oldest.ended_before - landed - oldest.pushes};
}

// Once for each function.
std::uint64_t StalenessBound::pushes_of(const RegisteredFunction& function) const {
  if (function.id >= pushes_.size()) pushes_.resize(function.id + 1);
  std::uint64_t& pushes = pushes_[function.id];
  if (pushes == 0) pushes = count_pushes(function.concrete->graph);
  return pushes;
}

}  // namespace cairn
