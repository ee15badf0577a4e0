// DeviceRows: the variables that lie in the memory of the device on which a workspace computes.
//
// A variable is borrowed from its store (core/rows/lending.h) at its first use, with its slots and
// in the layout that it has there, and stays until the store wants it back. One for which the
// device has no memory stays in its store.
//   Thread  the workspace's.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

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

  struct Held {
    RowBlock block;  // in the device's memory
    std::shared_ptr<std::byte> memory;
    TensorType type;
    UpdateRule rule;           // the one that has slots; an assignment if none
    std::int64_t updates = 0;  // by optimizers so far
    bool changed = false;      // since it was borrowed or brought home last
  };
  // nullptr: it stays in its store. Valid until the store takes the variable back, which any call
  // of the store's may do.
  Held* hold(RowLender& lender, VariableId id);

  bool apply(const RowLender& lender, VariableId id, const Update& update) override;
  void bring_home(const RowLender& lender, VariableId id, RowMemory& home) override;
  void forget(const RowLender& lender, VariableId id) override;

 private:
  using Key = std::pair<const RowLender*, VariableId>;
  struct Entry {
    RowLender* lender = nullptr;
    Held held;
  };
  bool borrow(Entry& entry, VariableId id);

  Device& device_;
  std::map<Key, Entry> entries_;
  // Variables for which there was no memory: they are not tried again at every step.
  std::set<Key> too_large_;
};

}  // namespace cairn
