// LocalStrategy: what the strategies of one process share. Variables lie in a LocalRuntime, and
// steps run against them on the caller's thread: that is the default strategy and
// OneDeviceStrategy. Strategies of several replicas (in_sync_strategy.h) begin from it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/arithmetic.h"
#include "core/base/device_cache.h"
#include "core/rows/variable_store.h"
#include "data/dataset/input_context.h"
#include "strategy/base/strategy.h"

namespace cairn {

class DataCursor;
class Device;
class LocalRuntime;
class LocalStore;
class Offload;
class Plan;
struct PipelinePosition;

//   Data    Where each iterator stands is part of checkpoints, under names by the order in which a
//           program makes them; after restore() it goes on from there. InvalidArgument: a restored
//           checkpoint has a position in another dataset under that name.
//   Thread  one at a time.
class LocalStrategy : public Strategy {
 public:
  ~LocalStrategy() override;

  // A second variable of the same name gets "_1", "_2", ... appended.
  //   Errors  InvalidArgument: a spec that means no variable (core/graph/variable.h).
  Variable create_variable(VariableSpec spec) override;
  // Slots begin with the rule's own initial values; declaring them again changes nothing.
  void add_slots(const Variable& variable, const UpdateRule& rule) override;

  std::string save(const CheckpointPolicy& policy, const std::string& metadata = "{}") override;
  RestoreStatus restore(const std::string& checkpoint, const RestoreOptions& options = {}) override;

  // How many steps there have been, those before a restored checkpoint included: a run or call that
  // changes variables is as many steps as it takes elements of its first dataset, and at least one;
  // others, such as evaluations, are none.
  std::int64_t global_step() const;

  // From the next function on that has not run yet: steps repeat bit for bit on the same GPU, at
  // the price of slower matrix products (PlanOptions::deterministic). On the CPU they do anyway.
  void set_deterministic();
  // Likewise: what matrix products are computed in (core/base/arithmetic.h).
  void set_products(Arithmetic products);

  // Likewise: how much of a GPU's memory tables may take, which steps look up and update by ids. By
  // default they lie there whole if all of them fit. The rest stays in the host's memory, and the
  // rows in use lie on the GPU; results are the same.
  void set_device_cache(const DeviceCache& limit);

  // The rows themselves, to look at between steps.
  LocalStore& store();

 protected:
  // With variables of its own, whose initial values are those of `seed`.
  explicit LocalStrategy(std::uint64_t seed);
  // On variables that another owns, who outlives it.
  explicit LocalStrategy(LocalRuntime& runtime);
  // On these variables.
  explicit LocalStrategy(std::unique_ptr<LocalRuntime> runtime);
  // The same; steps compute on `device`, which outlives it.
  LocalStrategy(std::unique_ptr<LocalRuntime> runtime, Device& device);
  std::shared_ptr<const IteratorSource> iterator_of(const DistributedDataset& dataset) override;
  std::vector<Element> next_elements(const IteratorSource& source) override;
  StepOutputs run_step(Function& function, const std::vector<Argument>& arguments) override;
  LocalRuntime& runtime();
  const EagerRuntime* eager_runtime() const override;
  // The plan of the function for this number of replicas (see PlanOptions); made when it is first
  // asked for.
  std::shared_ptr<const Plan> plan_of(const std::shared_ptr<const ConcreteFunction>& function,
                                      int replicas, bool reduces_shares = false);
  // Counts a step, and returns its context for a run of `function`, which plan_of() knows.
  StepContext next_step(const ConcreteFunction& function);
  Offload& reader();  // the thread that reads ahead for iterators
  // The iterator, with its place in checkpoints. `cursor` is within it.
  std::shared_ptr<const IteratorSource> positioned(std::shared_ptr<const IteratorSource> source,
                                                   DataCursor& cursor,
                                                   const InputContext& pipeline = {});
  // The positions of all iterators of this strategy, those in other processes included.
  virtual std::vector<PipelinePosition> positions_to_save() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn
