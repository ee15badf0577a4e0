#include "core/exec/device_rows.h"

#include "core/base/error.h"
#include "core/base/log.h"

namespace cairn {
namespace {

std::size_t bytes_of(const RowMemory& home) { return home.layout().bytes(home.held()); }

}  // namespace

DeviceRows::~DeviceRows() {
  while (!entries_.empty()) {
    const auto& [key, entry] = *entries_.begin();
    entry.lender->take_back(key.second);
  }
}

DeviceRows::Held* DeviceRows::hold(RowLender& lender, VariableId id) {
  const Key key{&lender, id};
  if (const auto found = entries_.find(key); found != entries_.end()) return &found->second.held;
  if (too_large_.contains(key)) return nullptr;
  Entry entry{&lender, {}};
  if (!borrow(entry, id)) return nullptr;
  return &entries_.emplace(key, std::move(entry)).first->second.held;
}

bool DeviceRows::borrow(Entry& entry, VariableId id) {
  RowMemory* const home = entry.lender->lend(id, *this);
  if (home == nullptr) return false;
  const std::size_t bytes = bytes_of(*home);
  try {
    entry.held.memory = device_.allocate_rows(bytes);
  } catch (const ResourceExhaustedError& error) {
    entry.lender->take_back(id);
    too_large_.insert({entry.lender, id});
    log_warning("the variable \"", home->spec().name,
                "\" stays in the host's memory: ", error.what());
    return false;
  }
  entry.held.block = home->block({0, home->held()});
  device_.copy(Device::Direction::kIn, entry.held.memory.get(), entry.held.block.base, bytes);
  entry.held.block.base = entry.held.memory.get();
  entry.held.type = {home->spec().dtype, home->spec().shape};
  entry.held.rule = home->rule();
  entry.held.updates = home->updates();
  return true;
}

void DeviceRows::bring_home(const RowLender& lender, VariableId id, RowMemory& home) {
  const auto found = entries_.find({&lender, id});
  if (found == entries_.end() || !found->second.held.changed) return;
  Held& held = found->second.held;
  device_.copy(Device::Direction::kOut, home.block({0, home.held()}).base, held.memory.get(),
               bytes_of(home));
  home.set_updates(held.updates);
  held.changed = false;
}

void DeviceRows::forget(const RowLender& lender, VariableId id) { entries_.erase({&lender, id}); }

}  // namespace cairn
