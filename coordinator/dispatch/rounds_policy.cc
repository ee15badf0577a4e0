#include "coordinator/dispatch/rounds_policy.h"

#include <algorithm>
#include <utility>

#include "coordinator/dispatch/function_registry.h"

namespace cairn {
namespace {
// A shard sums and applies within one turn. One that stands still for longer is lost by then.
constexpr Duration kApplyDeadline = std::chrono::minutes(5);
}  // namespace

// A round may have to do with fewer members once the program waits.
RoundsPolicy::RoundsPolicy(PolicyParts parts) : ConsistencyPolicy(std::move(parts)) {
  queue().watch_waits();
}

bool RoundsPolicy::may_start(const Closure& next) const {
  return !next.function->updates || fits(next);
}

bool RoundsPolicy::goes_first(const Closure& closure) const {
  return has(closure) || closure.sequence == alone_;
}

const RoundsPolicy::Member* RoundsPolicy::find(const Closure& closure) const {
  for (const Round* round : {&open_, &ahead_}) {
    const auto found = round->members.find(closure.share.member);
    if (found != round->members.end() && found->second.closure.get() == &closure)
      return &found->second;
  }
  return nullptr;
}

bool RoundsPolicy::can_join(const Round& round, const Closure& next) {
  if (round.closed || next.function->assigns) return false;
  return round.members.empty() || next.function == round.members.begin()->second.closure->function;
}

// A lane that is still at work for a round that is over would be late again.
bool RoundsPolicy::may_join(const Round& round, const LaneState& lane) const {
  return lane.ready && !lane.kept_out && lane.late.empty() &&
         !round.members.contains(static_cast<std::int32_t>(lane.number));
}

bool RoundsPolicy::any_may_join(const Round& round) const {
  return std::any_of(members().lanes.begin(), members().lanes.end(),
                     [&](const LaneState* lane) { return may_join(round, *lane); });
}

LaneState* RoundsPolicy::lane_for(const Closure& next, LaneState*) const {
  const bool joins = takes(next) && !has(next);
  LaneState* best = nullptr;
  const auto load = [](const LaneState& lane) { return lane.inflight.size() + lane.late.size(); };
  for (LaneState* lane : members().lanes) {
    if (!lane->has_room() || lane->late.contains(next.sequence)) continue;
    if (joins && may_join(next_round(), *lane)) return lane;
    if (!joins && (best == nullptr || load(*lane) < load(*best))) best = lane;
  }
  return best;
}

// Closures of no recorded round are as if they had never been sent: the round that they join gives
// them its step. None of them is left out of it, since each may have been left out of its last one.
// Which lanes ran the members of the recorded round is of no interest any more.
void RoundsPolicy::resume(const std::vector<std::shared_ptr<Closure>>& open,
                          const std::optional<journal::RoundNamed>& round) {
  newest_ = parts_.session.below_this_term();
  std::map<std::uint64_t, std::shared_ptr<Closure>> closures;
  for (const auto& closure : open) {
    closures[closure->sequence] = closure;
    if (!takes(*closure)) continue;
    closure->share.round = newest_;
    closure->global_step = -1;
  }
  if (!round) return;
  open_.number = round->round;
  open_.step = round->step;
  open_.closed = true;
  for (const auto& [number, sequence, sent_layout] : round->members) {
    const auto& closure = closures.at(sequence);
    closure->share = {.round = round->round, .member = number};
    closure->global_step = round->step;
    closure->sent_layout = sent_layout;
    open_.members[number] = {{closure, members().lanes.front(), {}}, false};
  }
}

void RoundsPolicy::begun(const std::shared_ptr<Closure>& closure, const LaneState& lane) {
  if (!closure->function->updates || has(*closure)) return;
  if (closure->function->assigns) {
    alone_ = closure->sequence;
    if (closure->global_step < 0) give_step(*closure);
    return;
  }
  Round& round = ahead_is_next() ? ahead_ : open_;
  if (round.members.empty()) open(round, closure->function->steps);
  const bool left_out = closure->share.round != 0;
  closure->share = {round.number, static_cast<std::int32_t>(lane.number), round.group, round.base,
                    &round == &ahead_};
  closure->global_step = round.step;
  round.members[closure->share.member] = {{closure, nullptr, {}}, left_out};
}

bool RoundsPolicy::still_wanted(const Closure& closure) const {
  return !takes(closure) || has(closure);
}

ConsistencyPolicy::Answer RoundsPolicy::answered(const std::shared_ptr<Closure>& closure,
                                                 LaneState& lane, LaneReply& reply) {
  if (!takes(*closure)) return Answer::kEnds;
  Round& round = closure->share.round == open_.number ? open_ : ahead_;
  Member& member = round.members.at(closure->share.member);
  member.lane = &lane;
  member.reply = std::move(reply);
  return Answer::kHeld;
}

void RoundsPolicy::ended(const Closure& closure) {
  if (closure.sequence == alone_) alone_ = 0;
  if (has(closure))
    for (Round* round : {&open_, &ahead_})
      if (round->number == closure.share.round) round->members.erase(closure.share.member);
  if (open_.members.empty()) open_ = std::exchange(ahead_, {});
}

bool RoundsPolicy::all_answered(const Round& round) {
  return std::all_of(round.members.begin(), round.members.end(),
                     [](const auto& each) { return each.second.lane != nullptr; });
}

std::size_t RoundsPolicy::lanes_ready() const {
  return static_cast<std::size_t>(std::count_if(members().lanes.begin(), members().lanes.end(),
                                                [](const LaneState* lane) { return lane->ready; }));
}

// A cut that waits for torn closures, which the open round may hold up, counts as a program that
// waits: it may be the program that asked for the checkpoint, and it schedules nothing before it
// has that.
bool RoundsPolicy::none_to_come() const {
  if (!any_may_join(open_)) return true;
  if (const auto front = queue().front())
    return front->function->updates && !can_join(open_, *front) && !has(*front);
  if (parts_.outcomes.cut_waits_for_torn() && queue().size() == 0) return true;
  std::vector<const Closure*> closures;
  for (const auto& [number, member] : open_.members) closures.push_back(member.closure.get());
  return queue().program_waits(closures);
}

// A complete round still waits for two things. While pushes are held for a cut, some shards may
// have marked and others not: a sum applied now would be in one half of the checkpoint and not in
// the other. And a ps that is away, or whose tables are being restored, could not apply its part.
// Both end with a pump, which comes here again.
// From the first call on, members may be applied on one shard and not on another. So all of them
// are torn before that call is made, and no cut begins until the round has come to an end.
void RoundsPolicy::settle() {
  if (applying_ || open_.members.empty()) return;
  // No ps will apply the round any more: its members wait in the queue, which cancels them.
  if (members().any_ps_given_up() && !members().all_ps_ready()) {
    for (auto& closure : forget_answers()) queue().put_back(std::move(closure));
    return;
  }
  if (members().pushes_held || !members().all_ps_ready() || parts_.lock.held()) return;
  if (!complete()) return;
  applying_ = true;
  before_applying();
  for (const auto& [number, member] : open_.members) parts_.outcomes.torn(*member.closure);
  parts_.session.tasks.spawn("apply a round", apply_round());
}

// The hard part of a round: what is done on all shards or on none is made of calls that fail one by
// one. The members are named once, before the first wait, and do not change while the calls are
// under way (applying_). All calls are waited for, also after one has failed: a call that is still
// on its way could apply the round after its members have begun to run again, and their second run
// would be added to the first. A shard that answers Aborted has said that it lacks shares, and has
// applied nothing; of any other error it is not known whether the shard has applied the round or
// will. What is made of that differs: see not_applied() of the two policies.
rpc::Task<void> RoundsPolicy::apply_round() {
  const Session& session = parts_.session;
  std::vector<AppliedMember> named;
  for (const auto& [number, member] : open_.members)
    named.push_back({member.closure->sequence, member.closure->sent_layout});
  Attempt attempt;
  if (parts_.recorder.on()) {
    record_round();
    try {
      co_await parts_.recorder.kept();
    } catch (const CancelledError&) {
      throw;
    } catch (...) {
      attempt.error = std::current_exception();
    }
    if (attempt.error) {  // no shard is asked for what a successor would not know of
      fail_round(attempt.error);
      co_return parts_.pump();
    }
  }
  std::vector<kj::Promise<void>> calls;
  // Without one of the shards the round would count as applied where it is not.
  attempt.all_answered = members().all_ps_ready();
  if (!attempt.all_answered)
    attempt.error =
        std::make_exception_ptr(UnavailableError("a ps was lost before it was applied"));
  for (const auto& ps : members().ps)
    for (const auto& shard : ps->shards) {
      if (!attempt.all_answered) break;  // one that is being attached may not have its tables yet
      std::string what = str("applying round ", open_.number, " on ", ps->name);
      calls.push_back(session.parts.reactor.with_deadline(
          shard->apply_round(session.number, open_.number, named), kApplyDeadline,
          std::move(what)));
    }
  for (auto& call : calls) {
    try {
      co_await kj::mv(call);
      attempt.anywhere = true;
    } catch (...) {
      const std::exception_ptr error = std::current_exception();
      attempt.all_answered &= error_parts(error).code == Code::kAborted;
      // An error that no repetition mends is the one that the program is given.
      if (!attempt.error || !may_run_again(error)) attempt.error = error;
    }
  }
  if (!attempt.error)
    commit_round();
  else
    not_applied(attempt);
  parts_.pump();
}

void RoundsPolicy::record_round() const {
  journal::RoundNamed event{open_.number, open_.step, {}};
  for (const auto& [number, member] : open_.members)
    event.members.push_back({number, member.closure->sequence, member.closure->sent_layout});
  parts_.recorder.round(std::move(event));
}

bool RoundsPolicy::may_run_again(const std::exception_ptr& error) {
  const Code code = error_parts(error).code;
  return code == Code::kUnavailable || code == Code::kAborted || code == Code::kDeadlineExceeded;
}

std::vector<Outcomes::Result> RoundsPolicy::take() {
  applying_ = false;
  std::vector<Outcomes::Result> results;
  for (auto& [number, member] : open_.members) results.push_back(std::move(member));
  open_ = std::exchange(ahead_, {});
  return results;
}

void RoundsPolicy::commit_round() {
  std::vector<Outcomes::Result> results = take();
  parts_.outcomes.commit(results);
}

void RoundsPolicy::fail(Closure& closure, const std::exception_ptr& error) {
  ended(closure);
  parts_.outcomes.fail(closure, error);
}

void RoundsPolicy::fail_round(const std::exception_ptr& error) {
  applying_ = false;
  for (const auto& closure : forget_answers()) fail(*closure, error);
}

std::vector<std::shared_ptr<Closure>> RoundsPolicy::forget_answers() {
  std::vector<std::shared_ptr<Closure>> all;
  for (auto& [number, member] : open_.members) {
    if (std::exchange(member.lane, nullptr) == nullptr) continue;
    member.reply = {};
    all.push_back(member.closure);
  }
  return all;
}

std::string RoundsPolicy::waits_for() const {
  if (alone_ != 0) return str("waiting for closure ", alone_, ", which assigns and runs alone");
  if (open_.members.empty()) return "";
  if (applying_) return str("waiting for the ps to apply round ", open_.number);
  for (const auto& [number, member] : open_.members)
    if (member.lane == nullptr)
      return str("waiting for round ", open_.number, ": member ", number, ", closure ",
                 member.closure->sequence, " ", place_of(member.closure->sequence),
                 ", has not answered");
  return str("waiting for round ", open_.number, ", which has ", open_.members.size(),
             " members: for further closures, or until the program waits for one of these");
}

std::string RoundsPolicy::held_back(const Closure& next) const {
  return may_start(next) ? "" : waits_for();
}

// All members that have answered wait for the same round, so one of them stands for all.
std::optional<ConsistencyPolicy::Held> RoundsPolicy::held() const {
  for (const auto& [number, member] : open_.members)
    if (member.lane != nullptr) return Held{*member.closure, *member.lane, waits_for()};
  return std::nullopt;
}

// The shards sum what the members of a round push in one go. What a closure reads between two
// pushes of its own would have to be the sum's result, which is there only when all members are
// done.
void RoundsPolicy::verify(const RegisteredFunction& function) const {
  if (!function.updates || function.assigns) return;
  const std::uint64_t pushes = count_pushes(function.concrete->graph);
  if (pushes <= 1) return;
  throw FailedPreconditionError(str(
      "function \"", function.name, "\" reads variables again after it has updated some, and so ",
      "pushes ", pushes, " times: under ", parts_.session.options.consistency.text(),
      " a function pushes once; split it into functions that are scheduled one after the ",
      "other, or use asynchronous updates"));
}

}  // namespace cairn
