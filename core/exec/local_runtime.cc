#include "core/exec/local_runtime.h"

#include "core/graph/lowering.h"
#include "core/graph/recording.h"

namespace cairn {

LocalRuntime::LocalRuntime(std::uint64_t seed, Device& device, int copies) : workspace_(device) {
  for (int i = 0; i < copies; ++i) stores_.push_back(std::make_unique<LocalStore>(seed));
}

Variable LocalRuntime::create_variable(VariableSpec spec) {
  std::lock_guard hold(mutex_);
  std::string name = spec.name;
  for (int i = 1; by_name_.count(spec.name) > 0; ++i) spec.name = str(name, "_", i);
  auto shared = std::make_shared<const VariableSpec>(std::move(spec));
  auto saved = source_ ? source_->read(*shared)
                       : std::nullopt;  // first: a variable that cannot be read is not made
  VariableId id = 0;
  for (const auto& store : stores_) id = store->create(shared);
  if (saved) put(id, *saved, LocalStore::Take::kRowsAndSlots);
  by_name_.emplace(shared->name, id);
  return variables_.emplace_back(std::move(shared), this);
}

void LocalRuntime::put(VariableId id, const SavedContents& saved, LocalStore::Take what) {
  for (const auto& store : stores_) store->put(id, saved, what);
  if (what == LocalStore::Take::kRowsAndSlots) restored(id);
}

// Slots of a checkpoint are taken once the rule is known that gives them a meaning.
void LocalRuntime::add_slots(const Variable& variable, const UpdateRule& rule) {
  std::lock_guard hold(mutex_);
  const VariableId id = find(variable.name());
  const bool new_slots = is_kept(rule) && store().rule(id) != rule;
  for (const auto& store : stores_) store->add_slots(id, rule);
  if (!new_slots || !source_) return;
  if (auto saved = source_->read(store().spec(id))) put(id, *saved, LocalStore::Take::kSlots);
}

// Everything is read before anything is changed, so that a damaged checkpoint leaves all as it was.
void LocalRuntime::restore(std::shared_ptr<VariableSource> source, std::uint64_t seed) {
  std::lock_guard hold(mutex_);
  std::vector<std::optional<SavedContents>> saved;
  for (const Variable& variable : variables_) saved.push_back(source->read(variable.spec()));
  for (const auto& store : stores_) store->set_seed(seed);
  for (VariableId id = 0; id < saved.size(); ++id) {
    for (const auto& store : stores_) store->reset(id);
    if (saved[id]) put(id, *saved[id], LocalStore::Take::kRowsAndSlots);
  }
  source_ = std::move(source);
}

std::vector<Tensor> LocalRuntime::run_now(const ConcreteFunction& function) {
  return run_on(0, function);
}

// The lock is held for the whole run, so that eager reads and updates of several threads do not
// mix.
std::vector<Tensor> LocalRuntime::run_on(int copy, const ConcreteFunction& function) {
  auto plan = make_plan(function.graph, bind(function));
  std::lock_guard hold(mutex_);
  return run(plan, workspace_, store(copy), {}, {}, {});
}

// Compared by the specification's address: another strategy may have a variable of the same name.
std::vector<VariableId> LocalRuntime::bind(const ConcreteFunction& function) const {
  std::lock_guard hold(mutex_);
  std::vector<VariableId> ids;
  for (const auto& spec : function.variables) {
    auto found = by_name_.find(spec->name);
    if (found == by_name_.end() || variables_[found->second].shared_spec() != spec)
      throw FailedPreconditionError(
          str("Mixing different tf.distribute.Strategy objects: the variable \"", spec->name,
              "\" was made by another strategy; open its scope instead"));
    ids.push_back(found->second);
  }
  return ids;
}

VariableId LocalRuntime::find(const std::string& name) const {
  auto found = by_name_.find(name);
  if (found == by_name_.end())
    throw InvalidArgumentError(str("this strategy has no variable \"", name, "\""));
  return found->second;
}

Variable LocalRuntime::variable(const std::string& name) const {
  std::lock_guard hold(mutex_);
  return variables_[find(name)];
}

// Made at its first use, which may be before main: a layer may be a global object.
LocalRuntime& LocalRuntime::of_this_process() {
  static LocalRuntime runtime;
  return runtime;
}

VariableCreator& default_variable_creator() { return LocalRuntime::of_this_process(); }

Tensor Array::eval() const {
  if (!defined()) throw FailedPreconditionError("eval: the Array has no value");
  if (node_->value.defined()) return node_->value;
  if (const Tensor* constant = constant_value(*this)) return *constant;
  Lowering request;
  request.outputs = {{"", *this}};
  auto plan = make_plan(lower(request).graph, {});
  Workspace workspace;
  return run_without_variables(plan, workspace, {}, {})[0];
}

}  // namespace cairn
