#include "owner.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace cairn::python {
namespace {

// In the order in which they were made. Never destroyed.
struct Registry {
  std::mutex mutex;
  std::vector<Owner*> owners;
};
Registry& registry() {
  static Registry& only = *new Registry;
  return only;
}

// The owners by their strategies. Used with the GIL, which guards it.
std::vector<std::pair<const VariableCreator*, std::weak_ptr<Owner>>>& known() {
  static auto& all = *new std::vector<std::pair<const VariableCreator*, std::weak_ptr<Owner>>>;
  return all;
}

}  // namespace

Owner::Owner(std::unique_ptr<Strategy> strategy, nb::object beside)
    : strategy_(std::move(strategy)) {
  if (beside.is_valid()) beside_ = share(std::move(beside));
  const std::lock_guard hold(registry().mutex);
  registry().owners.push_back(this);
}

Owner::~Owner() {
  close();
  const std::lock_guard hold(registry().mutex);
  std::erase(registry().owners, this);
}

Strategy& Owner::strategy() const {
  require_own_process();
  if (closed())
    throw FailedPreconditionError(
        "the strategy has been closed: what it made can be used only while it is open");
  return *strategy_;
}

// Without the GIL, since a strategy that ends waits for its threads, and these may run Python.
void Owner::close() {
  if (closed()) return;
  std::unique_ptr<Strategy> ending = std::move(strategy_);
  if (has_gil()) {
    const WithoutGil released;
    ending.reset();
  }
  ending.reset();
  tables_.reset();
  beside_.reset();
  // Servers that this strategy alone holds end now, and not at the next call.
  if (has_gil()) drop_references();
}

void remember(const SharedOwner& owner) {
  std::erase_if(known(), [](const auto& each) { return each.second.expired(); });
  known().emplace_back(&owner->strategy(), owner);
}

SharedOwner owner_of(const VariableCreator& creator) {
  for (const auto& [each, owner] : known())
    if (each == &creator)
      if (SharedOwner found = owner.lock(); found && !found->closed()) return found;
  return nullptr;
}

void close_all() {
  for (;;) {
    Owner* last = nullptr;
    {
      const std::lock_guard hold(registry().mutex);
      for (Owner* each : registry().owners)
        if (!each->closed()) last = each;
    }
    if (last == nullptr) return;
    last->close();
  }
}

const Variable& OwnedVariable::get() const {
  if (owner != nullptr) owner->strategy();
  return variable;
}

OwnedVariable owned(Variable variable) {
  return {std::move(variable), owner_of(current_variable_creator())};
}

}  // namespace cairn::python
