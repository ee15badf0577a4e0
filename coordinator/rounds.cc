#include "coordinator/rounds.h"

#include <algorithm>

namespace cairn {

bool Rounds::has(const Closure& closure) const {
  const auto found = open_.find(closure.share.member);
  return found != open_.end() && found->second.closure.get() == &closure;
}

bool Rounds::fits(const Closure& next) const {
  if (applying_) return false;
  if (alone_ != 0) return next.sequence == alone_;
  // Under HybridStrategy one that is to run again waits for the others, which do so with it.
  if (has(next)) return !mirrors_;
  if (next.function->assigns) return open_.empty();
  if (mirrors_ && (group_.forming() || !group_.stands() || broken())) return false;
  return can_join(next) && any_may_join();
}

// As far as the closure goes; whether there is a lane for it is another question.
bool Rounds::can_join(const Closure& next) const {
  if (again_ || next.function->assigns) return false;
  return open_.empty() || next.function == open_.begin()->second.closure->function;
}

// A lane that is still at work for a round that is over would be late again.
bool Rounds::may_join(const Lane& lane) const {
  return lane.ready && !lane.kept_out && lane.late.empty() && (!mirrors_ || group_.has(lane)) &&
         !open_.contains(static_cast<std::int32_t>(lane.number));
}

bool Rounds::any_may_join() const {
  return std::any_of(cluster_.lanes.begin(), cluster_.lanes.end(),
                     [this](const Lane* lane) { return may_join(*lane); });
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
    if (joins && may_join(*lane)) return lane;
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
  if (open_.empty()) {
    ++number_;
    if (!std::exchange(dissolved_, false)) step_ = give_step();
    const std::uint64_t epoch = cluster_.rows_epoch();
    if (std::exchange(base_epoch_, epoch) != epoch) forget_copies();
    whole_ = group_.size();
    of_group_ = group_.number();
  }
  const bool left_out = closure->share.round != 0;
  closure->share.group = of_group_;
  closure->share.base = base_;
  closure->share.round = number_;
  closure->share.member = static_cast<std::int32_t>(lane.number);
  closure->global_step = step_;
  open_[closure->share.member] = {closure, left_out, nullptr, {}};
}

void Rounds::end(const Closure& closure) {
  if (closure.sequence == alone_) alone_ = 0;
  if (has(closure)) open_.erase(closure.share.member);
  if (open_.empty()) again_ = false;
}

void Rounds::answered(const Closure& closure, Lane& lane, LaneReply reply) {
  Member& member = open_.at(closure.share.member);
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
  if (open_.empty() || applying_) return false;
  std::size_t answered = 0, lanes = 0;
  bool owed = false;  // the answer of one that was left out before
  for (const auto& [number, member] : open_) {
    answered += member.lane != nullptr ? 1 : 0;
    owed |= member.lane == nullptr && member.waited_for;
  }
  for (const Lane* lane : cluster_.lanes) lanes += lane->ready ? 1 : 0;
  const bool all = answered == open_.size();
  if (again_ || (mirrors_ && open_.size() >= whole_)) return all;
  const std::size_t whole = std::max(lanes, open_.size()), spare = spare_lanes();
  if (!owed && answered >= (whole > spare ? whole - spare : 1)) return true;
  // A round that is short of members waits for more, as long as some may come.
  return all && none_to_come(front, program_waits);
}

bool Rounds::none_to_come(const Closure* front, const Waits& program_waits) const {
  if (!any_may_join()) return true;
  if (front != nullptr) return front->function->updates && !can_join(*front) && !has(*front);
  std::vector<const Closure*> closures;
  for (const auto& [number, member] : open_) closures.push_back(member.closure.get());
  return program_waits(closures);
}

std::vector<std::shared_ptr<Closure>> Rounds::begin_to_apply() {
  applying_ = true;
  std::vector<std::shared_ptr<Closure>> left_out;
  for (auto at = open_.begin(); at != open_.end();) {
    if (at->second.lane != nullptr) {
      ++at;
      continue;
    }
    left_out.push_back(std::move(at->second.closure));
    at = open_.erase(at);
  }
  return left_out;
}

// Rows that changed otherwise while it was open make its copies those of nobody else.
Rounds::Members Rounds::take() {
  applying_ = again_ = false;
  base_ = cluster_.rows_epoch() == base_epoch_ ? number_ : 0;
  return std::exchange(open_, {});
}

std::vector<std::shared_ptr<Closure>> Rounds::run_again() {
  applying_ = false;
  again_ = true;
  ++number_;
  for (auto& [number, member] : open_) member.closure->share.round = number_;
  return forget_answers();
}

std::vector<std::shared_ptr<Closure>> Rounds::forget_answers() {
  std::vector<std::shared_ptr<Closure>> all;
  for (auto& [number, member] : open_) {
    if (std::exchange(member.lane, nullptr) == nullptr) continue;
    member.reply = {};
    all.push_back(member.closure);
  }
  return all;
}

bool Rounds::broken() const {
  if (!mirrors_ || open_.empty() || (group_.stands() && group_.number() == of_group_)) return false;
  return std::any_of(open_.begin(), open_.end(),
                     [](const auto& each) { return each.second.lane == nullptr; });
}

bool Rounds::at_work() const {
  const auto on = [](const Lane& lane, const Member& member) {
    return lane.inflight.find(member.closure->sequence) || lane.preparing == member.closure;
  };
  for (const auto& [number, member] : open_)
    for (const Lane* lane : cluster_.lanes)
      if (member.lane == nullptr && on(*lane, member)) return true;
  return false;
}

bool Rounds::short_of_members(const Closure* front, const Waits& program_waits) const {
  return mirrors_ && !open_.empty() && open_.size() < whole_ && none_to_come(front, program_waits);
}

std::vector<Lane*> Rounds::lanes_of_members() const {
  std::vector<Lane*> lanes;
  for (const auto& [number, member] : open_)
    lanes.push_back(cluster_.lanes[static_cast<std::size_t>(number)]);
  return lanes;
}

std::vector<std::shared_ptr<Closure>> Rounds::dissolve() {
  auto answered = forget_answers();
  dissolved_ = true;
  open_.clear();
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
  if (open_.empty()) return "";
  if (applying_) return str("waiting for the ps to apply round ", number_);
  for (const auto& [number, member] : open_)
    if (member.lane == nullptr)
      return str("waiting for round ", number_, ": member ", number, ", closure ",
                 member.closure->sequence, " ", place_of(*member.closure), ", has not answered");
  return str("waiting for round ", number_, ", which has ", open_.size(),
             " members: for further closures, or until the program waits for one of these");
}

std::string Rounds::holder(const Closure& next) const {
  if (admits(next)) return "";
  if (mirrors_ && !group_.stands()) return "waiting for the workers to form a group";
  return waits_for();
}

}  // namespace cairn
