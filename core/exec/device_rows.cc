#include "core/exec/device_rows.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/graph/rules/rule_def.h"

namespace cairn {
namespace {

// The alignment of an update's rates, ids and values, which are sent into one piece of memory.
constexpr std::size_t kAlign = 64;
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
// Where tables are cached because they do not fit: the share of the device that is left to the
// values of steps and to kernels.
constexpr std::size_t kLeftShare = 8;

std::size_t bytes_of(const RowMemory& home) { return home.layout().bytes(home.held()); }

bool is_row_wise(const RowLayout& layout) { return !layout.planes || layout.slots == 0; }

// Why a cache cannot have the variable's rows; empty: it can.
std::string why_not_cached(const RowMemory& home) {
  const RowLayout& layout = home.layout();
  if (home.spec().dtype != DType::kFloat32)
    return str("its rows are ", dtype_name(home.spec().dtype), ", and those of float32 can be");
  if (!is_row_wise(layout))
    return str("it has less than ", RowLayout::kRowsBeside,
               " rows, so that its slots do not lie beside them");
  if (layout.stride_bytes() % CachedRows::kAlignment != 0)
    return str("a row with its slots takes ", layout.stride_bytes(), " bytes, no multiple of ",
               CachedRows::kAlignment, "; make rows a multiple of 4 wide");
  return "";
}

// The most bytes that each may take so that all of them take `together` at most: small ones then
// lie whole.
std::size_t level_of(std::vector<std::size_t> sizes, std::size_t together) {
  std::ranges::sort(sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t each = together / (sizes.size() - i);
    if (sizes[i] > each) return each;
    together -= sizes[i];
  }
  return kNoLimit;
}

}  // namespace

DeviceRows::~DeviceRows() {
  while (!entries_.empty()) {
    const auto& [key, entry] = *entries_.begin();
    entry.lender->take_back(key.second);
  }
}

void DeviceRows::announce(RowLender& lender, std::span<const VariableId> ids,
                          std::span<const Plan::VariableUse> uses) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    bool& is_table = tables_[{&lender, ids[i]}];
    is_table = is_table || uses[i].by_ids;
  }
}

DeviceRows::Held* DeviceRows::hold(RowLender& lender, VariableId id, const Plan::VariableUse& use) {
  const Key key{&lender, id};
  if (const auto found = entries_.find(key); found != entries_.end()) {
    Held& held = found->second.held;
    return held.cache == nullptr || use.by_ids ? &held : nullptr;
  }
  Entry entry{&lender, {}};
  try {
    if (!borrow(entry, id, use.by_ids)) return nullptr;
  } catch (const Error&) {
    lender.take_back(id);  // it would look for a holder that knows of nothing
    throw;
  }
  return &entries_.emplace(key, std::move(entry)).first->second.held;
}

void DeviceRows::warn_once(const Key& key, const std::string& of_table) {
  if (warned_.insert(key).second)
    log_warning("the table \"", key.first->at_home(key.second).spec().name, "\" ", of_table);
}

bool DeviceRows::borrow(Entry& entry, VariableId id, bool by_ids) {
  const Key key{entry.lender, id};
  if (too_large_.contains(key)) return false;
  RowMemory* const home = entry.lender->lend(id, *this);
  if (home == nullptr) return false;
  Held& held = entry.held;
  held.block = home->block({0, home->held()});
  held.type = {home->spec().dtype, home->spec().shape};
  held.rule = home->rule();
  held.updates = home->updates();
  const std::size_t room = tables_[key] ? bytes_for_each_table(*entry.lender) : kNoLimit;
  bool borrowed = false;
  if (bytes_of(*home) > room) {
    const std::string why_not = why_not_cached(*home);
    if (!why_not.empty()) {
      warn_once(key, str("cannot be cached on ", device_.name(), ": ", why_not));
    } else if (by_ids) {
      borrowed = borrow_cached(held, *home, room);
    } else {
      warn_once(key,
                "is cached, and a step reads or changes it whole: that is done in the host's "
                "memory, and the cache begins anew after each such step");
      entry.lender->take_back(id);
      return false;
    }
  }
  if (!borrowed) borrowed = borrow_whole(held, *home);
  if (!borrowed) {
    entry.lender->take_back(id);
    too_large_.insert(key);
  }
  return borrowed;
}

bool DeviceRows::borrow_whole(Held& held, const RowMemory& home) {
  const std::size_t bytes = bytes_of(home);
  try {
    held.memory = device_.allocate_rows(bytes);
  } catch (const ResourceExhaustedError& error) {
    log_warning("the variable \"", home.spec().name,
                "\" stays in the host's memory: ", error.what());
    return false;
  }
  device_.copy(Device::Direction::kIn, held.memory.get(), held.block.base, bytes);
  held.block.base = held.memory.get();
  return true;
}

// One number of rows is seldom that of the update before, so a kernel is prepared for each.
bool DeviceRows::apply(const RowLender& lender, VariableId id, const Update& update) {
  const auto found = entries_.find({&lender, id});
  if (found == entries_.end()) return false;
  Held& held = found->second.held;
  const bool sparse = update.ids.defined();
  const std::size_t ids_at = (sizeof(RuleRates) + kAlign - 1) / kAlign * kAlign;
  const std::size_t values_at =
      ids_at + (sparse ? (update.ids.bytes() + kAlign - 1) / kAlign * kAlign : 0);
  if (held.cache != nullptr) return false;
  const TensorType ids = sparse ? update.ids.type() : TensorType{};
  const DeviceStepScope step(device_, -1);
  RowKernels& kernels = *device_.row_kernels();
  std::shared_ptr<std::byte> sent;
  RowKernels::Update run;
  try {
    sent = device_.allocate(values_at + update.value.bytes());
    run = kernels.prepare_update(update.rule, held.type, sparse ? &ids : nullptr);
  } catch (const ResourceExhaustedError&) {
    return false;
  } catch (const UnimplementedError&) {
    return false;
  }
  RuleInputs inputs;
  if (!is_assignment(update.rule.kind)) {
    inputs.learning_rate = update.learning_rate;
    ++held.updates;
  }
  inputs.t = std::max<std::int64_t>(held.updates, 1);
  const RuleRates rates = fold_rates(update.rule, inputs);
  const auto send = [&](std::size_t at, const void* from, std::size_t bytes) {
    device_.copy(Device::Direction::kIn, sent.get() + at, static_cast<const std::byte*>(from),
                 bytes);
  };
  send(0, &rates, sizeof rates);
  if (sparse) send(ids_at, update.ids.raw(), update.ids.bytes());
  send(values_at, update.value.raw(), update.value.bytes());
  RowKernels::UpdateRun made{held.block, reinterpret_cast<const RuleRates*>(sent.get())};
  made.values = sent.get() + values_at;
  if (sparse) {
    made.ids = sent.get() + ids_at;
    made.values_stride = held.block.dim;
  }
  run(made);
  kernels.finish_updates();
  held.changed = true;
  return true;
}

// A limit that was given is meant: a cache that cannot be had within it is an error.
bool DeviceRows::borrow_cached(Held& held, const RowMemory& home, std::size_t bytes) {
  try {
    held.cache =
        device_.row_kernels()->cache_rows(held.block, {home.spec().name, bytes, limit_.lookahead});
  } catch (const ResourceExhaustedError& error) {
    if (limit_.given()) throw;
    log_warning("the table \"", home.spec().name, "\" is not cached on ", device_.name(), ": ",
                error.what());
  }
  return held.cache != nullptr;
}

// Tables that take no more than this lie on the device whole.
std::size_t DeviceRows::bytes_for_each_table(const RowLender& lender) const {
  std::vector<std::size_t> tables;
  std::size_t all_tables = 0, others = 0, held = 0;
  for (const auto& [key, is_table] : tables_) {
    if (key.first != &lender) continue;
    const RowMemory& home = lender.at_home(key.second);
    const std::size_t bytes = bytes_of(home);
    if (is_table && why_not_cached(home).empty()) {
      tables.push_back(bytes);
      all_tables += bytes;
    } else {
      others += bytes;
    }
    const auto found = entries_.find(key);
    if (found != entries_.end())
      held += found->second.held.cache ? found->second.held.cache->bytes() : bytes;
  }
  const std::optional<Device::Room> room = device_.room();
  if (limit_.given()) return level_of(tables, limit_.bytes_of(room ? room->total : 0));
  if (!room || all_tables + others <= room->free + held) return kNoLimit;
  const std::size_t left = room->free + held, taken = others + room->total / kLeftShare;
  return level_of(tables, left > taken ? left - taken : 0);
}

void DeviceRows::bring_home(const RowLender& lender, VariableId id, RowMemory& home) {
  const auto found = entries_.find({&lender, id});
  if (found == entries_.end() || !found->second.held.changed) return;
  Held& held = found->second.held;
  if (held.cache)
    held.cache->flush();
  else
    device_.copy(Device::Direction::kOut, home.block({0, home.held()}).base, held.memory.get(),
                 bytes_of(home));
  home.set_updates(held.updates);
  held.changed = false;
}

void DeviceRows::forget(const RowLender& lender, VariableId id) { entries_.erase({&lender, id}); }

}  // namespace cairn
