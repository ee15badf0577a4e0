// Shard's rounds: shares are verified and kept as they come, then summed and applied as one push.
#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/tensor/bfloat16.h"
#include "ps/shard/encoding.h"
#include "ps/shard/shard.h"
#include "ps/shard/shard_copy.h"

namespace cairn::ps {
namespace {

// An assignment has no sum. The exception is an optimizer's count of its steps, of which a round is
// one.
void verify_has_a_sum(const UpdateHeader& header, const Table& table) {
  const bool counts = header.rule == counter_rule() && table.spec().dtype != DType::kFloat32;
  if (is_assignment(header.rule.kind) && !counts)
    throw InvalidArgumentError(
        str("variable '", table.spec().name, "': ", rule_name(header.rule),
            " as a share of a round: only an optimizer's updates are summed"));
}

}  // namespace

// The sum of the shares, in the order in which the first share names tables.
struct Shard::RoundSum {
  // The second update of a table within a push is summed with the second ones of other members.
  struct OfUpdate {
    Table* table;
    std::size_t nth;
    UpdateHeader header;
    RowSum sum;
    // An optimizer's count is not summed: these are the first member's values, as they came.
    std::span<const std::int64_t> counted_ids = {};
    std::span<const std::byte> counted = {};
  };
  std::vector<std::unique_ptr<OfUpdate>> updates;
  std::map<std::pair<const Table*, std::size_t>, OfUpdate*> places;
  std::vector<float> widened;
};

// Everything is verified now, while the sender can still be refused.
PushResult Shard::keep_share(const PushRequest& request, std::span<const PushPiece> pieces) {
  if (request.step.push_number != 0)
    throw InvalidArgumentError(str("closure ", request.step.closure, ", push ",
                                   request.step.push_number, " as a share of round ",
                                   request.step.round, ": a member pushes once"));
  const Plan plan = this->plan(pieces, request.encoding);
  for (const PlannedUpdate& update : plan.updates) verify_has_a_sum(*update.header, *update.table);
  const Share* const kept = rounds_.keep(request, pieces);
  if (kept != nullptr && is_logged() && options_.log->wants_shares()) {
    RowChange change = ShardCopy(*this).share(request.step, request.slice, *kept);
    options_.log->changed(change);
  }
  if (request.step.global_step > 0)  // it will be, unless the round comes to nothing
    ShardCounters::raise(counters_.follow.step,
                         static_cast<std::uint64_t>(request.step.global_step));
  if (PushObserver* const told = observer()) told->pushed(request.step, true, 0);
  return {version(), 0, false};
}

bool Shard::verify_round(const RoundRequest& request) {
  verify_session(request.session);
  if (request.round == 0 || request.members.empty())
    throw InvalidArgumentError("a round has a number, which is not 0, and a member");
  std::size_t applied = 0;
  for (const RoundMember& member : request.members) {
    applied_.verify_announced(member.closure);
    applied += applied_.contains(member.closure, 0, 0) ? 1 : 0;
  }
  if (applied == request.members.size()) return true;
  if (applied != 0)
    throw InvalidArgumentError(str("round ", request.round, ": ", applied, " of its ",
                                   request.members.size(),
                                   " members are applied on this shard, the others are not"));
  for (const RoundMember& member : request.members) {
    // The same check as for a push. Without it a lost share would look like one that never was: a
    // closure need not have rows on each shard.
    if (member.sent_layout < layout_.first || rounds_.has_lost(request.round)) {
      ShardCounters::add(counters_.outdated, 1);
      throw AbortedError(str("round ", request.round, ": what its member, closure ", member.closure,
                             ", pushed here is gone, since this shard was restored or rebuilt: run "
                             "all members again"));
    }
    applied_.check_room(member.closure);
  }
  return false;
}

void Shard::add_share(RoundSum& sum, const Share& share) {
  Plan plan;
  this->plan(plan, share.piece(), share.encoding);
  std::map<const Table*, std::size_t> seen;
  for (const PlannedUpdate& update : plan.updates) {
    Table& table = *update.table;
    const UpdateHeader& header = *update.header;
    std::size_t& count = seen[&table];
    count += update.continues ? 0 : 1;
    RoundSum::OfUpdate*& place = sum.places[{&table, count}];
    if (place == nullptr) {
      sum.updates.push_back(std::make_unique<RoundSum::OfUpdate>(
          RoundSum::OfUpdate{&table, count, header, RowSum(table.rows(), table.spec().dim())}));
      place = sum.updates.back().get();
      if (is_assignment(header.rule.kind)) {
        place->counted_ids = update.ids;
        place->counted = update.values;
      }
    }
    if (place->header.rule != header.rule || place->header.learning_rate != header.learning_rate)
      throw InvalidArgumentError(str("variable '", table.spec().name, "': a member of the round ",
                                     "updates it by ", rule_name(header.rule), " at rate ",
                                     header.learning_rate, ", another one by ",
                                     rule_name(place->header.rule), " at rate ",
                                     place->header.learning_rate, ": their sum has no meaning"));
    if (is_assignment(header.rule.kind)) continue;
    const std::size_t elements =
        update.values.size() / wire_bytes(share.encoding, table.spec().dtype);
    sum.widened.resize(std::max(sum.widened.size(), elements));
    // Copied in any case: values lie in a share at any alignment.
    if (is_narrowed(share.encoding, table.spec().dtype))
      widen_from_bfloat16(update.values.data(), elements, sum.widened.data());
    else if (elements > 0)
      std::memcpy(sum.widened.data(), update.values.data(), update.values.size());
    if (header.whole)
      place->sum.add_all(sum.widened.data());
    else
      place->sum.add_rows(update.ids, sum.widened.data());
  }
}

PushResult Shard::apply_round(const RoundRequest& request) {
  if (verify_round(request)) return repeated(request);
  RoundSum sum;
  Plan plan = sum_up(request, sum);
  if ((cuts_.mark.has_value() || !waits_.idle()) && rows_must_wait(plan)) return wait(request);
  return finish_round(request, std::move(plan));
}

// Summed anew: what was kept meanwhile are the shares, which are as they came, not their sum.
PushResult Shard::take_turn(const RoundRequest& request) {
  ShardCounters::set(counters_.kept.waiting, waits_.size());
  if (verify_round(request)) return repeated(request);
  RoundSum sum;
  return finish_round(request, sum_up(request, sum));
}

PushResult Shard::repeated(const RoundRequest& request) {
  rounds_.end(request.round);
  ShardCounters::add(counters_.duplicates, 1);
  if (PushObserver* const told = observer()) told->applied_round(request, false);
  return {version(), 0, true};
}

Shard::Plan Shard::sum_up(const RoundRequest& request, RoundSum& sum) {
  for (const RoundMember& member : request.members)
    for (const Share* share : rounds_.of(request.round, member.closure)) add_share(sum, *share);
  Plan plan;
  for (const auto& one : sum.updates) {
    PlannedUpdate update{one->table, &one->header, one->counted_ids, one->counted};
    if (!is_assignment(one->header.rule.kind)) {
      one->header.whole = one->sum.whole();
      one->header.rows = static_cast<std::uint32_t>(one->sum.ids().size());
      update.ids = one->sum.ids();
      update.values = std::as_bytes(one->sum.values());
    }
    plan.updates.push_back(update);
  }
  verify_growth(plan);
  return plan;
}

PushResult Shard::finish_round(const RoundRequest& request, Plan plan) {
  if (is_logged()) tell({{}, 0, &request, RowEncoding::kRaw, {}}, plan);
  // From here on nothing is refused, and what was applied is noted in the same call.
  apply_sum(plan);
  for (const RoundMember& member : request.members) applied_.add_whole(member.closure);
  rounds_.end(request.round);
  if (PushObserver* const told = observer()) told->applied_round(request, true);
  if (cuts_.mark.has_value()) count_copies();
  settle();
  return {version(), 0, false};
}

void Shard::apply_sum(const Plan& plan) {
  for (const PlannedUpdate& update : plan.updates) apply(update, RowEncoding::kRaw);
  for (const PlannedUpdate& update : plan.updates) update.table->count_write();
  ++counter_;
  ShardCounters::add(counters_.pushes.calls, 1);
}

}  // namespace cairn::ps
