#include <map>

#include "coordinator/local_checkpoint.h"
#include "coordinator/strategy.h"
#include "core/base/offload.h"
#include "core/exec/local_runtime.h"
#include "data/dataset_iterator.h"

namespace cairn {
namespace {

class LocalIterator final : public IteratorSource {
 public:
  LocalIterator(const Dataset& dataset, Offload& offload)
      : iterator_(open(dataset, {}, {.offload = &offload})) {}
  const ElementSpec& element_spec() const override { return iterator_->element_spec(); }
  // The cursor moves: an iterator is shared by the steps that it is passed to.
  Element next() const {
    auto element = iterator_->next();
    if (!element)
      throw OutOfRangeError(str("the data ended after ", iterator_->ordinal(), " elements"));
    return std::move(*element);
  }

 private:
  std::unique_ptr<DatasetIterator> iterator_;
};

}  // namespace

struct OneDeviceStrategy::State {
  explicit State(std::uint64_t seed) : runtime(seed) {}
  LocalRuntime runtime;
  Workspace workspace;
  std::unique_ptr<Offload> offload = make_thread_offload(1);
  std::map<const ConcreteFunction*,
           std::pair<std::shared_ptr<const ConcreteFunction>, std::shared_ptr<const Plan>>>
      plans;
  std::int64_t step = 0;
};

OneDeviceStrategy::OneDeviceStrategy(std::uint64_t seed) : state_(std::make_unique<State>(seed)) {}
OneDeviceStrategy::~OneDeviceStrategy() = default;
Variable OneDeviceStrategy::create_variable(VariableSpec spec) {
  return state_->runtime.create_variable(std::move(spec));
}
void OneDeviceStrategy::add_slots(const Variable& variable, const UpdateRule& rule) {
  state_->runtime.add_slots(variable, rule);
}
LocalStore& OneDeviceStrategy::store() { return state_->runtime.store(); }

std::string OneDeviceStrategy::save(const CheckpointPolicy& policy, const std::string& metadata) {
  return save_local(state_->runtime, LocalPlace::of_this_machine(), policy, metadata, state_->step);
}

RestoreStatus OneDeviceStrategy::restore(const std::string& checkpoint, const RestoreOptions&) {
  LocalRestore restored = restore_local(state_->runtime, LocalPlace::of_this_machine(), checkpoint);
  state_->step = restored.global_step;
  return restored.status;
}

std::shared_ptr<const IteratorSource> OneDeviceStrategy::iterate(const Dataset& dataset) const {
  return std::make_shared<LocalIterator>(dataset, *state_->offload);
}

std::shared_ptr<const IteratorSource> OneDeviceStrategy::iterate(
    const DatasetFunction& dataset_fn) const {
  Dataset dataset = dataset_fn({});
  if (!dataset.defined())
    throw InvalidArgumentError("iterate: the dataset function returned no dataset");
  return iterate(dataset);
}

std::vector<Tensor> OneDeviceStrategy::run_step(Function& function,
                                                const std::vector<Argument>& arguments) {
  auto concrete = function.concrete(arguments, *this);
  auto& [kept, plan] = state_->plans[concrete.get()];
  if (!plan) {
    kept = concrete;
    plan = make_plan(concrete->graph, state_->runtime.bind(*concrete));
  }
  std::vector<Tensor> tensors;
  std::vector<std::vector<Element>> elements;
  auto taken = concrete->graph.elements_taken();
  for (const Argument& argument : arguments) {
    if (auto* tensor = std::get_if<Tensor>(&argument)) {
      tensors.push_back(*tensor);
      continue;
    }
    auto local = std::dynamic_pointer_cast<const LocalIterator>(
        std::get<std::shared_ptr<const IteratorSource>>(argument));
    if (!local)
      throw InvalidArgumentError(
          "a step of OneDeviceStrategy takes iterators made by its iterate()");
    auto& list = elements.emplace_back();
    for (std::int64_t i = 0; i < taken[elements.size() - 1]; ++i) list.push_back(local->next());
  }
  StepContext step;
  step.global_step = state_->step++;
  return cairn::run(plan, state_->workspace, state_->runtime.store(), step, std::move(tensors),
                    std::move(elements));
}

}  // namespace cairn
