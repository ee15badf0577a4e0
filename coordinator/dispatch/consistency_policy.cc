#include "coordinator/dispatch/consistency_policy.h"

#include <utility>

#include "coordinator/dispatch/asynchronous_policy.h"
#include "coordinator/dispatch/bounded_policy.h"
#include "coordinator/dispatch/hybrid_consistency.h"
#include "coordinator/dispatch/hybrid_policy.h"
#include "coordinator/dispatch/synchronous_policy.h"

namespace cairn {

std::unique_ptr<ConsistencyPolicy> make_policy(PolicyParts parts) {
  const Consistency& wanted = parts.session.options.consistency;
  if (HybridConsistency::is(wanted)) return std::make_unique<HybridPolicy>(std::move(parts));
  if (wanted.in_rounds()) return std::make_unique<SynchronousPolicy>(std::move(parts));
  if (wanted.steps() > 0) return std::make_unique<BoundedPolicy>(std::move(parts));
  return std::make_unique<AsynchronousPolicy>(std::move(parts));
}

bool ConsistencyPolicy::may_start(const Closure&) const { return true; }

bool ConsistencyPolicy::goes_first(const Closure&) const { return false; }

LaneState* ConsistencyPolicy::lane_for(const Closure&, LaneState* least_loaded) const {
  return least_loaded;
}

void ConsistencyPolicy::begun(const std::shared_ptr<Closure>& closure, const LaneState&) {
  if (closure->function->updates && closure->global_step < 0) give_step(*closure);
}

bool ConsistencyPolicy::still_wanted(const Closure&) const { return true; }

std::size_t ConsistencyPolicy::lane_window(std::size_t most) const { return most; }

ConsistencyPolicy::Answer ConsistencyPolicy::answered(const std::shared_ptr<Closure>&, LaneState&,
                                                      LaneReply&) {
  return Answer::kEnds;
}

void ConsistencyPolicy::lost(const Closure&) {}

bool ConsistencyPolicy::pushes_alone(const Closure&) const { return true; }

void ConsistencyPolicy::ended(const Closure&) {}

bool ConsistencyPolicy::waits_for_elements() const { return true; }

void ConsistencyPolicy::settle() {}

void ConsistencyPolicy::sent() {}

std::string ConsistencyPolicy::held_back(const Closure&) const { return ""; }

std::optional<ConsistencyPolicy::Held> ConsistencyPolicy::held() const { return std::nullopt; }

void ConsistencyPolicy::resume(const std::vector<std::shared_ptr<Closure>>&,
                               const std::optional<journal::RoundNamed>&) {}

void ConsistencyPolicy::verify_members() const {}

std::uint32_t ConsistencyPolicy::lanes_used(const Worker&, std::uint32_t lanes) const {
  return lanes;
}

void ConsistencyPolicy::verify(const RegisteredFunction&) const {}

void ConsistencyPolicy::give_step(Closure& closure) {
  closure.global_step = parts_.progress.give_step(closure.function->steps);
}

std::string ConsistencyPolicy::place_of(std::uint64_t sequence) const {
  for (const LaneState* lane : members().lanes)
    if (lane->inflight.find(sequence) || (lane->preparing && lane->preparing->sequence == sequence))
      return str("on ", lane->worker->name, " lane ", lane->index);
  return "(to be run again)";
}

}  // namespace cairn
