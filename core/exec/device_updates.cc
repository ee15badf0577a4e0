#include "core/exec/device_updates.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/exec/wave_cutter.h"
#include "core/graph/op_def.h"
#include "core/graph/rules/rule_def.h"

namespace cairn {

// The variable of an update that the device makes; nullptr: the store makes it.
DeviceRows::Held* DeviceUpdates::held_for(const BoundUpdate& update) const {
  if (update.shared) return nullptr;
  DeviceRows::Held* const held =
      reads_.hold(static_cast<std::size_t>(variable_number(values_.node(update.node))));
  if (held == nullptr) return nullptr;
  // The store says what is wrong with slots that were not declared.
  const UpdateRule& rule = rule_of(update);
  if (is_kept(rule) && rule != held->rule) return nullptr;
  if (is_sparse(update.node) && ids_type(update.node).shape.rank() == 0) return nullptr;
  return held;
}

bool DeviceUpdates::is_sparse(std::int32_t update) const {
  return values_.node(update).attributes.get<bool>("sparse");
}

bool DeviceUpdates::is_value_read(std::int32_t update) const {
  const std::int32_t value = values_.input(update, is_sparse(update) ? 1 : 0);
  return is_read(values_.producer(values_.bound().root(value)));
}

const UpdateRule& DeviceUpdates::rule_of(const BoundUpdate& update) const {
  return values_.node(update.node).attributes.get<UpdateRule>("rule");
}

void DeviceUpdates::leave_out(const std::vector<bool>& left_out) {
  std::size_t i = 0;
  std::erase_if(values_.space().made.updates, [&](const BoundUpdate*) { return left_out[i++]; });
}

void DeviceUpdates::make(BoundWave& wave) {
  if (!has_any()) return;
  for (BoundUpdate* update : values_.space().made.updates) send_rates({update, 1});
  enqueue(wave);
  clear();
}

// Those go together whose variable has no other update in the wave. One whose values are a variable
// as it was read goes alone, before them: the values may be that variable's memory, which they
// change.
void DeviceUpdates::enqueue(BoundWave& wave) {
  const std::vector<BoundUpdate*>& updates = values_.space().made.updates;
  std::vector<BoundUpdate*>& together = values_.space().made.together;
  together.clear();
  for (BoundUpdate* update : updates) {
    const auto of_same = [&](const BoundUpdate* other) {
      return values_.stored_variable(other->node) == values_.stored_variable(update->node);
    };
    if (!is_value_read(update->node) && std::ranges::count_if(updates, of_same) == 1)
      together.push_back(update);
    else
      enqueue_one(wave, *update);
  }
  if (together.size() == 1)
    enqueue_one(wave, *together[0]);
  else if (!together.empty())
    enqueue_together(wave, together);
  values_.device().row_kernels()->finish_updates();
}

// run_of() comes first: it brings rows into a cache, whose size is known only then.
void DeviceUpdates::enqueue_one(BoundWave& wave, BoundUpdate& update) {
  RowKernels& kernels = *values_.device().row_kernels();
  const RowKernels::UpdateRun run = run_of(update);
  if (const std::int64_t rows = rows_here(update); !update.here || update.rows_here != rows) {
    const RowKernels::UpdateOf of = update_of(update);
    update.here = kernels.prepare_update(of.rule, of.table, of.ids ? &*of.ids : nullptr);
    update.rows_here = rows;
  }
  // Updates of one variable come in their order.
  for (const BoundUpdate& earlier : wave.updates) {
    if (&earlier == &update) break;
    if (values_.stored_variable(earlier.node) == values_.stored_variable(update.node)) {
      kernels.finish_updates();
      break;
    }
  }
  update.here(run);
}

void DeviceUpdates::enqueue_together(BoundWave& wave, std::span<BoundUpdate* const> updates) {
  UpdatesTogether& prepared = wave.together;
  std::vector<RowKernels::UpdateRun>& runs = values_.space().made.runs;
  runs.clear();
  for (BoundUpdate* update : updates) runs.push_back(run_of(*update));
  const auto as_prepared = [&](const UpdatesTogether::Member& member, const BoundUpdate* update) {
    return member.update == update && member.rows == rows_here(*update);
  };
  if (!std::ranges::equal(prepared.members, updates, as_prepared)) {
    std::vector<RowKernels::UpdateOf> all;
    prepared.members.clear();
    for (const BoundUpdate* update : updates) {
      all.push_back(update_of(*update));
      prepared.members.push_back({update, rows_here(*update)});
    }
    prepared.run = values_.device().row_kernels()->prepare_updates(all);
  }
  prepared.run(runs);
}

RowKernels::UpdateRun DeviceUpdates::run_of(BoundUpdate& update) {
  DeviceRows::Held& held = *held_for(update);
  const bool cached = held.cache != nullptr, sparse = is_sparse(update.node);
  RowKernels::UpdateRun run;
  if (sparse) run.ids = cached ? places_of(update, held) : ids_here(update);
  run.block = cached ? held.cache->block() : held.block;
  run.rates =
      reinterpret_cast<const RuleRates*>(values_.bound().rates.memory.get()) + update.rates_place;
  if (!sparse) {
    run.values = values_.data(values_.input(update.node, 0));
    return run;
  }
  const RowKernels::UpdateRun rows = values_of(update, held.block.dim);
  run.values = rows.values;
  run.values_stride = rows.values_stride;
  return run;
}

// Where the values of an update by ids lie.
RowKernels::UpdateRun DeviceUpdates::values_of(const BoundUpdate& update, std::int64_t dim) const {
  const RowsWithin& rows = update.rows;
  RowKernels::UpdateRun run;
  run.values = rows.within < 0 ? values_.data(values_.input(update.node, 1))
                               : values_.data(rows.within) +
                                     static_cast<std::size_t>(rows.begin) *
                                         dtype_bytes(values_.variable_of(update.node).type.dtype);
  run.values_stride = rows.within < 0 ? dim : rows.stride;
  return run;
}

// As the device is to prepare it, of a variable that may be cached.
RowKernels::UpdateOf DeviceUpdates::update_of(const BoundUpdate& update) const {
  const DeviceRows::Held& held = *held_for(update);
  RowKernels::UpdateOf made{rule_of(update), DeviceReads::type_here(held), std::nullopt};
  if (is_sparse(update.node)) made.ids = ids_type(update.node);
  if (made.ids && held.cache != nullptr) made.ids->dtype = DType::kInt32;
  return made;
}

// Rows of a variable as kernels see it: they were prepared for so many.
std::int64_t DeviceUpdates::rows_here(const BoundUpdate& update) const {
  const TensorType type = DeviceReads::type_here(*held_for(update));
  return type.shape.rank() > 0 ? type.shape[0] : 1;
}

// Counts the updates, and brings their rates to the device, if they are not those that lie there.
void DeviceUpdates::send_rates(std::span<BoundUpdate> updates) {
  RatesOnDevice& rates = values_.bound().rates;
  if (rates.memory == nullptr) {
    std::size_t all = 0;
    for (const BoundWave& wave : values_.bound().waves) all += wave.updates.size();
    rates.memory = values_.device().allocate(all * sizeof(RuleRates));
    rates.sent.assign(all * sizeof(RuleRates), std::byte{0xff});  // NaNs: no rates
  }
  // A rate that is refused leaves every count as it was.
  for (const BoundUpdate& update : updates)
    if (!is_assignment(rule_of(update).kind))
      verify_learning_rate(rule_of(update), values_.learning_rate(update.node));
  for (BoundUpdate& update : updates) {
    DeviceRows::Held& held = *held_for(update);
    const UpdateRule& rule = rule_of(update);
    RuleInputs inputs;
    if (!is_assignment(rule.kind)) {
      inputs.learning_rate = values_.learning_rate(update.node);
      ++held.updates;
    }
    inputs.t = std::max<std::int64_t>(held.updates, 1);
    held.changed = true;
    const RuleRates made = fold_rates(rule, inputs);
    const std::size_t offset = update.rates_place * sizeof made;
    std::byte* const sent = rates.sent.data() + offset;
    if (std::memcmp(sent, &made, sizeof made) == 0) continue;
    std::memcpy(sent, &made, sizeof made);
    values_.device().copy(Device::Direction::kIn, rates.memory.get() + offset, sent, sizeof made);
  }
}

// ---- ids ----

// The type of all ids of a sparse update, joined into one vector; a scalar if their dtypes differ.
TensorType DeviceUpdates::ids_type(std::int32_t update) const {
  const std::span<const std::int32_t> readers = values_.id_readers(update);
  return readers.empty() ? values_.bound().type(values_.input(update, 0))
                         : reads_.joined_type(readers);
}

const std::byte* DeviceUpdates::ids_here(BoundUpdate& update) {
  const std::span<const std::int32_t> readers = values_.id_readers(update.node);
  if (readers.empty()) return values_.data(values_.input(update.node, 0));
  return reads_.join_ids(readers, update.joined_ids);
}

// The places of an update's rows in the cache.
const std::byte* DeviceUpdates::places_of(BoundUpdate& update, DeviceRows::Held& held) {
  if (const auto source = values_.ids_source(update.node); source && held.batch == &source->here)
    return held.places;
  held.batch = nullptr;
  return reads_.find_cached(held, variable_number(values_.node(update.node)), ids_type(update.node),
                            ids_here(update));
}

// ---- sums ----

bool DeviceUpdates::sums(const BoundUpdate& update) const {
  if (!is_sparse(update.node) || !values_.has_ids_of_pull(update.node)) return false;
  return equal_ids(rule_of(update).kind) == EqualIds::kSum &&
         values_.variable_of(update.node).type.dtype == DType::kFloat32 &&
         values_.ids_source(update.node)->here.dealt != nullptr;
}

// The sums are what a step of SGD with rate -1 makes of rows of zeros: its kernels add the rows of
// equal ids of all tables in one go, in a fixed order.
void DeviceUpdates::prepare_sums(SumsTogether& sums, std::span<BoundUpdate* const> updates) {
  if (std::ranges::equal(sums.members, updates)) return;
  Device& device = values_.device();
  std::vector<RowKernels::UpdateOf> all;
  sums.offsets.clear();
  sums.bytes = 0;
  for (const BoundUpdate* update : updates) {
    const ReadHere& from = values_.ids_source(update->node)->here;
    const TensorType& table = values_.variable_of(update->node).type;
    all.push_back({UpdateRule{RuleKind::kSgd, {}},
                   TensorType{table.dtype, table.shape.with_dim(0, from.most)},
                   TensorType{DType::kInt32, {from.count}}});
    sums.offsets.push_back(sums.bytes);
    constexpr std::size_t kAlign = 256;
    sums.bytes +=
        (static_cast<std::size_t>(from.most) * row_bytes_of(table) + kAlign - 1) / kAlign * kAlign;
  }
  RuleRates rates;
  rates.rate = -1;
  sums.memory = device.allocate(sums.bytes);
  sums.rates = device.allocate(sizeof rates);
  device.copy(Device::Direction::kIn, sums.rates.get(), reinterpret_cast<const std::byte*>(&rates),
              sizeof rates);
  sums.run = device.row_kernels()->prepare_updates(all);
  sums.members.assign(updates.begin(), updates.end());
}

void DeviceUpdates::begin_sums(BoundWave& wave, std::span<BoundUpdate* const> updates) {
  SumsTogether& sums = wave.sums;
  prepare_sums(sums, updates);
  RowKernels& kernels = *values_.device().row_kernels();
  std::vector<RowKernels::UpdateRun>& runs = values_.space().made.runs;
  kernels.fill_zero(sums.memory.get(), sums.bytes);
  runs.clear();
  for (std::size_t k = 0; k < updates.size(); ++k) {
    const ReadHere& from = values_.ids_source(updates[k]->node)->here;
    const std::int64_t dim = values_.variable_of(updates[k]->node).type.shape.row_elements();
    RowKernels::UpdateRun run = values_of(*updates[k], dim);
    run.block = {DType::kFloat32, sums.memory.get() + sums.offsets[k], from.most, dim, dim};
    run.rates = reinterpret_cast<const RuleRates*>(sums.rates.get());
    run.ids = from.places.get();
    runs.push_back(run);
  }
  sums.run(runs);
  kernels.finish_updates();
  for (std::size_t k = 0; k < updates.size(); ++k) {
    const std::int32_t node = updates[k]->node;
    TensorType type = values_.variable_of(node).type;
    type.shape = type.shape.with_dim(0, values_.ids_source(node)->ids.tensor().shape()[0]);
    values_.space().host.begin_update(node, values_.memory_for_update(node, type),
                                      sums.memory.get() + sums.offsets[k]);
  }
}

}  // namespace cairn
