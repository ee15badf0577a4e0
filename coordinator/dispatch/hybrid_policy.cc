#include "coordinator/dispatch/hybrid_policy.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/log.h"

namespace cairn {
namespace {
// A little longer than lanes wait for each other: their error names the missing lane, which a
// deadline here could not.
constexpr Duration kJoinDeadline = std::chrono::seconds(40);
}  // namespace

HybridPolicy::HybridPolicy(PolicyParts parts) : RoundsPolicy(std::move(parts)), group_(members()) {}

std::uint32_t HybridPolicy::lanes_used(const Worker& worker, std::uint32_t lanes) const {
  if (lanes > 1 && !parts_.session.started)
    log_info(worker.name, " has ", lanes,
             " lanes; under HybridStrategy the first alone computes: start more workers instead");
  return std::min(lanes, 1u);
}

// ---- closures that leave the queue ----

// Elements of the data are taken as closures are sent, so that those of the open round, which a
// lane may still be prepared for, go before those of the next.
bool HybridPolicy::all_sent() const {
  return std::all_of(group_.lanes().begin(), group_.lanes().end(),
                     [](const LaneState* lane) { return lane->preparing == nullptr; });
}

bool HybridPolicy::ahead_is_next() const {
  return !open_.members.empty() && (applying_ || open_.members.size() >= open_.whole);
}

// A member that is to run again waits for the others, which do so with it.
bool HybridPolicy::fits(const Closure& next) const {
  if (alone_ != 0) return next.sequence == alone_;
  if (has(next)) return false;
  if (next.function->assigns) return open_.members.empty();
  if (group_.forming() || !group_.stands() || broken()) return false;
  if (next_round().members.empty() && !group_.serves(queued_)) return false;
  if (ahead_is_next() && (!all_sent() || group_.number() != open_.group)) return false;
  return can_join(next_round(), next) && any_may_join(next_round());
}

bool HybridPolicy::may_join(const Round& round, const LaneState& lane) const {
  return group_.has(lane) && RoundsPolicy::may_join(round, lane);
}

// No copy on a lane sees what a closure that runs alone assigns.
void HybridPolicy::begun(const std::shared_ptr<Closure>& closure, const LaneState& lane) {
  if (closure->function->assigns) forget_copies();
  RoundsPolicy::begun(closure, lane);
}

// Steps that were given before a restore are those of another history.
void HybridPolicy::open(Round& round, std::int64_t steps) {
  if (std::exchange(restores_, members().restores) != members().restores) unused_steps_.clear();
  round.number = next_number();
  if (unused_steps_.empty()) {
    round.step = parts_.progress.give_step(steps);
  } else {
    round.step = unused_steps_.front();
    unused_steps_.pop_front();
  }
  round.generation = members().rows_generation();
  if (std::exchange(base_generation_, round.generation) != round.generation) forget_copies();
  round.base = &round == &ahead_ ? open_.number : base_;
  round.whole = group_.size();
  round.group = group_.number();
  group_.round_begins();
}

std::string HybridPolicy::held_back(const Closure& next) const {
  if (may_start(next)) return "";
  if (!group_.stands()) return "waiting for the workers to form a group";
  return RoundsPolicy::held_back(next);
}

// ---- the open round ----

ConsistencyPolicy::Answer HybridPolicy::answered(const std::shared_ptr<Closure>& closure,
                                                 LaneState& lane, LaneReply& reply) {
  if (takes(*closure)) parts_.outcomes.torn(*closure);
  return RoundsPolicy::answered(closure, lane, reply);
}

bool HybridPolicy::complete() const {
  if (!all_answered(open_)) return false;
  const std::size_t members = open_.members.size();
  return members >= open_.whole || members >= lanes_ready() || none_to_come();
}

// All members stand and fall with the share of the first. None has pushed rows before that one was
// sent, so that what a shard lacks of it, it lacks of all.
void HybridPolicy::before_applying() {
  const std::uint64_t sent_first = open_.members.begin()->second.closure->sent_layout;
  for (const auto& [number, member] : open_.members) member.closure->sent_layout = sent_first;
}

// Copies of the round are right if those that it began with were, and no rows changed otherwise
// meanwhile.
std::vector<Outcomes::Result> HybridPolicy::take() {
  const bool right = open_.base == 0 || open_.base == base_;
  base_ = right && members().rows_generation() == open_.generation ? open_.number : 0;
  if (parts_.session.options.variables.check_replicas) verify_copies();
  return RoundsPolicy::take();
}

// Copies that drift are a fault of ours: whatever has been trained since is worth nothing.
void HybridPolicy::verify_copies() const {
  const Member& first = open_.members.begin()->second;
  for (const auto& [number, member] : open_.members)
    if (member.reply.copies != first.reply.copies)
      return queue().fail_all(std::make_exception_ptr(FailedPreconditionError(
          str("the copies of what is mirrored differ after step ", first.closure->global_step,
              ": those of ", member.lane->worker->name, " are not those of ",
              first.lane->worker->name))));
}

// A round may have other members when it runs again, so that one that some shard has applied must
// not run again: it is over. On a shard that was rebuilt meanwhile it is lost with all else that
// the rebuilt rows lack, and counted with that (LossLedger::commit). Copies on lanes are then not
// what that shard has. While a shard may still apply the round, none of this is known: all shards
// are asked once more, which those that have applied it answer at once.
void HybridPolicy::not_applied(const Attempt& attempt) {
  if (!may_run_again(attempt.error)) return fail_round(attempt.error);
  if (!attempt.all_answered) {
    applying_ = false;
    parts_.session.tasks.spawn("apply a round once more", pump_later());
  } else if (attempt.anywhere) {
    commit_round();
    forget_copies();
  } else {
    log_info("round ", open_.number, " is run again: ", error_parts(attempt.error).message);
    applying_ = false;
    for (auto& closure : forget_answers()) queue().put_back(std::move(closure));
    break_group();  // also for those that are ahead, on copies of what was not applied
  }
}

// ---- rounds that come to nothing ----

// The round ahead assumes copies as the open round leaves them. Only once that is applied is the
// assumption known to be true.
bool HybridPolicy::stands(const Round& round) const {
  const bool right = round.base == 0 || round.base == base_ || &round == &ahead_;
  return round.members.empty() || all_answered(round) ||
         (right && group_.stands() && group_.number() == round.group);
}

bool HybridPolicy::on_a_lane(const Round& round) const {
  const auto on = [](const LaneState& lane, const Member& member) {
    return lane.inflight.find(member.closure->sequence) || lane.preparing == member.closure;
  };
  for (const auto& [number, member] : round.members)
    for (const LaneState* lane : members().lanes)
      if (member.lane == nullptr && on(*lane, member)) return true;
  return false;
}

void HybridPolicy::dissolve(Round& round, std::vector<std::shared_ptr<Closure>>& answered) {
  if (round.members.empty()) return;
  for (auto& [number, member] : round.members)
    if (member.lane != nullptr) answered.push_back(member.closure);
  unused_steps_.push_back(round.step);
  round = {};
}

// A round of which all have answered is to be applied. No round is ahead of one that is dissolved.
// Members that have not answered are in the queue, or on their way there.
void HybridPolicy::dissolve() {
  std::vector<std::shared_ptr<Closure>> answered;
  if (!all_answered(open_)) dissolve(open_, answered);
  dissolve(ahead_, answered);
  std::sort(unused_steps_.begin(), unused_steps_.end());
  for (auto& closure : answered) queue().put_back(std::move(closure));
}

// ---- the group ----

void HybridPolicy::settle() {
  RoundsPolicy::settle();
  settle_group();
}

// The closure that was just sent may be the last of its round.
void HybridPolicy::sent() { settle_group(); }

// Called after every change that may let the group go on. The members of a round wait for one
// another inside of an all-reduce, so that one that does not come would hold up the others for
// ever. Hence the order:
//   1. Once a round is broken its group is broken up, which ends with an error what waits in it.
//   2. As long as a member is still on a lane nothing else is done: its late answer could be taken
//      for one of the next round.
//   3. The round is dissolved, and its members are queued.
//   4. A group is formed of the lanes that are there, or of as many as there are closures. Only
//      when it stands does may_start() let members go.
void HybridPolicy::settle_group() {
  queued_ = queue().size();
  if (applying_) return;
  if (broken()) {
    if (on_a_lane(open_) || on_a_lane(ahead_)) {
      // A new group, where there is one already, goes on.
      const std::uint64_t number = group_.number();
      if (number != 0 && (open_.group == number || ahead_.group == number)) break_group();
      return;
    }
    dissolve();
  }
  if (group_.forming()) return;
  if (!open_.members.empty()) {
    // To join another group ends what the members wait for.
    if (short_of_members()) form_group(lanes_of_members());
    return;
  }
  const auto front = queue().front();
  if (!front || !takes(*front)) return;
  if (group_.serves(queue().size())) return;
  auto lanes = group_.candidates();
  if (!lanes.empty()) form_group(std::move(lanes));
}

bool HybridPolicy::short_of_members() const {
  return open_.members.size() < open_.whole && none_to_come();
}

std::vector<LaneState*> HybridPolicy::lanes_of_members() const {
  std::vector<LaneState*> lanes;
  for (const auto& [number, member] : open_.members)
    lanes.push_back(members().lanes[static_cast<std::size_t>(number)]);
  return lanes;
}

void HybridPolicy::form_group(std::vector<LaneState*> lanes) {
  std::vector<LaneState*> others;
  for (LaneState* lane : group_.broke())
    if (std::find(lanes.begin(), lanes.end(), lane) == lanes.end()) others.push_back(lane);
  const std::uint64_t number =
      group_.begin_to_form(parts_.session.number + parts_.session.below_this_term());
  parts_.session.tasks.spawn("form a group",
                             join_group(number, std::move(lanes), std::move(others)));
}

// Lanes that are not in the new group leave the old one, so that no lane waits there for them.
rpc::Task<void> HybridPolicy::join_group(std::uint64_t number, std::vector<LaneState*> lanes,
                                         std::vector<LaneState*> others) {
  std::vector<LaneGroupMember> members;
  for (LaneState* lane : lanes)
    members.push_back({lane->ready ? lane->client->connection().peer().task : lane->worker->index,
                       lane->worker->address});
  for (LaneState* lane : others)
    if (lane->ready) lane->tasks->spawn("leave a group", lane->client->join_group(number, 0, {}));
  std::vector<kj::Promise<void>> joins;
  std::vector<LaneIncarnation> incarnations;
  for (std::uint32_t rank = 0; rank < lanes.size(); ++rank) {
    LaneState* lane = lanes[rank];
    incarnations.push_back(lane->incarnation);
    if (!lane->ready) continue;
    std::string what = str(lane->worker->name, " joining a group of ", lanes.size(), " workers");
    joins.push_back(parts_.session.parts.reactor.with_deadline(
        lane->client->join_group(number, rank, members), kJoinDeadline, std::move(what)));
  }
  std::optional<ErrorParts> error;
  if (joins.size() < lanes.size()) error = ErrorParts{Code::kUnavailable, "a worker was lost", {}};
  for (auto& join : joins) {
    try {
      co_await kj::mv(join);
    } catch (...) {
      if (!error) error = error_parts(std::current_exception());
    }
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i]->ready && lanes[i]->incarnation == incarnations[i])
      lanes[i]->group = number;
    else if (!error)
      error = ErrorParts{Code::kUnavailable, str(lanes[i]->worker->name, " was lost"), {}};
  }
  if (error) {
    log_warning("the workers form no group yet: ", error->message);
    group_.formed({});
    co_await pump_later();
    co_return;
  }
  group_.formed(std::move(lanes));
  parts_.pump();
}

// Ends with an error the calls that wait in the group, on all lanes that are still there.
void HybridPolicy::break_group() {
  const std::uint64_t number = group_.number();
  for (LaneState* lane : group_.broke())
    lane->tasks->spawn("leave a group", lane->client->join_group(number, 0, {}));
}

// A member that failed has left its group, whose others may wait for it. That may have been for
// another group, which goes on.
void HybridPolicy::lost(const Closure& closure) {
  if (has(closure) && closure.share.group == group_.number()) break_group();
}

rpc::Task<void> HybridPolicy::pump_later() {
  co_await parts_.session.parts.reactor.sleep(Outcomes::kRetryPause);
  parts_.pump();
}

}  // namespace cairn
