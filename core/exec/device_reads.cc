#include "core/exec/device_reads.h"

#include <algorithm>
#include <utility>

#include "core/exec/wave_cutter.h"
#include "core/graph/op_def.h"

namespace cairn {

// A run that failed may have left lookups.
void DeviceReads::begin(RowLender* lender) {
  lender_ = lender;
  values_.space().made.lookups.clear();
  values_.space().made.gathers.clear();
  if (lender_ != nullptr && !std::exchange(values_.bound().announced, true))
    values_.space().rows->announce(*lender_, values_.plan().bound, values_.plan().variable_uses);
}

DeviceRows::Held* DeviceReads::hold(std::size_t variable) const {
  if (lender_ == nullptr) return nullptr;
  const Plan& plan = values_.plan();
  return values_.space().rows->hold(*lender_, plan.bound[variable], plan.variable_uses[variable]);
}

TensorType DeviceReads::type_here(const DeviceRows::Held& held) {
  if (held.cache == nullptr) return held.type;
  return {held.type.dtype, held.type.shape.with_dim(0, held.cache->block().rows)};
}

// ---- variables that lie here ----

bool DeviceReads::serve(const ReadAt& read) {
  DeviceRows::Held* const held = hold(static_cast<std::size_t>(read.group.variable));
  read.here.served = held != nullptr;
  if (!read.here.served) return false;
  const bool cached = held->cache != nullptr;
  if (std::exchange(read.here.cached, cached) != cached) read.here.gathers.clear();
  if (read.group.whole)
    serve_whole(*held, read);
  else if (cached)
    serve_cached(*held, read);
  else
    serve_rows(*held, read);
  return true;
}

// If nothing changes the variable while its value is in use, and it lies as the variable does, the
// value is the variable's own memory; otherwise it is a copy.
void DeviceReads::serve_whole(const DeviceRows::Held& held, const ReadAt& read) {
  std::vector<bool>& may_stay = read.here.in_place;
  const bool packed = held.block.row_stride == held.block.dim;
  if (may_stay.empty())
    for (std::int32_t i : read.group.nodes)
      may_stay.push_back(packed && dtype_of_rows(i) == held.type.dtype && stays_as_read(i));
  for (std::size_t k = 0; k < read.group.nodes.size(); ++k) {
    const std::int32_t value = values_.plan().value({read.group.nodes[k], 0});
    std::byte* const place = values_.own_place(value);
    const bool in_place = packed && may_stay[k];
    values_.lies_at(value, in_place ? held.block.base : place);
    if (!in_place) look_up(read.group.nodes[k], {held.block, nullptr, place, held.block.dim});
  }
}

void DeviceReads::serve_rows(const DeviceRows::Held& held, const ReadAt& read) {
  for (std::int32_t i : read.group.nodes)
    look_up(i, run_of_lookup(i, held.block, values_.data(values_.input(i, 0))));
}

// If a lookup's rows are written within a larger value, its readers find them there.
RowKernels::GatherRun DeviceReads::run_of_lookup(std::int32_t read, const RowBlock& block,
                                                 const std::byte* ids) {
  const std::int32_t value = values_.plan().value({read, 0});
  const RowsWithin& rows = values_.bound().rows_of(value);
  const bool within = rows.within >= 0;
  if (within) values_.lies_at(value, values_.place_within(value));
  return {block, ids, values_.writable(value), within ? rows.stride : block.dim};
}

void DeviceReads::look_up(std::int32_t read, const RowKernels::GatherRun& run) {
  values_.space().made.lookups.push_back(read);
  values_.space().made.gathers.push_back(run);
}

// As it lies in memory.
DType DeviceReads::dtype_of_rows(std::int32_t read) const {
  const std::int32_t value = values_.plan().value({read, 0});
  const RowsWithin& rows = values_.bound().rows_of(value);
  return values_.bound().stored_type(rows.within < 0 ? value : rows.within).dtype;
}

void DeviceReads::enqueue(LookupsTogether& prepared, std::optional<DType> ids) {
  std::vector<std::int32_t>& lookups = values_.space().made.lookups;
  if (lookups.empty()) return;
  if (prepared.members != lookups) {
    std::vector<RowKernels::GatherOf> all;
    for (std::int32_t i : lookups) {
      RowKernels::GatherOf one{values_.variable_of(i).type, std::nullopt, dtype_of_rows(i)};
      if (!values_.node(i).inputs.empty()) {
        const TensorType& type = values_.bound().type(values_.input(i, 0));
        one.ids = TensorType{ids.value_or(type.dtype), type.shape};
      }
      all.push_back(std::move(one));
    }
    prepared.run = values_.device().row_kernels()->prepare_gathers(all);
    prepared.members = lookups;
  }
  prepared.run(values_.space().made.gathers);
  lookups.clear();
  values_.space().made.gathers.clear();
}

// Whether a value that was read may be the variable's own memory: nothing that uses it comes after
// the variable's first update, and it does not leave the device. Updates come at a wave's end, so
// computing in that wave may still use the value, and other variables' updates before it.
bool DeviceReads::stays_as_read(std::int32_t read) const {
  const Plan& plan = values_.plan();
  const std::int32_t value = values_.bound().root(plan.value({read, 0}));
  const std::int32_t variable = variable_number(values_.node(read));
  const auto is_value = [&](ValueRef in) { return values_.bound().root(plan.value(in)) == value; };
  const auto used_by = [&](std::int32_t i) {
    return std::ranges::any_of(values_.node(i).inputs, is_value);
  };
  bool changed = false;
  for (const Wave& wave : plan.waves) {
    if (changed && std::ranges::any_of(wave.compute, used_by)) return false;
    if (std::ranges::any_of(wave.reductions, used_by)) return false;
    for (std::int32_t i : wave.updates)
      changed = changed || variable_number(values_.node(i)) == variable;
    if (changed && std::ranges::any_of(wave.updates, used_by)) return false;
  }
  return std::ranges::none_of(plan.graph.outputs, is_value);
}

// ---- rows that the store gave ----

bool DeviceReads::deals(const ReadGroup& group) const {
  return !group.whole &&
         values_.plan().graph.variables[static_cast<std::size_t>(group.variable)].type.dtype !=
             DType::kString;
}

// The distinct rows, and for each id which of them is its row, become a table and ids of lookups.
void DeviceReads::deal_out(const ReadAt& read) {
  const TensorType& type =
      values_.plan().graph.variables[static_cast<std::size_t>(read.group.variable)].type;
  Device& device = values_.device();
  ReadHere& here = read.here;
  const Tensor& rows = read.read.value;
  const std::span<const std::int32_t> places = read.ids.inverse();
  if (here.dealt == nullptr) {
    here.count = static_cast<std::int64_t>(places.size());
    here.most = std::min(here.count, type.shape[0]);
    here.places = device.allocate(places.size_bytes());
    here.dealt = device.allocate(static_cast<std::size_t>(here.most) * row_bytes_of(type));
  }
  device.copy(Device::Direction::kIn, here.places.get(),
              reinterpret_cast<const std::byte*>(places.data()), places.size_bytes());
  device.copy_in_kept(here.dealt.get(), rows.raw(), rows.bytes(), rows.owner());
  const std::int64_t dim = type.shape.row_elements();
  const RowBlock block{type.dtype, here.dealt.get(), rows.shape()[0], dim, dim};
  const std::byte* at = here.places.get();
  for (std::int32_t i : read.group.nodes) {
    look_up(i, run_of_lookup(i, block, at));
    const TensorType& ids = values_.bound().type(values_.input(i, 0));
    at += static_cast<std::size_t>(ids.shape.elements()) * sizeof(std::int32_t);
  }
}

// ---- cached tables ----
//
// Ids are exchanged for places in the cache, and the same kernels run as for tables that lie here
// whole. A read's batch of ids is found once, and an update by the same ids uses what was found,
// unless another batch came in between.

// The ids of all reads of a group make one batch, if they are of one dtype.
void DeviceReads::serve_cached(DeviceRows::Held& held, const ReadAt& read) {
  const ReadGroup& group = read.group;
  const TensorType all = joined_type(group.nodes);
  held.batch = nullptr;
  const std::byte* places = nullptr;
  if (all.shape.rank() > 0) {
    const std::vector<Tensor> columns = columns_of(group, values_.inputs().elements);
    if (!columns.empty()) places = held.cache->use(columns);
    if (places == nullptr)
      places = find_cached(held, group.variable, all, join_ids(group.nodes, read.here.joined_ids));
    held.batch = &read.here;
    held.places = places;
  }
  std::vector<RowKernels::Gathers>& gathers = read.here.gathers;
  gathers.resize(group.nodes.size());
  for (std::size_t k = 0; k < group.nodes.size(); ++k) {
    const std::int32_t i = group.nodes[k], ids = values_.input(i, 0);
    const TensorType& type = values_.bound().type(ids);
    const std::byte* at = places;
    if (places == nullptr) at = find_cached(held, group.variable, type, values_.data(ids));
    if (!gathers[k]) {
      const RowKernels::GatherOf one{type_here(held), TensorType{DType::kInt32, type.shape},
                                     dtype_of_rows(i)};
      gathers[k] = values_.device().row_kernels()->prepare_gathers({&one, 1});
    }
    const RowKernels::GatherRun run = run_of_lookup(i, held.cache->block(), at);
    gathers[k]({&run, 1});
    if (places != nullptr) places += type.shape.elements() * sizeof(std::int32_t);
  }
}

CachedRows::Access DeviceReads::access_to(std::int32_t variable) const {
  return values_.plan().variable_uses[static_cast<std::size_t>(variable)].changed
             ? CachedRows::Access::kChanges
             : CachedRows::Access::kReads;
}

const std::byte* DeviceReads::find_cached(DeviceRows::Held& held, std::int32_t variable,
                                          const TensorType& ids, const std::byte* at) const {
  return held.cache->find(ids, at, access_to(variable));
}

// The group's ids, if they are columns of elements; otherwise empty.
std::vector<Tensor> DeviceReads::columns_of(
    const ReadGroup& group, const std::vector<std::vector<Element>>& elements) const {
  const Plan& plan = values_.plan();
  std::vector<Tensor> columns;
  for (const std::int32_t read : group.nodes) {
    const std::int32_t value = values_.bound().root(values_.input(read, 0));
    const auto producer = static_cast<std::size_t>(plan.producer[static_cast<std::size_t>(value)]);
    const Node& n = plan.graph.nodes[producer];
    if (n.op->effect != Effect::kAdvance) return {};
    const auto iterator = static_cast<std::size_t>(n.attributes.get<std::int64_t>("iterator"));
    const auto element = static_cast<std::size_t>(plan.advance_number[producer]);
    columns.push_back(
        elements[iterator][element][static_cast<std::size_t>(value - plan.value_base[producer])]);
  }
  return columns;
}

// Whether a run finds rows of the variable for this group alone.
bool DeviceReads::has_only_batch(std::size_t wave, std::size_t group) const {
  const Plan& plan = values_.plan();
  const std::int32_t variable = plan.waves[wave].reads[group].variable;
  for (std::size_t w = 0; w < plan.waves.size(); ++w) {
    const std::vector<ReadGroup>& reads = plan.waves[w].reads;
    for (std::size_t g = 0; g < reads.size(); ++g)
      if (reads[g].variable == variable && (w != wave || g != group)) return false;
    for (const std::int32_t update : plan.waves[w].updates) {
      const UpdateIds& source = plan.update_ids[static_cast<std::size_t>(update)];
      if (variable_number(values_.node(update)) == variable &&
          (source.wave != static_cast<std::int32_t>(wave) ||
           source.group != static_cast<std::int32_t>(group)))
        return false;
    }
  }
  return true;
}

void DeviceReads::prepare_later() {
  if (!values_.inputs().later || lender_ == nullptr) return;
  const Plan& plan = values_.plan();
  std::vector<std::vector<std::vector<Element>>> later;  // by runs, from 1 on
  for (std::size_t w = 0; w < plan.waves.size(); ++w)
    for (std::size_t g = 0; g < plan.waves[w].reads.size(); ++g) {
      const ReadAt read = values_.read_at(w, g);
      if (!read.here.served || !read.here.cached || !has_only_batch(w, g)) continue;
      // The store may have taken it back since.
      const DeviceRows::Held* const held = hold(static_cast<std::size_t>(read.group.variable));
      if (held == nullptr || held->cache == nullptr) continue;
      CachedRows& cache = *held->cache;
      if (columns_of(read.group, values_.inputs().elements).empty()) continue;
      while (cache.room() > 0) {
        const auto runs = static_cast<std::size_t>(cache.prepared()) + 1;
        while (later.size() < runs)
          later.push_back(values_.inputs().later(static_cast<int>(later.size()) + 1));
        if (later[runs - 1].empty() ||
            !cache.prepare(columns_of(read.group, later[runs - 1]), access_to(read.group.variable)))
          break;
      }
    }
}

// ---- ids ----

TensorType DeviceReads::joined_type(std::span<const std::int32_t> readers) const {
  const auto type_of = [this](std::int32_t read) -> const TensorType& {
    return values_.bound().type(values_.input(read, 0));
  };
  const DType dtype = type_of(readers[0]).dtype;
  std::int64_t count = 0;
  for (std::int32_t i : readers) {
    if (type_of(i).dtype != dtype) return {dtype, {}};
    count += type_of(i).shape.elements();
  }
  return {dtype, {count}};
}

const std::byte* DeviceReads::join_ids(std::span<const std::int32_t> readers,
                                       std::shared_ptr<std::byte>& joined) const {
  if (readers.size() == 1) return values_.data(values_.input(readers[0], 0));
  if (joined == nullptr) joined = values_.device().allocate(bytes_of(joined_type(readers)));
  std::byte* to = joined.get();
  for (std::int32_t i : readers) {
    const std::int32_t ids = values_.input(i, 0);
    const std::size_t bytes = bytes_of(values_.bound().type(ids));
    values_.device().copy(Device::Direction::kWithin, to, values_.data(ids), bytes);
    to += bytes;
  }
  return joined.get();
}

}  // namespace cairn
