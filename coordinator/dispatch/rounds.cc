#include "coordinator/dispatch/rounds.h"

#include <algorithm>

namespace cairn {

const Rounds::Member* Rounds::find(const Closure& closure) const {
  for (const Round* round : {&open_, &ahead_}) {
    const auto found = round->members.find(closure.share.member);
    if (found != round->members.end() && found->second.closure.get() == &closure)
      return &found->second;
  }
  return nullptr;
}

bool Rounds::has(const Closure& closure) const { return find(closure) != nullptr; }

// Elements of the data are taken as closures are sent, so that those of the open round, which a
// lane may still be prepared for, go before those of the next.
bool Rounds::all_sent() const {
  return std::all_of(group_.lanes().begin(), group_.lanes().end(),
                     [](const Lane* lane) { return lane->preparing == nullptr; });
}

bool Rounds::ahead_is_next() const {
  return mirrors_ && !open_.members.empty() && (applying_ || open_.members.size() >= open_.whole);
}

bool Rounds::fits(const Closure& next) const {
  if (applying_ && !mirrors_) return false;
  if (alone_ != 0) return next.sequence == alone_;
  // Under HybridStrategy one that is to run again waits for the others, which do so with it.
  if (has(next)) return !mirrors_;
  if (next.function->assigns) return open_.members.empty();
  if (mirrors_ && (group_.forming() || !group_.stands() || broken())) return false;
  if (mirrors_ && next_round().members.empty() && !group_.serves(queued_)) return false;
  if (ahead_is_next() && (!all_sent() || group_.number() != open_.group)) return false;
  return can_join(next_round(), next) && any_may_join(next_round());
}

// As far as the closure goes; whether there is a lane for it is another question.
bool Rounds::can_join(const Round& round, const Closure& next) const {
  if (again_ || next.function->assigns) return false;
  return round.members.empty() || next.function == round.members.begin()->second.closure->function;
}

// A lane that is still at work for a round that is over would be late again.
bool Rounds::may_join(const Round& round, const Lane& lane) const {
  return lane.ready && !lane.kept_out && lane.late.empty() && (!mirrors_ || group_.has(lane)) &&
         !round.members.contains(static_cast<std::int32_t>(lane.number));
}

bool Rounds::any_may_join(const Round& round) const {
  return std::any_of(cluster_.lanes.begin(), cluster_.lanes.end(),
                     [&](const Lane* lane) { return may_join(round, *lane); });
}

// A new member goes to the first lane that has none. What runs again goes where least is to do, but
// never to a lane that still has an older run of it, whose answer could be taken for the new one's.
Lane* Rounds::lane_for(const Closure& next,
                       const std::function<bool(const Lane&)>& has_room) const {
  const bool joins = takes(next) && !has(next);
  Lane* best = nullptr;
  const auto load = [](const Lane& lane) { return lane.inflight.size() + lane.late.size(); };
  for (Lane* lane : cluster_.lanes) {
    if (!has_room(*lane) || lane->late.contains(next.sequence)) continue;
    if (joins && may_join(next_round(), *lane)) return lane;
    if (!joins && (best == nullptr || load(*lane) < load(*best))) best = lane;
  }
  return best;
}

void Rounds::begins(const std::shared_ptr<Closure>& closure, const Lane& lane,
                    const std::function<std::int64_t()>& give_step) {
  if (has(*closure)) return;
  if (closure->function->assigns) {
    alone_ = closure->sequence;
    forget_copies();
    if (closure->global_step < 0) closure->global_step = give_step();
    return;
  }
  Round& round = ahead_is_next() ? ahead_ : open_;
  if (round.members.empty()) open(round, give_step);
  const bool left_out = closure->share.round != 0;
  closure->share = {round.number, static_cast<std::int32_t>(lane.number), round.group, round.base,
                    &round == &ahead_};
  closure->global_step = round.step;
  round.members[closure->share.member] = {closure, left_out, nullptr, {}};
}

// Steps that were given before a restore are those of another history.
void Rounds::open(Round& round, const std::function<std::int64_t()>& give_step) {
  if (std::exchange(restores_, cluster_.restores) != cluster_.restores) unused_steps_.clear();
  round.number = ++newest_;
  if (unused_steps_.empty()) {
    round.step = give_step();
  } else {
    round.step = unused_steps_.front();
    unused_steps_.pop_front();
  }
  round.epoch = cluster_.rows_epoch();
  if (std::exchange(base_epoch_, round.epoch) != round.epoch) forget_copies();
  round.base = &round == &ahead_ ? open_.number : base_;
  round.whole = group_.size();
  round.group = group_.number();
  group_.round_begins();
}

void Rounds::end(const Closure& closure) {
  if (closure.sequence == alone_) alone_ = 0;
  if (has(closure))
    for (Round* round : {&open_, &ahead_})
      if (round->number == closure.share.round) round->members.erase(closure.share.member);
  if (!open_.members.empty()) return;
  again_ = false;
  if (!ahead_.members.empty()) open_ = std::exchange(ahead_, {});
}

void Rounds::answered(const Closure& closure, Lane& lane, LaneReply reply) {
  Round& round = closure.share.round == open_.number ? open_ : ahead_;
  Member& member = round.members.at(closure.share.member);
  member.lane = &lane;
  member.reply = std::move(reply);
}

// The lanes of a worker are as slow as it is.
std::size_t Rounds::spare_lanes() const {
  std::size_t most = 0;
  for (const auto& worker : cluster_.workers) most = std::max(most, worker->lanes.size());
  return backups_ * most;
}

bool Rounds::complete(const Closure* front, const Waits& program_waits) const {
  if (open_.members.empty() || applying_) return false;
  std::size_t answered = 0, lanes = 0;
  bool owed = false;  // the answer of one that was left out before
  for (const auto& [number, member] : open_.members) {
    answered += member.lane != nullptr ? 1 : 0;
    owed |= member.lane == nullptr && member.waited_for;
  }
  for (const Lane* lane : cluster_.lanes) lanes += lane->ready ? 1 : 0;
  const bool all = answered == open_.members.size();
  if (again_ || (mirrors_ && open_.members.size() >= open_.whole)) return all;
  const std::size_t whole = std::max(lanes, open_.members.size()), spare = spare_lanes();
  if (!owed && answered >= (whole > spare ? whole - spare : 1)) return true;
  // A round that is short of members waits for more, as long as some may come.
  return all && none_to_come(front, program_waits);
}

bool Rounds::none_to_come(const Closure* front, const Waits& program_waits) const {
  if (!any_may_join(open_)) return true;
  if (front != nullptr) return front->function->updates && !can_join(open_, *front) && !has(*front);
  std::vector<const Closure*> closures;
  for (const auto& [number, member] : open_.members) closures.push_back(member.closure.get());
  return program_waits(closures);
}

std::vector<std::shared_ptr<Closure>> Rounds::begin_to_apply() {
  applying_ = true;
  std::vector<std::shared_ptr<Closure>> left_out;
  for (auto at = open_.members.begin(); at != open_.members.end();) {
    if (at->second.lane != nullptr) {
      ++at;
      continue;
    }
    left_out.push_back(std::move(at->second.closure));
    at = open_.members.erase(at);
  }
  return left_out;
}

// Copies of it are right if those that it began with were, and no rows changed otherwise meanwhile.
Rounds::Members Rounds::take() {
  applying_ = again_ = false;
  const bool right = open_.base == 0 || open_.base == base_;
  base_ = right && cluster_.rows_epoch() == open_.epoch ? open_.number : 0;
  Members taken = std::move(open_.members);
  open_ = std::exchange(ahead_, {});
  return taken;
}

std::vector<std::shared_ptr<Closure>> Rounds::run_again() {
  applying_ = false;
  again_ = true;
  open_.number = ++newest_;
  for (auto& [number, member] : open_.members) member.closure->share.round = open_.number;
  return forget_answers();
}

std::vector<std::shared_ptr<Closure>> Rounds::forget_answers() {
  std::vector<std::shared_ptr<Closure>> all;
  for (auto& [number, member] : open_.members) {
    if (std::exchange(member.lane, nullptr) == nullptr) continue;
    member.reply = {};
    all.push_back(member.closure);
  }
  return all;
}

bool Rounds::all_answered(const Round& round) {
  return std::all_of(round.members.begin(), round.members.end(),
                     [](const auto& each) { return each.second.lane != nullptr; });
}

// What the members of the round ahead were told of copies is known to be true when the open one has
// been applied.
bool Rounds::stands(const Round& round) const {
  const bool right = round.base == 0 || round.base == base_ || &round == &ahead_;
  return round.members.empty() || all_answered(round) ||
         (right && group_.stands() && group_.number() == round.group);
}

bool Rounds::broken() const { return mirrors_ && !(stands(open_) && stands(ahead_)); }

bool Rounds::at_work(const Round& round) const {
  const auto on = [](const Lane& lane, const Member& member) {
    return lane.inflight.find(member.closure->sequence) || lane.preparing == member.closure;
  };
  for (const auto& [number, member] : round.members)
    for (const Lane* lane : cluster_.lanes)
      if (member.lane == nullptr && on(*lane, member)) return true;
  return false;
}

bool Rounds::at_work() const { return at_work(open_) || at_work(ahead_); }

bool Rounds::short_of_members(const Closure* front, const Waits& program_waits) const {
  return mirrors_ && !open_.members.empty() && open_.members.size() < open_.whole &&
         none_to_come(front, program_waits);
}

std::vector<Lane*> Rounds::lanes_of_members() const {
  std::vector<Lane*> lanes;
  for (const auto& [number, member] : open_.members)
    lanes.push_back(cluster_.lanes[static_cast<std::size_t>(number)]);
  return lanes;
}

void Rounds::dissolve(Round& round, std::vector<std::shared_ptr<Closure>>& answered) {
  if (round.members.empty()) return;
  for (auto& [number, member] : round.members)
    if (member.lane != nullptr) answered.push_back(member.closure);
  unused_steps_.push_back(round.step);
  round = {};
}

// One of which all have answered is to be applied. Nothing is ahead of one that is dissolved.
std::vector<std::shared_ptr<Closure>> Rounds::dissolve() {
  std::vector<std::shared_ptr<Closure>> answered;
  if (!all_answered(open_)) dissolve(open_, answered);
  dissolve(ahead_, answered);
  std::sort(unused_steps_.begin(), unused_steps_.end());
  return answered;
}

std::string Rounds::place_of(const Closure& closure) const {
  for (const Lane* lane : cluster_.lanes)
    if (lane->inflight.find(closure.sequence) ||
        (lane->preparing && lane->preparing->sequence == closure.sequence))
      return str("on ", lane->worker->name, " lane ", lane->index);
  return "(to be run again)";
}

std::string Rounds::waits_for() const {
  if (alone_ != 0) return str("waiting for closure ", alone_, ", which assigns and runs alone");
  if (open_.members.empty()) return "";
  if (applying_) return str("waiting for the ps to apply round ", open_.number);
  for (const auto& [number, member] : open_.members)
    if (member.lane == nullptr)
      return str("waiting for round ", open_.number, ": member ", number, ", closure ",
                 member.closure->sequence, " ", place_of(*member.closure), ", has not answered");
  return str("waiting for round ", open_.number, ", which has ", open_.members.size(),
             " members: for further closures, or until the program waits for one of these");
}

std::string Rounds::holder(const Closure& next) const {
  if (admits(next)) return "";
  if (mirrors_ && !group_.stands()) return "waiting for the workers to form a group";
  return waits_for();
}

}  // namespace cairn
