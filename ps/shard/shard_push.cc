// Shard's push: it, or a slice of it, is verified as a whole, then applied as a whole.
#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/graph/custom_rule.h"
#include "core/tensor/bfloat16.h"
#include "ps/shard/encoding.h"
#include "ps/shard/shard.h"

namespace cairn::ps {

PushResult Shard::push(const PushRequest& request) {
  // A duplicate is acknowledged like a push that was applied: an earlier run of the closure has
  // brought it here, and this run goes on to the shards that still lack theirs.
  if (applied_before(request) || (request.step.round != 0 && rounds_.over(request.step.round)))
    return duplicate(request);
  if (request.slice != 0) verify_slice(request);
  if (request.pieces == 1) {
    const PushPiece alone{request.headers, request.ids, request.values, nullptr};
    return apply_or_wait(request, {&alone, 1});
  }
  const std::vector<PushPiece> whole = staging_.add(request, clock_.now());
  if (whole.empty()) return {version(), 0, false};
  return apply_or_wait(request, whole);
}

// Or whether it is to be refused. A push that waited is asked the same again in its turn.
bool Shard::applied_before(const PushRequest& request) {
  verify_step(request.step);
  verify_fence(request.step);
  applied_.verify_announced(request.step.closure);
  if (applied_.contains(request.step.closure, request.step.push_number, request.slice)) return true;
  if (request.pulled.lineage != 0 && request.pulled.lineage != lineage_) {
    ShardCounters::add(counters_.outdated, 1);
    throw AbortedError(str("closure ", request.step.closure, " pulled from lineage ",
                           request.pulled.lineage, " of this shard, which is now ", lineage_,
                           ": run the closure again"));
  }
  // A push without a pull names no lineage to compare. The layout by which it was sent shows as
  // well whether it was meant for a process that is gone.
  if (request.step.sent_layout < layout_.first) {
    ShardCounters::add(counters_.outdated, 1);
    throw AbortedError(str("closure ", request.step.closure, " was sent by layout version ",
                           request.step.sent_layout, ", this shard was rebuilt in version ",
                           layout_.first, ": run the closure again"));
  }
  // A copy that has become the primary may lack updates that were read, and answered to nobody.
  if (request.pulled.counter > counter_ && request.pulled.lineage != 0 && !layout_.copied)
    throw InvalidArgumentError(str("closure ", request.step.closure, " pulled version ",
                                   request.pulled.counter, ", the shard is at ", counter_));
  applied_.check_room(request.step.closure);
  return false;
}

PushResult Shard::apply_or_wait(const PushRequest& request, std::span<const PushPiece> pieces) {
  if (request.step.round != 0) return keep_share(request, pieces);
  Plan plan = this->plan(pieces, request.encoding);
  if ((cuts_.mark.has_value() || !waits_.idle()) && rows_must_wait(plan))
    return wait(request, pieces);
  return finish_push(request, std::move(plan));
}

void Shard::verify_slice(const PushRequest& request) const {
  if (request.slice > options_.staging.pieces_max)
    throw InvalidArgumentError(str("slice ", request.slice, " of a push: there are at most ",
                                   options_.staging.pieces_max));
  if (request.pieces != 1)
    throw InvalidArgumentError(str("slice ", request.slice, " of a push comes in ", request.pieces,
                                   " pieces: a slice is small enough to come in one"));
  for (const UpdateHeader& header : request.headers)
    if (reaches_every_part(header.rule.kind))
      throw InvalidArgumentError(str("slice ", request.slice, " of a push updates by ",
                                     rule_name(header.rule),
                                     ", which has to see its update as a whole"));
}

PushResult Shard::duplicate(const PushRequest& request) {
  if (request.slice == 0) staging_.forget(request.step);
  ShardCounters::add(counters_.duplicates, 1);
  if (PushObserver* const told = observer()) told->pushed(request.step, false, 0);
  return {version(), 0, true};
}

PushResult Shard::finish_push(const PushRequest& request, Plan plan) {
  if (is_logged()) tell({request.step, request.slice, nullptr, request.encoding, {}}, plan);
  // From here on nothing is refused: plan() has verified every update, and the room for new rows.
  // The push is noted as applied in the same call, so that no cut and no repetition comes between
  // the two.
  for (const PlannedUpdate& update : plan.updates) apply(update, request.encoding);
  for (const PlannedUpdate& update : plan.updates) update.table->count_write();
  const StepContext& step = request.step;
  if (step.global_step > 0)
    ShardCounters::raise(counters_.follow.step, static_cast<std::uint64_t>(step.global_step));
  // A push in slices is counted once, with the first slice of it.
  const bool counted = applied_.begun(step.closure, step.push_number);
  const std::uint64_t staleness = counted ? 0 : count_push(request);
  applied_.add(step.closure, step.push_number, request.slice, counted ? 0 : counter_);
  if (PushObserver* const told = observer()) told->pushed(step, true, staleness);
  if (request.slice == 0) staging_.forget(step);
  if (cuts_.mark.has_value()) count_copies();
  settle();
  return {version(), staleness, false};
}

// Staleness counts the pushes of others since the pull: what the closure itself has pushed in
// earlier waves is taken off.
std::uint64_t Shard::count_push(const PushRequest& request) {
  const bool pulled = request.pulled.lineage != 0;
  const bool ahead = request.pulled.counter > counter_;
  const std::uint64_t staleness =
      pulled && !ahead ? counter_ - request.pulled.counter -
                             applied_.own_since(request.step.closure, request.pulled.counter)
                       : 0;
  ++counter_;
  ShardCounters::add(counters_.pushes.calls, 1);
  ShardCounters::add(counters_.staleness.sum, staleness);
  ShardCounters::set(counters_.staleness.max,
                     std::max(staleness, counters_.staleness.max.load(std::memory_order_relaxed)));
  return staleness;
}

Shard::Plan Shard::plan(std::span<const PushPiece> pieces, RowEncoding encoding) {
  Plan made;
  for (const PushPiece& piece : pieces) plan(made, piece, encoding);
  join_table_updates(made);
  verify_growth(made);
  return made;
}

// Before anything is applied: whether the rows that hashed tables may have to make fit.
void Shard::verify_growth(const Plan& plan) const {
  std::size_t bytes = counters_.bytes.load(std::memory_order_relaxed);
  for (const PlannedUpdate& update : plan.updates) {
    if (!update.table->hashed()) continue;
    bytes += update.ids.size() * update.table->place_bytes();
    if (bytes > options_.tables_bytes_max ||
        update.table->held() + static_cast<std::int64_t>(update.ids.size()) > IdIndex::kIdsMax)
      throw ResourceExhaustedError(
          str("hashed variable '", update.table->spec().name, "' holds ", update.table->held(),
              " rows on this shard, and has no room for ", update.ids.size(), " more: of ",
              options_.tables_bytes_max, " bytes ", counters_.bytes.load(std::memory_order_relaxed),
              " are taken; use more ps, or fewer distinct ids"));
  }
}

void Shard::plan(Plan& plan, const PushPiece& piece, RowEncoding encoding) {
  const auto [headers, ids, values, kept] = piece;
  if (!values.apart.empty() && values.apart.size() != headers.size())
    throw InvalidArgumentError(str("a push of ", headers.size(), " headers whose values lie in ",
                                   values.apart.size(), " places: each has one"));
  plan.updates.reserve(plan.updates.size() + headers.size());
  std::size_t used = 0, bytes = 0;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const UpdateHeader& header = headers[i];
    Table& table = find(header.variable, header.part);
    verify_update(table, header);
    if (header.rows > ids.size() - used)
      throw InvalidArgumentError(str("variable '", table.spec().name, "': ", header.rows,
                                     " rows are updated, fewer ids came"));
    const std::size_t rows = header.whole ? static_cast<std::size_t>(table.rows()) : header.rows;
    const std::size_t size = rows * static_cast<std::size_t>(table.spec().dim()) *
                             wire_bytes(encoding, table.spec().dtype);
    const std::span<const std::byte> rest =
        values.apart.empty() ? values.together.subspan(bytes) : values.apart[i];
    if (size > rest.size() || (size < rest.size() && !values.apart.empty()))
      throw InvalidArgumentError(str("variable '", table.spec().name, "': its ", rows, " rows of ",
                                     table.spec().dim(), " take ", size, " bytes, ", rest.size(),
                                     " came"));
    PlannedUpdate update{&table, &header, ids.subspan(used, header.rows), rest.first(size)};
    verify_ids(table, update.ids, true);
    update.continues = !plan.updates.empty() && goes_on(plan.updates.back(), update);
    plan.updates.push_back(update);
    used += header.rows;
    bytes += size;
  }
  // Whatever the headers do not account for means that sender and shard disagree about the tables.
  if (used != ids.size() || bytes != values.bytes())
    throw InvalidArgumentError(str("a push with ", ids.size(), " ids and ", values.bytes(),
                                   " bytes of values, whose headers use ", used, " and ", bytes));
}

// Whether `next` is the rest of an update that was cut.
bool Shard::goes_on(const PlannedUpdate& last, const PlannedUpdate& next) {
  const UpdateHeader &before = *last.header, &after = *next.header;
  return last.table == next.table && !before.whole && !after.whole && before.rule == after.rule &&
         before.learning_rate == after.learning_rate && !last.ids.empty() && !next.ids.empty() &&
         next.ids.front() > last.ids.back();
}

// A table rule takes rows that are not named for rows without gradient: it has to see all that are
// named at once.
void Shard::join_table_updates(Plan& plan) {
  auto cut_table_rule = [](const PlannedUpdate& update) {
    return update.continues && is_table_rule(update.header->rule.kind);
  };
  if (std::none_of(plan.updates.begin(), plan.updates.end(), cut_table_rule)) return;
  std::vector<PlannedUpdate> updates;
  for (std::size_t begin = 0, end = 0; begin < plan.updates.size(); begin = end) {
    for (end = begin + 1; end < plan.updates.size() && plan.updates[end].continues; ++end) {
    }
    const std::span<const PlannedUpdate> cut(plan.updates.data() + begin, end - begin);
    if (cut.size() == 1 || !is_table_rule(cut.front().header->rule.kind)) {
      updates.insert(updates.end(), cut.begin(), cut.end());
      continue;
    }
    struct Joined {
      std::vector<std::int64_t> ids;
      std::vector<std::byte> values;
    };
    auto joined = std::make_shared<Joined>();
    for (const PlannedUpdate& update : cut) {
      joined->ids.insert(joined->ids.end(), update.ids.begin(), update.ids.end());
      joined->values.insert(joined->values.end(), update.values.begin(), update.values.end());
    }
    updates.push_back({cut.front().table, cut.front().header, joined->ids, joined->values});
    plan.joined.push_back(std::move(joined));
  }
  plan.updates = std::move(updates);
}

void Shard::verify_update(const Table& table, const UpdateHeader& header) const {
  const VariableSpec& spec = table.spec();
  try {
    verify_rule(header.rule);
    verify_learning_rate(header.rule, header.learning_rate);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str("variable '", spec.name, "': ", error.what()));
  }
  cairn::verify_update(spec, header.rule, !header.whole);
  if (header.whole && header.rows != 0)
    throw InvalidArgumentError(str("variable '", spec.name, "': an update of the whole and of ",
                                   header.rows, " rows at once"));
  const std::string_view rule = rule_name(header.rule);
  if (!is_assignment(header.rule.kind) && spec.dtype != DType::kFloat32)
    throw InvalidArgumentError(str("variable '", spec.name, "' is ", dtype_name(spec.dtype), ": ",
                                   rule, " updates float32 variables only"));
  if (dtype_bytes(spec.dtype) == 2)
    throw InvalidArgumentError(str("variable '", spec.name, "' is ", dtype_name(spec.dtype),
                                   ", which is for storage only: it cannot be updated"));
  const UpdateRule& kept = table.rule();
  if (is_kept(header.rule) && (header.rule.kind != kept.kind || !has_operations(kept)))
    throw FailedPreconditionError(str("variable '", spec.name, "' is updated by ", rule,
                                      ", but its slots are those of ", rule_name(kept),
                                      ": configure it with its rule first"));
}

void Shard::apply(const PlannedUpdate& update, RowEncoding encoding) {
  Table& table = *update.table;
  const UpdateHeader& header = *update.header;
  const UpdateRule& rule = header.rule.kind == RuleKind::kCustom ? table.rule() : header.rule;
  const DType dtype = table.spec().dtype;
  const std::byte* values = update.values.data();
  const bool narrowed = is_narrowed(encoding, dtype);
  const bool misaligned =
      !narrowed && reinterpret_cast<std::uintptr_t>(values) % dtype_bytes(dtype) != 0;
  // Rules read whole elements at their natural alignment, which a place within a message or in
  // shared memory does not promise.
  if (narrowed || misaligned) {
    const std::size_t elements = update.values.size() / wire_bytes(encoding, dtype);
    work_.widened.resize(std::max(work_.widened.size(), elements * dtype_bytes(dtype)));
    if (misaligned)
      std::memcpy(work_.widened.data(), values, update.values.size());
    else
      widen_from_bfloat16(update.values.data(), elements,
                          reinterpret_cast<float*>(work_.widened.data()));
    values = work_.widened.data();
  }
  const std::int64_t rows_before = rows_of(table);
  const std::size_t bytes = table.memory_bytes();
  if (header.whole)
    table.update_all(rule, header.learning_rate, values);
  else if (!update.ids.empty() || reaches_every_part(rule.kind))
    table.update(rule, header.learning_rate, update.ids, values, update.continues);
  count_growth(table, rows_before, bytes);
  ShardCounters::add(counters_.pushes.rows,
                     header.whole ? static_cast<std::uint64_t>(table.rows()) : update.ids.size());
  ShardCounters::add(counters_.pushes.bytes, update.values.size());
}

// Rows on a disk are counted apart, and leave memory at other times (count_tiers()).
std::int64_t Shard::rows_of(const Table& table) {
  return table.tier() == nullptr ? table.used() : table.held();
}

// Counts the rows and bytes by which a hashed table has grown, or become less.
void Shard::count_growth(const Table& table, std::int64_t rows_before, std::size_t bytes_before) {
  if (table.spec().policy.keeps_all() && rows_of(table) == rows_before) return;
  ShardCounters::add(counters_.rows, static_cast<std::uint64_t>(rows_of(table) - rows_before));
  ShardCounters::add(counters_.bytes, table.memory_bytes() - bytes_before);
  if (!table.spec().policy.keeps_all()) count_turnover();
}

void Shard::count_turnover() {
  std::uint64_t dropped = 0, gone = 0;
  for (const auto& [key, table] : tables_) {
    dropped += table->dropped();
    gone += table->gone();
  }
  ShardCounters::set(counters_.turnover.dropped, dropped);
  ShardCounters::set(counters_.turnover.gone, gone);
}

}  // namespace cairn::ps
