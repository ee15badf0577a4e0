#include "core/exec/device_rows.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/kernels/rule_rates.h"

namespace cairn {
namespace {

// Of what is sent beside one another.
constexpr std::size_t kAlign = 64;

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

// One number of rows is seldom that of the update before, so a kernel is prepared for each.
bool DeviceRows::apply(const RowLender& lender, VariableId id, const Update& update) {
  const auto found = entries_.find({&lender, id});
  if (found == entries_.end()) return false;
  Held& held = found->second.held;
  const bool sparse = update.ids.defined();
  const std::size_t ids_at = (sizeof(RuleRates) + kAlign - 1) / kAlign * kAlign;
  const std::size_t values_at =
      ids_at + (sparse ? (update.ids.bytes() + kAlign - 1) / kAlign * kAlign : 0);
  const TensorType ids = sparse ? update.ids.type() : TensorType{};
  const DeviceStep step(device_, -1);
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
