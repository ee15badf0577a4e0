#include "owner.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <vector>

#include "forks.h"

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

thread_local int calls = 0;  // of the module, one within the other
// The strategies that they use, and how many there are, which is asked for at each call.
thread_local std::vector<std::shared_ptr<OpenStrategy>> used;
thread_local std::size_t used_count = 0;

}  // namespace

CallOfModule::CallOfModule() : before_(used_count) { ++calls; }
CallOfModule::~CallOfModule() {
  --calls;
  if (used_count == before_) return;
  // A strategy that ends lets other Python code run: first of all this is as it was before, and an
  // error that the call has raised is put aside.
  const auto from = used.begin() + static_cast<std::ptrdiff_t>(before_);
  std::vector<std::shared_ptr<OpenStrategy>> ending(std::make_move_iterator(from),
                                                    std::make_move_iterator(used.end()));
  used.resize(before_);
  used_count = before_;
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  ending.clear();
  PyErr_Restore(kind, value, trace);
}

void require_open_strategies() {
  for (const std::shared_ptr<OpenStrategy>& each : used)
    if (each->closed)
      throw FailedPreconditionError("the strategy was closed while this call ran: it is given up");
}

// Without the GIL, since a strategy that ends waits for its threads, and these may run Python.
OpenStrategy::~OpenStrategy() {
  if (in_own_process() && has_gil()) {
    const WithoutGil released;
    strategy.reset();
  }
  end_here(strategy);
  if (in_own_process()) count_living(-1);
}

Owner::Owner(std::unique_ptr<Strategy> strategy, nb::object beside)
    : open_(std::make_shared<OpenStrategy>(std::move(strategy))) {
  count_living(1);
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
  const std::lock_guard hold(mutex_);
  if (open_ == nullptr)
    throw FailedPreconditionError(
        "the strategy has been closed: what it made can be used only while it is open");
  if (calls > 0 && std::ranges::find(used, open_) == used.end()) {
    used.push_back(open_);
    ++used_count;
  }
  return *open_->strategy;
}

bool Owner::closed() const {
  const std::lock_guard hold(mutex_);
  return open_ == nullptr;
}

void Owner::close() {
  std::shared_ptr<OpenStrategy> ending;
  {
    const std::lock_guard hold(mutex_);
    ending = std::move(open_);
  }
  if (ending == nullptr) return;
  ending->closed = true;
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
