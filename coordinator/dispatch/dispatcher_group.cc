// Under HybridStrategy: which lanes take a round together.

#include <algorithm>
#include <optional>
#include <utility>

#include "coordinator/dispatch/dispatcher.h"
#include "core/base/log.h"

namespace cairn {
namespace {
// What lanes wait for each other, and a little: they can say who is missing, which a deadline here
// could not.
constexpr Duration kJoinDeadline = std::chrono::seconds(40);
}  // namespace

// Called after every change that may let the group go on. A round is dissolved only when none of
// its members is on a lane any more; otherwise a late answer could be taken for one of the next
// round.
void Dispatcher::settle_group() {
  Rounds& rounds = gate_.rounds();
  if (!rounds.mirrors()) return;
  rounds.note_queued(queue_.size());
  if (rounds.applying()) return;
  if (rounds.broken()) {
    // The new group, where there is one already, goes on.
    if (rounds.at_work() && rounds.of_group(rounds.group().number())) return break_group();
    if (rounds.at_work()) return;
    for (auto& closure : rounds.dissolve()) queue_.put_back(std::move(closure));
  }
  if (rounds.group().forming()) return;
  const auto front = queue_.front();
  if (!rounds.members().empty()) {
    // To join another group ends what the members wait for.
    const auto waits = [this](const auto& closures) { return nobody_brings_more(closures); };
    if (rounds.short_of_members(front.get(), waits)) form_group(rounds.lanes_of_members());
    return;
  }
  if (!front || !rounds.takes(*front)) return;
  if (rounds.group().serves(queue_.size())) return;
  auto lanes = rounds.group().candidates();
  if (!lanes.empty()) form_group(std::move(lanes));
}

void Dispatcher::form_group(std::vector<Lane*> lanes) {
  RoundGroup& group = gate_.rounds().group();
  std::vector<Lane*> others;
  for (Lane* lane : group.broke())
    if (std::find(lanes.begin(), lanes.end(), lane) == lanes.end()) others.push_back(lane);
  const std::uint64_t number = group.begin_to_form(session_.number);
  session_.tasks.spawn("form a group", join_group(number, std::move(lanes), std::move(others)));
}

// Those that are not in the new group leave the old one, so that nobody waits there for them.
rpc::Task<void> Dispatcher::join_group(std::uint64_t number, std::vector<Lane*> lanes,
                                       std::vector<Lane*> others) {
  std::vector<LaneGroupMember> members;
  for (Lane* lane : lanes)
    members.push_back({lane->ready ? lane->client->connection().peer().task : lane->worker->index,
                       lane->worker->address});
  for (Lane* lane : others)
    if (lane->ready) lane->tasks->spawn("leave a group", lane->client->join_group(number, 0, {}));
  std::vector<kj::Promise<void>> joins;
  std::vector<LaneIncarnation> incarnations;
  for (std::uint32_t rank = 0; rank < lanes.size(); ++rank) {
    Lane* lane = lanes[rank];
    incarnations.push_back(lane->incarnation);
    if (!lane->ready) continue;
    std::string what = str(lane->worker->name, " joining a group of ", lanes.size(), " workers");
    joins.push_back(session_.parts.reactor.with_deadline(
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
  RoundGroup& group = gate_.rounds().group();
  if (error) {
    log_warning("the workers form no group yet: ", error->message);
    group.formed({});
    co_await pump_later();
    co_return;
  }
  group.formed(std::move(lanes));
  pump();
}

// What waits in the group on a lane that is still there ends.
void Dispatcher::break_group() {
  RoundGroup& group = gate_.rounds().group();
  const std::uint64_t number = group.number();
  for (Lane* lane : group.broke())
    lane->tasks->spawn("leave a group", lane->client->join_group(number, 0, {}));
}

// A member that failed has left its group, whose others may wait for it. That may have been for
// another group, which goes on.
void Dispatcher::faltered(const Closure& closure) {
  const Rounds& rounds = gate_.rounds();
  if (rounds.mirrors() && rounds.has(closure) && closure.share.group == rounds.group().number())
    break_group();
}

}  // namespace cairn
