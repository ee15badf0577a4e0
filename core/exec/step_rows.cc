// Reads and updates of variables that lie in the memory of the step's device: nothing is asked of
// the store, and nothing leaves the device.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/exec/step.h"
#include "core/exec/wave_cutter.h"
#include "core/graph/op_def.h"
#include "core/graph/rules/rule_def.h"

namespace cairn {

// Whether the device has the group's variable. If so, its values are enqueued.
bool Step::serve(std::size_t g) {
  const ReadGroup& group = plan_->waves[wave_].reads[g];
  ReadHere& here = bound_->waves[wave_].here[g];
  DeviceRows::Held* const held = hold(static_cast<std::size_t>(group.variable));
  here.served = held != nullptr;
  if (!here.served) return false;
  const bool cached = held->cache != nullptr;
  if (std::exchange(here.cached, cached) != cached) here.gathers.clear();
  if (group.whole)
    serve_whole(*held, g);
  else if (cached)
    serve_cached(*held, g);
  else
    serve_rows(*held, g);
  return true;
}

// If nothing changes the variable while its value is in use, and it lies as the variable does, the
// value is the variable's own memory; otherwise it is a copy.
void Step::serve_whole(const DeviceRows::Held& held, std::size_t g) {
  ReadHere& here = bound_->waves[wave_].here[g];
  const ReadGroup& group = plan_->waves[wave_].reads[g];
  const bool packed = held.block.row_stride == held.block.dim;
  if (here.in_place.empty())
    for (std::int32_t i : group.nodes)
      here.in_place.push_back(packed && dtype_of_rows(i) == held.type.dtype && stays_as_read(i));
  for (std::size_t k = 0; k < group.nodes.size(); ++k) {
    const std::int32_t value = plan_->value({group.nodes[k], 0});
    std::byte* const place = arena_at(bound_->offset(value));
    const bool in_place = packed && here.in_place[k];
    space_.pointers[static_cast<std::size_t>(value)] = in_place ? held.block.base : place;
    if (!in_place) look_up(group.nodes[k], {held.block, nullptr, place, held.block.dim});
  }
}

// What reads rows that are written within those of a larger value finds them there.
void Step::serve_rows(const DeviceRows::Held& held, std::size_t g) {
  for (std::int32_t i : plan_->waves[wave_].reads[g].nodes)
    look_up_rows(i, held.block, data(input(i, 0)));
}

void Step::look_up_rows(std::int32_t read, const RowBlock& block, const std::byte* ids) {
  look_up(read, run_of_lookup(read, block, ids));
}

// Where its rows are to lie.
RowKernels::GatherRun Step::run_of_lookup(std::int32_t read, const RowBlock& block,
                                          const std::byte* ids) {
  const std::int32_t value = plan_->value({read, 0});
  const RowsWithin& rows = bound_->rows_of(value);
  const bool within = rows.within >= 0;
  if (within) space_.pointers[static_cast<std::size_t>(value)] = place_within(value);
  return {block, ids, const_cast<std::byte*>(data(value)), within ? rows.stride : block.dim};
}

// Only notes it: lookups go to the device together, see enqueue_lookups().
void Step::look_up(std::int32_t read, const RowKernels::GatherRun& run) {
  space_.made.lookups.push_back(read);
  space_.made.gathers.push_back(run);
}

// As it lies in memory.
DType Step::dtype_of_rows(std::int32_t read) const {
  const std::int32_t value = plan_->value({read, 0});
  const RowsWithin& rows = bound_->rows_of(value);
  return bound_->stored_type(rows.within < 0 ? value : rows.within).dtype;
}

void Step::enqueue_lookups(LookupsTogether& prepared, std::optional<DType> ids) {
  if (space_.made.lookups.empty()) return;
  if (prepared.members != space_.made.lookups) {
    std::vector<RowKernels::GatherOf> all;
    for (std::int32_t i : space_.made.lookups) {
      RowKernels::GatherOf one{variable_of(i).type, std::nullopt, dtype_of_rows(i)};
      if (!node(i).inputs.empty()) {
        const TensorType& type = bound_->type(input(i, 0));
        one.ids = TensorType{ids.value_or(type.dtype), type.shape};
      }
      all.push_back(std::move(one));
    }
    prepared.run = space_.device.row_kernels()->prepare_gathers(all);
    prepared.members = space_.made.lookups;
  }
  prepared.run(space_.made.gathers);
  space_.made.lookups.clear();
  space_.made.gathers.clear();
}

// Whether a value that was read may be the variable's own memory: nothing that uses it comes after
// the variable's first update, and it does not leave the device. Updates come at a wave's end, so
// computing in that wave may still use the value, and other variables' updates before it.
bool Step::stays_as_read(std::int32_t read) const {
  const std::int32_t value = bound_->root(plan_->value({read, 0}));
  const auto variable = node(read).attributes.get<std::int64_t>("variable");
  const auto is_value = [&](ValueRef in) { return bound_->root(plan_->value(in)) == value; };
  bool changed = false;
  for (const Wave& wave : plan_->waves) {
    const auto used_by = [&](std::int32_t i) {
      return std::ranges::any_of(node(i).inputs, is_value);
    };
    if (changed && std::ranges::any_of(wave.compute, used_by)) return false;
    if (std::ranges::any_of(wave.reductions, used_by)) return false;
    for (std::int32_t i : wave.updates)
      changed = changed || node(i).attributes.get<std::int64_t>("variable") == variable;
    if (changed && std::ranges::any_of(wave.updates, used_by)) return false;
  }
  return std::ranges::none_of(plan_->graph.outputs, is_value);
}

// The variable of an update that the device applies; nullptr: it is asked for.
DeviceRows::Held* Step::held_for(const BoundUpdate& update) {
  if (update.shared) return nullptr;
  const Node& n = node(update.node);
  DeviceRows::Held* const held = hold(static_cast<std::size_t>(variable_number(n)));
  if (held == nullptr) return nullptr;
  // The store says what is wrong with slots that were not declared.
  const UpdateRule& rule = n.attributes.get<UpdateRule>("rule");
  if (is_kept(rule) && rule != held->rule) return nullptr;
  if (n.attributes.get<bool>("sparse") && ids_type(update.node).shape.rank() == 0) return nullptr;
  return held;
}

bool Step::is_sparse(std::int32_t update) const {
  return node(update).attributes.get<bool>("sparse");
}

bool Step::is_value_read(std::int32_t update) const {
  const std::int32_t value = bound_->root(input(update, is_sparse(update) ? 1 : 0));
  return is_read(node(plan_->producer[static_cast<std::size_t>(value)]));
}

// `updates` are a wave's, in order, and the device has the variables of all. Those go together
// whose variable has no other update in the wave. One whose values are a variable as it was read
// goes alone, before them: the values may be that variable's memory, which they change.
void Step::enqueue_updates(std::span<BoundUpdate* const> updates) {
  std::vector<BoundUpdate*>& together = space_.made.together;
  together.clear();
  for (BoundUpdate* update : updates) {
    const auto of_same = [&](const BoundUpdate* other) {
      return stored_variable(other->node) == stored_variable(update->node);
    };
    if (!is_value_read(update->node) && std::ranges::count_if(updates, of_same) == 1)
      together.push_back(update);
    else
      enqueue_update(*update);
  }
  if (together.size() == 1)
    enqueue_update(*together[0]);
  else if (!together.empty())
    enqueue_together(together);
}

bool Step::made_here(const BoundUpdate& update) {
  return lender_ != nullptr && held_for(update) != nullptr;
}

Update Step::told_update(const BoundUpdate& update) {
  Update told{stored_variable(update.node), node(update.node).attributes.get<UpdateRule>("rule")};
  told.on_device = true;
  return told;
}

// Those of the list of the device's updates that no store has left out, in the order in which it
// was told of them.
void Step::after_push() {
  auto here = space_.made.updates.begin();
  for (const Update& told : space_.updates) {
    if (!told.on_device) continue;
    here = told.left_out ? space_.made.updates.erase(here) : here + 1;
  }
  make_updates_here();
}

void Step::make_updates_here() {
  if (space_.made.updates.empty()) return;
  for (BoundUpdate* update : space_.made.updates) send_rates({update, 1});
  enqueue_updates(space_.made.updates);
  space_.device.row_kernels()->finish_updates();
  space_.made.updates.clear();
}

RowKernels::UpdateRun Step::update_run(BoundUpdate& update) {
  DeviceRows::Held& held = *held_for(update);
  const bool cached = held.cache != nullptr;
  RowKernels::UpdateRun run;
  if (is_sparse(update.node)) run.ids = cached ? places_of(update, held) : ids_here(update);
  run.block = cached ? held.cache->block() : held.block;
  run.rates = reinterpret_cast<const RuleRates*>(bound_->rates.memory.get()) + update.rates_place;
  if (!is_sparse(update.node)) {
    run.values = data(input(update.node, 0));
    return run;
  }
  const RowKernels::UpdateRun rows = values_of(update, held.block.dim);
  run.values = rows.values;
  run.values_stride = rows.values_stride;
  return run;
}

// Where the values of an update by ids lie.
RowKernels::UpdateRun Step::values_of(const BoundUpdate& update, std::int64_t dim) {
  const RowsWithin& rows = update.rows;
  RowKernels::UpdateRun run;
  run.values = rows.within < 0
                   ? data(input(update.node, 1))
                   : data(rows.within) + static_cast<std::size_t>(rows.begin) *
                                             dtype_bytes(variable_of(update.node).type.dtype);
  run.values_stride = rows.within < 0 ? dim : rows.stride;
  return run;
}

// As the device is to prepare it, of a variable that may be cached.
RowKernels::UpdateOf Step::update_of(const BoundUpdate& update) {
  const DeviceRows::Held& held = *held_for(update);
  RowKernels::UpdateOf made{node(update.node).attributes.get<UpdateRule>("rule"), type_here(held),
                            std::nullopt};
  if (is_sparse(update.node)) made.ids = ids_type(update.node);
  if (made.ids && held.cache != nullptr) made.ids->dtype = DType::kInt32;
  return made;
}

// Rows of a variable as kernels see it: they were prepared for so many.
std::int64_t Step::rows_here(const BoundUpdate& update) {
  const TensorType type = type_here(*held_for(update));
  return type.shape.rank() > 0 ? type.shape[0] : 1;
}

// What it runs on comes first: that brings rows into a cache, which has a size only then.
void Step::enqueue_update(BoundUpdate& update) {
  const RowKernels::UpdateRun run = update_run(update);
  if (const std::int64_t rows = rows_here(update); !update.here || update.rows_here != rows) {
    const RowKernels::UpdateOf of = update_of(update);
    update.here =
        space_.device.row_kernels()->prepare_update(of.rule, of.table, of.ids ? &*of.ids : nullptr);
    update.rows_here = rows;
  }
  // Updates of one variable come in their order.
  for (const BoundUpdate& earlier : bound_->waves[wave_].updates) {
    if (&earlier == &update) break;
    if (stored_variable(earlier.node) == stored_variable(update.node)) {
      space_.device.row_kernels()->finish_updates();
      break;
    }
  }
  update.here(run);
}

void Step::enqueue_together(std::span<BoundUpdate* const> updates) {
  UpdatesTogether& prepared = bound_->waves[wave_].together;
  space_.made.runs.clear();
  for (BoundUpdate* update : updates) space_.made.runs.push_back(update_run(*update));
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
    prepared.run = space_.device.row_kernels()->prepare_updates(all);
  }
  prepared.run(space_.made.runs);
}

// Counts the updates, and brings their rates to the device, if they are not those that lie there.
void Step::send_rates(std::span<BoundUpdate> updates) {
  RatesOnDevice& rates = bound_->rates;
  if (rates.memory == nullptr) {
    std::size_t all = 0;
    for (const BoundWave& wave : bound_->waves) all += wave.updates.size();
    rates.memory = space_.device.allocate(all * sizeof(RuleRates));
    rates.sent.assign(all * sizeof(RuleRates), std::byte{0xff});  // NaNs: no rates
  }
  const auto rule_of = [&](const BoundUpdate& update) -> const UpdateRule& {
    return node(update.node).attributes.get<UpdateRule>("rule");
  };
  // A rate that is refused leaves every count as it was.
  for (const BoundUpdate& update : updates)
    if (!is_assignment(rule_of(update).kind))
      verify_learning_rate(rule_of(update), learning_rate(update.node));
  for (BoundUpdate& update : updates) {
    DeviceRows::Held& held = *held_for(update);
    const UpdateRule& rule = rule_of(update);
    RuleInputs inputs;
    if (!is_assignment(rule.kind)) {
      inputs.learning_rate = learning_rate(update.node);
      ++held.updates;
    }
    inputs.t = std::max<std::int64_t>(held.updates, 1);
    held.changed = true;
    const RuleRates made = fold_rates(rule, inputs);
    const std::size_t offset = update.rates_place * sizeof made;
    std::byte* const sent = rates.sent.data() + offset;
    if (std::memcmp(sent, &made, sizeof made) == 0) continue;
    std::memcpy(sent, &made, sizeof made);
    space_.device.copy(Device::Direction::kIn, rates.memory.get() + offset, sent, sizeof made);
  }
}

// The type of all ids of a sparse update, joined into one vector; a scalar if their dtypes differ.
TensorType Step::ids_type(std::int32_t update) const {
  const std::span<const std::int32_t> readers = id_readers(update);
  return readers.empty() ? bound_->type(input(update, 0)) : joined_type(readers);
}

// The same for the ids of these reads.
TensorType Step::joined_type(std::span<const std::int32_t> readers) const {
  const DType dtype = bound_->type(input(readers[0], 0)).dtype;
  std::int64_t count = 0;
  for (std::int32_t i : readers) {
    if (bound_->type(input(i, 0)).dtype != dtype) return {dtype, {}};
    count += bound_->type(input(i, 0)).shape.elements();
  }
  return {dtype, {count}};
}

const std::byte* Step::ids_here(BoundUpdate& update) {
  const std::span<const std::int32_t> readers = id_readers(update.node);
  if (readers.empty()) return data(input(update.node, 0));
  return join_ids(readers, update.joined_ids);
}

// One behind another, in memory that is allocated at the first call.
const std::byte* Step::join_ids(std::span<const std::int32_t> readers,
                                std::shared_ptr<std::byte>& joined) {
  if (readers.size() == 1) return data(input(readers[0], 0));
  const auto bytes_of = [](const TensorType& type) {
    return static_cast<std::size_t>(type.shape.elements()) * dtype_bytes(type.dtype);
  };
  if (joined == nullptr) joined = space_.device.allocate(bytes_of(joined_type(readers)));
  std::byte* to = joined.get();
  for (std::int32_t i : readers) {
    const std::size_t bytes = bytes_of(bound_->type(input(i, 0)));
    space_.device.copy(Device::Direction::kWithin, to, data(input(i, 0)), bytes);
    to += bytes;
  }
  return joined.get();
}

}  // namespace cairn
