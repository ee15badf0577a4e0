// LocalStrategy: what the strategies of one process share. Variables lie in a LocalRuntime, and
// steps run against them on the caller's thread: that is the default strategy and
// OneDeviceStrategy. Strategies of several replicas (in_sync_strategy.h) begin from it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/strategy.h"

namespace cairn {

class LocalRuntime;
class LocalStore;
class Offload;
class Plan;

// Iterators have no names here: where they stand is not in a checkpoint, and positions that one has
// are left alone.
//   Thread  one at a time.
class LocalStrategy : public Strategy {
 public:
  ~LocalStrategy() override;

  // A second variable of the same name gets "_1", "_2", ... appended.
  //   Errors  InvalidArgument: a spec that means no variable (core/graph/variable.h).
  Variable create_variable(VariableSpec spec) override;
  // Slots begin with the rule's own initial values; declaring them again changes nothing.
  void add_slots(const Variable& variable, const UpdateRule& rule) override;

  // To be passed to run() and call() of this strategy, which draw from it one after another. A
  // dataset function is asked for the only pipeline.
  std::shared_ptr<const IteratorSource> iterate(const Dataset& dataset) override;
  std::shared_ptr<const IteratorSource> iterate(const DatasetFunction& dataset_fn) override;

  std::string save(const CheckpointPolicy& policy, const std::string& metadata = "{}") override;
  RestoreStatus restore(const std::string& checkpoint, const RestoreOptions& options = {}) override;

  // The rows themselves, to look at between steps.
  LocalStore& store();

 protected:
  // With variables of its own, whose initial values are those of `seed`.
  explicit LocalStrategy(std::uint64_t seed);
  // On variables that another owns, who outlives it.
  explicit LocalStrategy(LocalRuntime& runtime);
  // On these variables.
  explicit LocalStrategy(std::unique_ptr<LocalRuntime> runtime);
  StepOutputs run_step(Function& function, const std::vector<Argument>& arguments) override;
  LocalRuntime& runtime();
  // The plan of the function for this number of replicas; made when it is first asked for.
  std::shared_ptr<const Plan> plan_of(const std::shared_ptr<const ConcreteFunction>& function,
                                      int replicas);
  std::int64_t next_step();  // counts what run and call start
  std::int64_t steps() const;
  Offload& reader();  // the thread that reads ahead for iterators

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn
