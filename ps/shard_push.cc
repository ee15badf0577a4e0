// Shard's push: verified as a whole, then applied as a whole.
#include <algorithm>
#include <cstring>

#include "core/bfloat16.h"
#include "core/error.h"
#include "ps/encoding.h"
#include "ps/shard.h"

namespace cairn::ps {

PushResult Shard::push(const PushRequest& request) {
  verify_step(request.step);
  verify_fence(request.step);
  if (applied_.contains(request.step.closure, request.step.push_number)) return duplicate(request);
  if (request.pulled.incarnation != 0 && request.pulled.incarnation != incarnation_) {
    ShardCounters::add(counters_.outdated, 1);
    throw AbortedError(str("closure ", request.step.closure, " pulled from incarnation ", request.pulled.incarnation, " of this shard, which is now ",
                           incarnation_, ": run the closure again"));
  }
  if (request.step.layout_version < first_version_) {
    ShardCounters::add(counters_.outdated, 1);
    throw AbortedError(str("closure ", request.step.closure, " was sent by layout version ", request.step.layout_version, ", this shard was rebuilt in version ",
                           first_version_, ": run the closure again"));
  }
  if (request.pulled.counter > counter_ && request.pulled.incarnation != 0)
    throw InvalidArgumentError(str("closure ", request.step.closure, " pulled version ", request.pulled.counter, ", the shard is at ", counter_));
  applied_.check_room(request.step.closure);
  if (request.pieces == 1) return finish_push(request, plan(request.headers, request.ids, request.values, request.encoding));

  const std::optional<WholePush> whole = staging_.add(request, clock_.now());
  ShardCounters::set(counters_.staged_bytes, staging_.bytes());
  if (!whole.has_value()) return {version(), 0, false};
  return finish_push(request, plan(whole->headers, whole->ids, whole->values, request.encoding));
}

PushResult Shard::duplicate(const PushRequest& request) {
  staging_.forget(request.step.closure, request.step.push_number);
  ShardCounters::add(counters_.duplicates, 1);
  if (options_.observer != nullptr) options_.observer->pushed(request.step, false);
  return {version(), 0, true};
}

PushResult Shard::finish_push(const PushRequest& request, const std::vector<PlannedUpdate>& updates) {
  for (const PlannedUpdate& update : updates) apply(update, request.encoding);
  if (options_.observer != nullptr) options_.observer->pushed(request.step, true);
  const StepContext& step = request.step;
  const bool pulled = request.pulled.incarnation != 0;
  const std::uint64_t staleness = pulled ? counter_ - request.pulled.counter - applied_.own_since(step.closure, request.pulled.counter) : 0;
  ++counter_;
  applied_.add(step.closure, step.push_number, counter_);
  applied_.raise_watermark(std::min(step.low_watermark, step.closure));
  staging_.forget(step.closure, step.push_number);
  ShardCounters::set(counters_.counter, counter_);
  ShardCounters::set(counters_.staged_bytes, staging_.bytes());
  ShardCounters::add(counters_.pushes, 1);
  ShardCounters::add(counters_.staleness_sum, staleness);
  ShardCounters::set(counters_.staleness_max, std::max(staleness, counters_.staleness_max.load(std::memory_order_relaxed)));
  return {version(), staleness, false};
}

std::vector<Shard::PlannedUpdate> Shard::plan(std::span<const UpdateHeader> headers, std::span<const std::int64_t> ids,
                                              std::span<const std::byte> values, Encoding encoding) {
  std::vector<PlannedUpdate> updates;
  updates.reserve(headers.size());
  std::size_t used = 0, bytes = 0;
  for (const UpdateHeader& header : headers) {
    Table& table = find(header.variable, header.part);
    verify_update(table, header);
    if (header.rows > ids.size() - used)
      throw InvalidArgumentError(str("variable '", table.spec().name, "': ", header.rows, " rows are updated, fewer ids came"));
    const std::size_t rows = header.whole ? static_cast<std::size_t>(table.rows()) : header.rows;
    const std::size_t size = rows * static_cast<std::size_t>(table.spec().dim()) * wire_bytes(encoding, table.spec().dtype);
    if (size > values.size() - bytes)
      throw InvalidArgumentError(str("variable '", table.spec().name, "': its ", rows, " rows of ", table.spec().dim(), " take ", size,
                                     " bytes, only ", values.size() - bytes, " came"));
    PlannedUpdate* last = updates.empty() ? nullptr : &updates.back();
    const bool continues = last != nullptr && last->table == &table && !last->header->whole && !header.whole &&
                           last->header->rule == header.rule && last->header->learning_rate == header.learning_rate &&
                           !last->ids.empty() && header.rows > 0 && ids[used] > last->ids.back();
    if (continues) {  // the update was cut, here it goes on
      last->ids = {last->ids.data(), last->ids.size() + header.rows};
      last->values = {last->values.data(), last->values.size() + size};
    } else {
      updates.push_back({&table, &header, ids.subspan(used, header.rows), values.subspan(bytes, size)});
    }
    verify_ids(table, ids.subspan(used, header.rows), true);
    used += header.rows;
    bytes += size;
  }
  if (used != ids.size() || bytes != values.size())
    throw InvalidArgumentError(str("a push with ", ids.size(), " ids and ", values.size(), " bytes of values, whose headers use ", used, " and ", bytes));
  return updates;
}

void Shard::verify_update(const Table& table, const UpdateHeader& header) const {
  const VariableSpec& spec = table.spec();
  try {
    verify_rule(header.rule);
    verify_learning_rate(header.rule, header.learning_rate);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str("variable '", spec.name, "': ", error.what()));
  }
  if (header.whole && header.rows != 0)
    throw InvalidArgumentError(str("variable '", spec.name, "': an update of the whole and of ", header.rows, " rows at once"));
  const std::string_view rule = rule_name(header.rule.kind);
  if (!is_assignment(header.rule.kind) && spec.dtype != DType::kFloat32)
    throw InvalidArgumentError(str("variable '", spec.name, "' is ", dtype_name(spec.dtype), ": ", rule, " updates float32 variables only"));
  if (dtype_bytes(spec.dtype) == 2)
    throw InvalidArgumentError(str("variable '", spec.name, "' is ", dtype_name(spec.dtype), ", which is for storage only: it cannot be updated"));
  if (!rule_slots(header.rule).empty() && header.rule.kind != table.rule().kind)
    throw FailedPreconditionError(str("variable '", spec.name, "' is updated by ", rule, ", but its slots are those of ",
                                      rule_name(table.rule().kind), ": configure it with its rule first"));
}

void Shard::apply(const PlannedUpdate& update, Encoding encoding) {
  Table& table = *update.table;
  const UpdateHeader& header = *update.header;
  const DType dtype = table.spec().dtype;
  const std::byte* values = update.values.data();
  const bool narrowed = is_narrowed(encoding, dtype);
  const bool misaligned = !narrowed && reinterpret_cast<std::uintptr_t>(values) % dtype_bytes(dtype) != 0;
  if (narrowed || misaligned) {
    const std::size_t elements = update.values.size() / wire_bytes(encoding, dtype);
    scratch_.resize(std::max(scratch_.size(), elements * dtype_bytes(dtype)));
    if (misaligned)
      std::memcpy(scratch_.data(), values, update.values.size());
    else
      widen_from_bfloat16(update.values.data(), elements, reinterpret_cast<float*>(scratch_.data()));
    values = scratch_.data();
  }
  if (header.whole)
    table.apply_dense(header.rule, header.learning_rate, values);
  else if (!update.ids.empty() || reaches_every_part(header.rule.kind))
    table.apply(header.rule, header.learning_rate, update.ids, values);
  ShardCounters::add(counters_.pushed_rows, header.whole ? static_cast<std::uint64_t>(table.rows()) : update.ids.size());
  ShardCounters::add(counters_.pushed_bytes, update.values.size());
}

}  // namespace cairn::ps
