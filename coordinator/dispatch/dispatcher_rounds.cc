// Under synchronous(b): queue -> the open round, and the round -> shards.

#include <utility>

#include "coordinator/dispatch/dispatcher.h"
#include "core/base/log.h"

namespace cairn {
namespace {
// A shard sums and applies within one turn. One that stands still for longer is lost by then.
constexpr Duration kApplyDeadline = std::chrono::minutes(5);

// What another run of the members mends: a ps went away, or came back without their shares.
bool may_run_again(const std::exception_ptr& error) {
  const Code code = error_parts(error).code;
  return code == Code::kUnavailable || code == Code::kAborted || code == Code::kDeadlineExceeded;
}
}  // namespace

void Dispatcher::dispatch_in_rounds() {
  Rounds& rounds = gate_.rounds();
  const auto first = [&rounds](const Closure& closure) { return rounds.goes_first(closure); };
  for (;;) {
    auto next = queue_.front();
    // A member that runs again may stand behind one that was left out, or came back later.
    if (next && !rounds.admits(*next) && queue_.bring_forward(first)) next = queue_.front();
    if (!next || !gate_.open_for(*next)) return;
    Lane* lane = rounds.lane_for(*next, [this](const Lane& one) { return has_room(one); });
    if (lane == nullptr) return;
    dispatch_next(*lane);
    weigh(*lane);
  }
}

// Only a wait that begins is news to a round. One may also end because the engine does, which runs
// nothing any more that is posted.
void Dispatcher::cut_waits(bool waits) {
  if (std::exchange(cut_waits_, waits) != waits && waits) wake();
}

// For the round that these belong to.
bool Dispatcher::nobody_brings_more(const std::vector<const Closure*>& closures) const {
  if (cut_waits_ && any_torn() && queue_.size() == 0) return true;
  return queue_.program_waits(closures);
}

// Called whenever something changed that the round may have waited for. What a cut has marked must
// not change before all shards have, so that no round is applied while pushes are held; and a ps
// that is away could not apply it.
void Dispatcher::settle_round() {
  Rounds& rounds = gate_.rounds();
  if (rounds.applying() || rounds.members().empty()) return;
  // Nobody can apply it any more: its members wait in the queue, which cancels them.
  if (members_.any_ps_given_up() && !members_.all_ps_ready()) {
    for (auto& closure : rounds.forget_answers()) queue_.put_back(std::move(closure));
    return;
  }
  if (holding_ || !gate_.ps_serve()) return;
  const auto front = queue_.front();
  const auto waits = [this](const auto& closures) { return nobody_brings_more(closures); };
  if (!rounds.complete(front.get(), waits)) return;
  for (const auto& closure : rounds.begin_to_apply()) leave_out(closure);
  if (rounds.members().empty()) return (void)rounds.take();
  for (const auto& [number, member] : rounds.members()) begin_torn(*member.closure);
  session_.tasks.spawn("apply a round", apply_round());
}

// It goes back to the queue, unless it is there already or on its way; what its lane does with it
// is of no interest any more.
void Dispatcher::leave_out(const std::shared_ptr<Closure>& closure) {
  for (Lane* lane : members_.lanes) {
    if (!lane->inflight.find(closure->sequence)) continue;
    lane->inflight.remove(closure->sequence);
    // What has not been sent yet never will be.
    if (std::erase(lane->outbox, closure) == 0) lane->late.insert(closure->sequence);
    weigh(*lane);
    return queue_.put_back(closure);
  }
}

rpc::Task<void> Dispatcher::apply_round() {
  Rounds& rounds = gate_.rounds();
  std::vector<AppliedMember> members;
  // Under HybridStrategy all of them stand and fall with the share of the first. None has pushed
  // rows before that one was sent, so that what a shard lacks of it, it lacks of all.
  const std::uint64_t sent_first = rounds.members().begin()->second.closure->sent_layout;
  for (const auto& [number, member] : rounds.members()) {
    if (rounds.mirrors()) member.closure->sent_layout = sent_first;
    members.push_back({member.closure->sequence, member.closure->sent_layout});
  }
  std::vector<kj::Promise<void>> calls;
  std::exception_ptr error;
  bool anywhere = false, all_answered = members_.all_ps_ready();
  // Without one of the shards the round would count as applied where it is not.
  if (!members_.all_ps_ready())
    error = std::make_exception_ptr(UnavailableError("a ps was lost before it was applied"));
  for (const auto& ps : members_.ps)
    for (const auto& shard : ps->shards) {
      std::string what = str("applying round ", rounds.number(), " on ", ps->name);
      calls.push_back(session_.parts.reactor.with_deadline(
          shard->apply_round(session_.number, rounds.number(), members), kApplyDeadline,
          std::move(what)));
    }
  // All of them end, whatever one comes to: a call that is still under way could apply the round
  // after its members have begun to run again.
  for (auto& call : calls) {
    try {
      co_await kj::mv(call);
      anywhere = true;
    } catch (...) {
      all_answered &= error_parts(std::current_exception()).code == Code::kAborted;
      // An error that no repetition mends is the one to be told.
      if (!error || !may_run_again(std::current_exception())) error = std::current_exception();
    }
  }
  if (!error)
    commit_round();
  else if (rounds.mirrors() && may_run_again(error))
    round_lacks_shares(error, anywhere, all_answered);
  else
    round_failed(error);
  pump();
}

// All books are kept in one go, without a wait in between, as those of a single closure are.
void Dispatcher::commit_round() {
  Rounds::Members members = gate_.rounds().take();
  if (session_.options.variables.check_replicas) verify_copies(members);
  progress_.commit_steps(members.begin()->second.closure->function->steps);
  for (auto& [number, member] : members) {
    Closure& closure = *member.closure;
    if (!closure.takes.empty()) commit_elements(closure, member.reply);
    not_torn(closure);
    count_update(*member.lane, closure, member.reply);
    queue_.finish(closure, std::move(member.reply.outputs));
  }
  if (progress_.save_due()) save_is_due_();
}

// Copies that drift are a fault of ours: whatever has been trained since is worth nothing.
void Dispatcher::verify_copies(const Rounds::Members& members) {
  const Rounds::Member& first = members.begin()->second;
  for (const auto& [number, member] : members)
    if (member.reply.copies != first.reply.copies)
      return queue_.fail_all(std::make_exception_ptr(FailedPreconditionError(
          str("the copies of what is mirrored differ after step ", first.closure->global_step,
              ": those of ", member.lane->worker->name, " are not those of ",
              first.lane->worker->name))));
}

void Dispatcher::round_failed(const std::exception_ptr& error) {
  Rounds& rounds = gate_.rounds();
  const bool again = may_run_again(error);
  const bool later = error_parts(error).code != Code::kAborted;
  if (again) log_info("round ", rounds.number(), " is run again: ", error_parts(error).message);
  for (auto& closure : rounds.run_again()) {
    if (!again || closure->attempts >= kAttemptsMax)
      fail(*closure, error);
    else if (later)
      session_.tasks.spawn("run a closure again", run_again_later(std::move(closure)));
    else
      queue_.put_back(std::move(closure));
  }
}

// Under HybridStrategy a round may be of other company when it runs again, so that one that some
// shard has applied is over: on a shard that was rebuilt meanwhile it is lost with all else that
// the rebuilt rows lack, and counted with that (LossLedger::commit).
void Dispatcher::round_lacks_shares(const std::exception_ptr& error, bool anywhere,
                                    bool all_answered) {
  Rounds& rounds = gate_.rounds();
  if (!all_answered) {
    rounds.apply_later();
    session_.tasks.spawn("apply a round once more", pump_later());
  } else if (anywhere) {
    commit_round();
    rounds.forget_copies();
  } else {
    log_info("round ", rounds.number(), " is run again: ", error_parts(error).message);
    rounds.apply_later();
    for (auto& closure : rounds.forget_answers()) queue_.put_back(std::move(closure));
    break_group();  // also for those that are ahead, on copies of what was not applied
  }
}

// Some shards may have it from now on, and others not.
void Dispatcher::begin_torn(Closure& closure) {
  if (!std::exchange(closure.maybe_torn, true)) ++torn_;
}

}  // namespace cairn
