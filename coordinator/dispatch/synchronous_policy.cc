#include "coordinator/dispatch/synchronous_policy.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"

namespace cairn {

SynchronousPolicy::SynchronousPolicy(PolicyParts parts)
    : RoundsPolicy(std::move(parts)),
      backups_(parts_.session.options.consistency.backup_workers()) {}

void SynchronousPolicy::verify_members() const {
  if (backups_ >= members().workers.size())
    throw InvalidArgumentError(str(parts_.session.options.consistency.text(), " with ",
                                   members().workers.size(),
                                   " workers: a round would wait for none of them; at most ",
                                   members().workers.size() - 1, " can be backup workers"));
}

bool SynchronousPolicy::fits(const Closure& next) const {
  if (applying_) return false;
  if (alone_ != 0) return next.sequence == alone_;
  if (has(next)) return true;
  if (next.function->assigns) return open_.members.empty();
  return can_join(open_, next) && any_may_join(open_);
}

void SynchronousPolicy::open(Round& round, std::int64_t steps) {
  round.number = next_number();
  round.step = parts_.progress.give_step(steps);
}

// The lanes of a worker are as slow as it is.
std::size_t SynchronousPolicy::spare_lanes() const {
  std::size_t most = 0;
  for (const auto& worker : members().workers) most = std::max(most, worker->lanes.size());
  return backups_ * most;
}

// A round that is short of members waits for more, as long as some may come.
bool SynchronousPolicy::complete() const {
  std::size_t answered = 0;
  bool owed = false;  // the answer of one that was left out before
  for (const auto& [number, member] : open_.members) {
    answered += member.lane != nullptr ? 1 : 0;
    owed |= member.lane == nullptr && member.waited_for;
  }
  const bool all = answered == open_.members.size();
  if (open_.closed) return all;
  const std::size_t whole = std::max(lanes_ready(), open_.members.size()), spare = spare_lanes();
  if (!owed && answered >= (whole > spare ? whole - spare : 1)) return true;
  return all && none_to_come();
}

// Those that have not answered are no members any more.
void SynchronousPolicy::before_applying() {
  for (auto at = open_.members.begin(); at != open_.members.end();) {
    if (at->second.lane != nullptr) {
      ++at;
      continue;
    }
    const auto closure = std::move(at->second.closure);
    at = open_.members.erase(at);
    leave_out(closure);
  }
}

// The closure goes back to the queue, unless it is there already or on its way. If its lane has
// been sent it, the lane is late: the answer is still to come, and must not be taken for that of
// the next round.
void SynchronousPolicy::leave_out(const std::shared_ptr<Closure>& closure) {
  for (LaneState* lane : members().lanes) {
    if (!lane->inflight.find(closure->sequence)) continue;
    lane->inflight.remove(closure->sequence);
    // A closure that is still in the outbox will not be sent, so no late answer can come.
    if (std::erase(lane->outbox, closure) == 0) lane->late.insert(closure->sequence);
    return queue().put_back(closure);
  }
}

// All members run again, under a new number, whatever each shard has done: one that has applied the
// round knows its closures as applied and adds nothing for them, and one that lacks a share gets it
// anew. What is not Aborted is most often a ps that has gone, which the engine learns of a moment
// later than the call that failed: hence the pause.
void SynchronousPolicy::not_applied(const Attempt& attempt) {
  if (!may_run_again(attempt.error)) return fail_round(attempt.error);
  const ErrorParts error = error_parts(attempt.error);
  log_info("round ", open_.number, " is run again: ", error.message);
  applying_ = false;
  open_.closed = true;
  open_.number = next_number();
  for (auto& [number, member] : open_.members) member.closure->share.round = open_.number;
  for (auto& closure : forget_answers()) {
    if (Outcomes::tried_too_often(*closure))
      fail(*closure, attempt.error);
    else if (error.code != Code::kAborted)
      parts_.outcomes.run_again_later(std::move(closure));
    else
      queue().put_back(std::move(closure));
  }
}

}  // namespace cairn
