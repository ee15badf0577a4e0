// LocalRuntime: variables of one process in a LocalStore, read and updated at once.
//
// It is the part of a strategy of one process that core can have: OneDeviceStrategy has one of its
// own, and the default strategy sits on the one of the process, which serves programs that link no
// strategy too.
//   Thread  any, one call at a time: the mutex holds others back while a function runs.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/exec/executor.h"
#include "core/graph/eager.h"
#include "core/kernels/device.h"
#include "core/rows/local_store.h"

namespace cairn {

class LocalRuntime final : public VariableCreator, public EagerRuntime {
 public:
  // Computes on `device`, which outlives it; variables are in the host's memory.
  explicit LocalRuntime(std::uint64_t seed = 0, Device& device = cpu_device())
      : store_(seed), workspace_(device) {}
  // Where variables are made while no scope is open; lives as long as the process.
  static LocalRuntime& of_this_process();

  Variable create_variable(VariableSpec spec) override;
  void add_slots(const Variable& variable, const UpdateRule& rule) override;
  std::vector<Tensor> run_now(const ConcreteFunction& function) override;

  // The store's ids of the function's variables, for make_plan(). FailedPrecondition: a variable
  // that another strategy made.
  std::vector<VariableId> bind(const ConcreteFunction& function) const;
  // By name; InvalidArgument: none. In order of creation: variables().
  Variable variable(const std::string& name) const;
  const std::vector<Variable>& variables() const { return variables_; }
  LocalStore& store() { return store_; }

  // All variables from `source`, those made so far at once and later ones when they are made; what
  // it has nothing for goes back to its initial values, which are those of `seed`. It is kept until
  // the next restore.
  //   Errors  the source's, FailedPrecondition: the variables were made from another seed. Then
  //   nothing has changed.
  void restore(std::shared_ptr<VariableSource> source, std::uint64_t seed);

 private:
  VariableId find(const std::string& name) const;

  mutable std::mutex mutex_;  // guards all below
  LocalStore store_;
  std::vector<Variable> variables_;  // by VariableId
  std::map<std::string, VariableId> by_name_;
  Workspace workspace_;
  std::shared_ptr<VariableSource> source_;  // what was restored last
};

}  // namespace cairn
