// DeviceRows: the variables that lie in the memory of the device on which a workspace computes.
//
// A variable is borrowed from its store (core/rows/lending.h) at its first use, with its slots and
// in the layout that it has there, and stays until the store wants it back. One for which the
// device has no memory stays in its store.
//   Tables   A variable of which steps touch rows by ids alone may be cached: it stays in the
//            host's memory, and the rows in use lie on the device (CachedRows). So are the largest
//            tables, where all of them together do not fit into what they may take.
//   Thread   the workspace's.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "core/base/device_cache.h"
#include "core/exec/plan.h"
#include "core/kernels/device.h"
#include "core/rows/lending.h"

namespace cairn {

class DeviceRows final : public RowHolder {
 public:
  explicit DeviceRows(Device& device) : device_(device) {}
  // Brings home what changed here.
  ~DeviceRows() override;
  DeviceRows(const DeviceRows&) = delete;
  DeviceRows& operator=(const DeviceRows&) = delete;

  // The limit for tables that are borrowed from now on.
  void limit_tables(const DeviceCache& limit) { limit_ = limit; }
  // Steps will use these variables, in this way. What all tables that were announced take together
  // decides which of them are cached.
  void announce(RowLender& lender, std::span<const VariableId> ids,
                std::span<const Plan::VariableUse> uses);

  struct Held {
    RowBlock block;  // in the device's memory; of a cached variable as it lies at home
    std::shared_ptr<std::byte> memory;
    std::unique_ptr<CachedRows> cache;  // nullptr: the variable lies here whole
    const void* batch = nullptr;        // the read whose rows the cache has found last
    const std::byte* places = nullptr;  // of that batch
    TensorType type;
    UpdateRule rule;           // the one that has slots; an assignment if none
    std::int64_t updates = 0;  // by optimizers so far
    bool changed = false;      // since it was borrowed or brought home last
  };
  // nullptr: it stays in its store, or is cached and not used by ids alone. Valid until the store
  // takes the variable back, which any call of the store's may do.
  Held* hold(RowLender& lender, VariableId id, const Plan::VariableUse& use);

  bool apply(const RowLender& lender, VariableId id, const Update& update) override;
  void bring_home(const RowLender& lender, VariableId id, RowMemory& home) override;
  void forget(const RowLender& lender, VariableId id) override;

 private:
  using Key = std::pair<const RowLender*, VariableId>;
  struct Entry {
    RowLender* lender = nullptr;
    Held held;
  };
  bool borrow(Entry& entry, VariableId id, bool by_ids);
  bool borrow_whole(Held& held, const RowMemory& home);
  bool borrow_cached(Held& held, const RowMemory& home, std::size_t bytes);
  std::size_t bytes_for_each_table(const RowLender& lender) const;
  void warn_once(const Key& key, const std::string& of_table);

  Device& device_;
  DeviceCache limit_;
  std::map<Key, Entry> entries_;
  std::map<Key, bool> tables_;  // of what was announced: whether some steps use it by ids alone
  // Variables for which there was no memory: they are not tried again at every step.
  std::set<Key> too_large_;
  std::set<Key> warned_;
};

}  // namespace cairn
