#include "ps/follow/subscriptions.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/random.h"

namespace cairn::ps {
namespace {

std::int64_t seconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

ChangesAnswer Subscriptions::changes(const ChangesRequest& request) {
  const Shard::Described described = shard_.describe();
  forget_idle();
  ChangesAnswer answer{.described = described.described};
  if (request.described != described.described) return answer;
  Subscription& mine = find(request, described);
  const std::vector<Followed> tables = follow(request, described);
  const bool arrived = request.cursor == mine.cursor;
  for (const Followed& one : tables)
    arrived ? one.changes->arrived() : one.changes->lost(mine.covered_before);
  if (!arrived) mine.covered = mine.covered_before;
  // An answer that fails is one that was lost.
  mine.cursor = request.cursor + 1;
  mine.covered_before = mine.covered;
  mine.asked = clock_.now();
  const std::size_t most = std::clamp<std::size_t>(request.bytes_max, 1, kAnswerBytesMax);
  answer.more = !take(mine, tables, most, answer.changed);
  answer.incarnation = mine.incarnation;
  answer.cursor = mine.cursor;
  answer.step =
      static_cast<std::int64_t>(shard_.counters().follow.step.load(std::memory_order_relaxed));
  TimePoint covered = mine.covered;
  for (const Followed& one : tables) {
    covered = std::min(covered, one.changes->covered(mine.covered));
    answer.more = answer.more || one.changes->waits();
  }
  answer.age = clock_.now() - covered;
  count(described);
  return answer;
}

Subscriptions::Subscription& Subscriptions::find(const ChangesRequest& request,
                                                 const Shard::Described& described) {
  if (request.subscriber == 0)
    throw InvalidArgumentError("a subscriber has a number, drawn at random, which is not 0");
  const auto at = all_.find(request.subscriber);
  if (at != all_.end() && at->second.incarnation == request.incarnation &&
      (at->second.cursor == request.cursor || at->second.cursor == request.cursor + 1))
    return at->second;
  if (at == all_.end() && all_.size() >= kSubscribersMax)
    throw ResourceExhaustedError(str("this shard has ", all_.size(), " subscribers (", names(),
                                     "), as many as it takes: stop one of them, which is "
                                     "forgotten ",
                                     seconds(kIdleMax), " s after it asked last"));
  forget(request.subscriber, described);
  const TimePoint now = clock_.now();
  Subscription made{.cursor = request.cursor, .asked = now};
  made.incarnation = random_key(random_key(described.described, request.subscriber), ++made_) | 1;
  made.pass_began = made.covered = made.covered_before = now;
  return all_[request.subscriber] = std::move(made);
}

std::vector<Subscriptions::Followed> Subscriptions::follow(const ChangesRequest& request,
                                                           const Shard::Described& described) {
  Subscription& mine = all_.at(request.subscriber);
  mine.from = request.from;
  const bool others = mine.variables != request.variables;
  mine.variables = request.variables;
  std::vector<Followed> tables;
  for (const auto& [id, table] : described.tables) {
    const bool wanted =
        mine.variables.empty() || std::ranges::binary_search(mine.variables, id.variable);
    if (wanted)
      tables.push_back({id, table, &table->follow(request.subscriber)});
    else
      table->unfollow(request.subscriber);
  }
  if (others) {
    mine.hand = 0;
    for (const Followed& one : tables) one.changes->to_first_place();
  }
  mine.hand = tables.empty() ? 0 : std::min(mine.hand, tables.size() - 1);
  return tables;
}

// The pass that is under way is ended, and if that was not a whole one, as much as there is room
// for of the next. False: there was no room for all.
bool Subscriptions::take(Subscription& mine, const std::vector<Followed>& tables,
                         std::size_t bytes_max, ChangedRows& out) {
  const TimePoint now = clock_.now();
  if (mine.hand == 0 && (tables.empty() || tables.front().changes->at_first_place()))
    mine.pass_began = now;
  for (bool whole = mine.pass_began == now;; whole = true) {
    for (; mine.hand < tables.size(); ++mine.hand) {
      const auto& [id, table, changes] = tables[mine.hand];
      const std::size_t taken = out.bytes();
      if (taken >= bytes_max) return false;
      // Rows that are still to be restored must not be read, and this one would begin with all.
      const bool coming = shard_.restores(*table);
      if (coming && table->spec().initializer.kind == Initializer::Kind::kValue) continue;
      const TableChanges::Asked asked{bytes_max - taken, coming, mine.covered};
      if (!changes->take(*table, asked, {.variable = id.variable, .part = id.part}, out))
        return false;
    }
    mine.hand = 0;
    mine.covered = std::exchange(mine.pass_began, now);
    if (whole) return true;
  }
}

void Subscriptions::forget_idle() {
  if (!shard_.is_open() || all_.empty()) return;
  std::vector<std::uint64_t> idle;
  for (const auto& [subscriber, one] : all_)
    if (clock_.now() - one.asked > kIdleMax) idle.push_back(subscriber);
  if (idle.empty()) return;
  const Shard::Described described = shard_.describe();
  for (const std::uint64_t subscriber : idle) forget(subscriber, described);
  count(described);
}

void Subscriptions::forget(std::uint64_t subscriber, const Shard::Described& described) {
  for (const auto& [id, table] : described.tables) table->unfollow(subscriber);
  all_.erase(subscriber);
}

std::string Subscriptions::names() const {
  std::string names;
  for (const auto& [subscriber, one] : all_)
    names += str(names.empty() ? "" : ", ", one.from, " that asked ",
                 seconds(clock_.now() - one.asked), " s ago");
  return names;
}

void Subscriptions::count(const Shard::Described& described) {
  std::size_t bytes = 0;
  for (const auto& [id, table] : described.tables)
    for (const auto& [subscriber, one] : all_)
      if (const TableChanges* const changes = table->follower(subscriber))
        bytes += changes->bytes();
  shard_.count_followers(all_.size(), bytes);
}

}  // namespace cairn::ps
