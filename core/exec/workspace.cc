#include "core/exec/workspace.h"

#include <algorithm>

namespace cairn {

Workspace::Workspace() : Workspace(cpu_device()) {}
Workspace::Workspace(Device& device) : state_(std::make_unique<State>(device)) {}
Workspace::~Workspace() = default;

void Workspace::limit_tables(const DeviceCache& limit) {
  if (state_->rows != nullptr) state_->rows->limit_tables(limit);
}

// The plans bound last are kept, the latest at the end of the list. Batches of a few sizes in turn
// therefore each find their own.
BoundPlan& Workspace::State::bind(const std::shared_ptr<const Plan>& plan,
                                  const RunInputs& inputs) {
  signature.clear();
  check_inputs(*plan, inputs, signature);
  auto found = std::find_if(bound.begin(), bound.end(), [&](const auto& known) {
    return &known->plan() == plan.get() && known->signature() == signature;
  });
  if (found == bound.end()) {
    auto made = std::make_unique<BoundPlan>(plan, signature, inputs, device);
    if (bound.size() >= kBoundPlansMax) bound.erase(bound.begin());
    bound.push_back(std::move(made));
  } else {
    std::rotate(found, found + 1, bound.end());
  }
  return *bound.back();
}

const std::shared_ptr<std::byte>& Workspace::State::arena(std::size_t bytes) {
  if (memory == nullptr || memory_bytes < bytes) {
    // A quarter more than is needed, so that slightly larger batches fit. The old memory goes
    // first, or both would be held at once.
    std::size_t rounded = (bytes + bytes / 4 + 64 + 63) / 64 * 64;
    memory = nullptr;
    try {
      memory = device.allocate(rounded);
    } catch (const ResourceExhaustedError& error) {
      throw ResourceExhaustedError(str("no memory for a step's values, ", rounded,
                                       " bytes: run smaller batches (", error.what(), ")"));
    }
    memory_bytes = rounded;
  }
  return memory;
}

}  // namespace cairn
