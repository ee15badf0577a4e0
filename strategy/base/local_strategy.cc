#include "strategy/base/local_strategy.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/offload.h"
#include "core/exec/local_runtime.h"
#include "core/kernels/device.h"
#include "strategy/base/data_positions.h"
#include "strategy/base/local_checkpoint.h"

namespace cairn {
namespace {

// Prefetching runs on the strategy's one thread, which the iterator does not own.
class LocalIterator final : public IteratorSource {
 public:
  LocalIterator(const DistributedDataset& data, Offload& offload)
      : cursor_(read_ahead(data.dataset(), data.options(), 1), offload),
        fetches_(data.options().experimental_fetch_to_device) {}
  const ElementSpec& element_spec() const override { return cursor_.element_spec(); }
  // The cursor moves: an iterator is shared by the steps that it is passed to.
  Element next() const {
    auto element = cursor_.next();
    if (!element)
      throw OutOfRangeError(str("the data ended after ", cursor_.ordinal(), " elements"));
    return std::move(*element);
  }
  DataCursor& cursor() const { return cursor_; }
  // Whether elements may be read before their step, so that they are on its device by then.
  bool fetches() const { return fetches_; }

 private:
  mutable DataCursor cursor_;
  const bool fetches_;
};

// The elements that the next step of this kind will take from one iterator.
struct NextElements {
  const LocalIterator& from;
  std::size_t count;
};

// If a step takes the same iterator twice, both entries read the same elements ahead. Only those
// are sent; the step sends the others itself.
std::vector<Tensor> read_next(const std::vector<NextElements>& next) {
  std::vector<Tensor> values;
  for (const NextElements& one : next) {
    for (const Element& element : one.from.cursor().read_ahead(one.count))
      values.insert(values.end(), element.begin(), element.end());
  }
  return values;
}

// The elements for the step of this kind that comes `steps` steps after this one.
std::vector<std::vector<Element>> read_later(const std::vector<NextElements>& next, int steps) {
  std::vector<std::vector<Element>> elements;
  for (const NextElements& one : next) {
    DataCursor& cursor = one.from.cursor();
    const std::size_t end = one.count * static_cast<std::size_t>(steps);
    cursor.read_ahead(end);
    auto& list = elements.emplace_back();
    for (std::size_t i = end - one.count; i < end; ++i) {
      const Element* element = cursor.ahead(i);
      if (element == nullptr) return {};
      list.push_back(*element);
    }
  }
  return elements;
}

}  // namespace

struct LocalStrategy::State {
  explicit State(std::unique_ptr<LocalRuntime> owned, Device& device = cpu_device())
      : own(std::move(owned)), runtime(*own), workspace(device) {}
  explicit State(LocalRuntime& another) : runtime(another) {}

  std::unique_ptr<LocalRuntime> own;  // nullptr: another's
  LocalRuntime& runtime;
  Workspace workspace;
  std::unique_ptr<Offload> offload;  // made for the first iterator
  DataPositions positions;
  std::set<std::string> saved;  // the checkpoints that this strategy wrote
  struct Planned {
    // Keeps the function alive for as long as its address is a key.
    std::shared_ptr<const ConcreteFunction> function;
    std::shared_ptr<const Plan> plan;
    std::int64_t steps = 0;  // that one run counts
  };
  std::map<const ConcreteFunction*, Planned> plans;
  std::size_t plans_max = 64;  // before those of functions that have gone are looked for
  void forget_plans() {
    if (plans.size() < plans_max) return;
    std::erase_if(plans, [](const auto& each) { return each.second.function.use_count() == 1; });
    plans_max = std::max<std::size_t>(64, 2 * plans.size());
  }
  bool deterministic = false;
  Arithmetic products = Arithmetic::kFloat32;
  std::int64_t step = 0;         // the next one
  std::uint64_t other_runs = 0;  // that were no step
};

LocalStrategy::LocalStrategy(std::uint64_t seed)
    : state_(std::make_unique<State>(std::make_unique<LocalRuntime>(seed))) {}
LocalStrategy::LocalStrategy(std::unique_ptr<LocalRuntime> runtime)
    : state_(std::make_unique<State>(std::move(runtime))) {}
LocalStrategy::LocalStrategy(std::unique_ptr<LocalRuntime> runtime, Device& device)
    : state_(std::make_unique<State>(std::move(runtime), device)) {}
LocalStrategy::LocalStrategy(LocalRuntime& runtime) : state_(std::make_unique<State>(runtime)) {}
LocalStrategy::~LocalStrategy() = default;

Variable LocalStrategy::create_variable(VariableSpec spec) {
  return state_->runtime.create_variable(std::move(spec));
}
void LocalStrategy::add_slots(const Variable& variable, const UpdateRule& rule) {
  state_->runtime.add_slots(variable, rule);
}
LocalRuntime& LocalStrategy::runtime() { return state_->runtime; }
const EagerRuntime* LocalStrategy::eager_runtime() const { return &state_->runtime; }
void LocalStrategy::set_deterministic() { state_->deterministic = true; }
void LocalStrategy::set_products(Arithmetic products) { state_->products = products; }
void LocalStrategy::set_device_cache(const DeviceCache& limit) {
  state_->workspace.limit_tables(limit);
}
LocalStore& LocalStrategy::store() { return state_->runtime.store(); }

std::string LocalStrategy::save(const CheckpointPolicy& policy, const std::string& metadata) {
  std::string saved = save_local(state_->runtime, LocalPlace::of_this_machine(), policy, metadata,
                                 {state_->step, positions_to_save()});
  state_->saved.insert(saved);
  return saved;
}

// If this strategy itself saved the checkpoint, elements taken since then are not taken again, as
// under parameter servers.
RestoreStatus LocalStrategy::restore(const std::string& checkpoint, const RestoreOptions& options) {
  RestoreOptions own = options;
  own.new_data = options.new_data || state_->saved.contains(checkpoint);
  LocalRestore restored = restore_local(state_->runtime, LocalPlace::of_this_machine(), checkpoint,
                                        options, [&](std::vector<PipelinePosition>& positions) {
                                          keep_wanted(positions, own);
                                          state_->positions.verify(positions);
                                        });
  state_->step = restored.progress.global_step;
  state_->positions.restore(std::move(restored.progress.positions));
  return restored.status;
}

std::vector<PipelinePosition> LocalStrategy::positions_to_save() const {
  return state_->positions.positions();
}

std::shared_ptr<const IteratorSource> LocalStrategy::positioned(
    std::shared_ptr<const IteratorSource> source, DataCursor& cursor,
    const InputContext& pipeline) {
  return state_->positions.add(std::move(source), cursor, pipeline);
}

std::shared_ptr<const IteratorSource> LocalStrategy::iterator_of(
    const DistributedDataset& dataset) {
  auto made = std::make_shared<LocalIterator>(dataset, reader());
  DataCursor& cursor = made->cursor();
  return positioned(std::move(made), cursor);
}

std::vector<Element> LocalStrategy::next_elements(const IteratorSource& source) {
  const auto* own = dynamic_cast<const LocalIterator*>(&source);
  if (own == nullptr) throw InvalidArgumentError("get_next: an iterator of another strategy");
  std::vector<Element> one;
  one.push_back(own->next());
  return one;
}

// One thread reads ahead for all iterators; the default strategy of most programs needs none.
Offload& LocalStrategy::reader() {
  if (!state_->offload) state_->offload = make_thread_offload(1);
  return *state_->offload;
}

std::int64_t LocalStrategy::global_step() const { return state_->step; }

// Counted as under parameter servers, so that a checkpoint's step means the same wherever it was
// made: an evaluation on the way must not make it later. A run that is no step has no number of
// one; the count of such runs makes its random numbers others than those of the run before.
StepContext LocalStrategy::next_step(const ConcreteFunction& function) {
  StepContext step;
  const std::int64_t steps = state_->plans.at(&function).steps;
  step.global_step = steps > 0 ? state_->step : -1;
  if (steps == 0) step.closure = ++state_->other_runs;
  state_->step += steps;
  return step;
}

// The plan is kept with its function: an address alone may be that of another one later.
std::shared_ptr<const Plan> LocalStrategy::plan_of(
    const std::shared_ptr<const ConcreteFunction>& function, int replicas, bool reduces_shares) {
  if (!state_->plans.contains(function.get())) state_->forget_plans();
  State::Planned& planned = state_->plans[function.get()];
  if (!planned.plan) {
    planned.function = function;
    PlanOptions options;
    options.replicas = replicas;
    options.reduces_shares = reduces_shares;
    options.deterministic = state_->deterministic;
    options.products = state_->products;
    planned.plan = make_plan(function->graph, state_->runtime.bind(*function), options);
    const auto taken = function->graph.elements_taken();
    if (function->graph.updates_variables())
      planned.steps = taken.empty() ? 1 : std::max<std::int64_t>(1, taken.front());
  }
  return planned.plan;
}

Strategy::StepOutputs LocalStrategy::run_step(Function& function,
                                              const std::vector<Argument>& arguments) {
  auto concrete = function.concrete(arguments, variable_creator());
  const auto plan = plan_of(concrete, 1);
  RunInputs inputs;
  std::vector<NextElements> next;
  auto taken = concrete->graph.elements_taken();
  for (const Argument& argument : arguments) {
    if (auto* tensor = std::get_if<Tensor>(&argument)) {
      inputs.arguments.push_back(*tensor);
      continue;
    }
    auto local = std::dynamic_pointer_cast<const LocalIterator>(
        std::get<std::shared_ptr<const IteratorSource>>(argument));
    if (!local)
      throw InvalidArgumentError("run: a dataset of another strategy; pass what iterate() made");
    auto& list = inputs.elements.emplace_back();
    const std::int64_t count = taken[inputs.elements.size() - 1];
    for (std::int64_t i = 0; i < count; ++i) list.push_back(local->next());
    if (local->fetches()) next.push_back({*local, static_cast<std::size_t>(count)});
  }
  if (!next.empty()) inputs.next = [next] { return read_next(next); };
  if (!next.empty() && next.size() == inputs.elements.size())
    inputs.later = [next](int steps) { return read_later(next, steps); };
  const StepContext step = next_step(*concrete);
  StepOutputs outputs;
  for (Tensor& value :
       cairn::run(plan, state_->workspace, state_->runtime.store(), step, std::move(inputs)))
    outputs.values.emplace_back(std::move(value));
  outputs.names = OutputNames(concrete, &concrete->graph.output_names);
  return outputs;
}

}  // namespace cairn
