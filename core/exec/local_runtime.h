// LocalRuntime: variables of one process in a LocalStore, read and updated at once.
//
// It is the part of a strategy of one process that core can have: OneDeviceStrategy has one of its
// own, and the default strategy sits on the one of the process, which serves programs that link no
// strategy too. A strategy that keeps a copy of every variable for each of its replicas has a store
// for each.
//   Thread  any, one call at a time: the mutex holds others back while a function runs.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/exec/executor.h"
#include "core/graph/eager.h"
#include "core/kernels/device.h"
#include "core/rows/local_store.h"

namespace cairn {

class LocalRuntime : public VariableCreator, public EagerRuntime {
 public:
  // Computes on `device`, which outlives it. Variables are in the host's memory unless a workspace
  // borrows them for its device (core/rows/lending.h).
  // Every variable is made in each of `copies` stores, with the same initial values.
  explicit LocalRuntime(std::uint64_t seed = 0, Device& device = cpu_device(), int copies = 1);
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
  LocalStore& store(int copy = 0) { return *stores_[static_cast<std::size_t>(copy)]; }
  int copies() const { return static_cast<int>(stores_.size()); }

  // All variables from `source`, those made so far at once and later ones when they are made; what
  // it has nothing for goes back to its initial values, which are those of `seed`. It is kept until
  // the next restore. All copies are equal then.
  //   Errors  the source's, FailedPrecondition: the variables were made from another seed. Then
  //   nothing has changed.
  void restore(std::shared_ptr<VariableSource> source, std::uint64_t seed);

 protected:
  // Runs the function on this copy alone.
  std::vector<Tensor> run_on(int copy, const ConcreteFunction& function);
  // After a variable's contents were taken from a checkpoint into all copies alike. The lock is
  // held.
  virtual void restored(VariableId) {}

 private:
  VariableId find(const std::string& name) const;
  void put(VariableId id, const SavedContents& saved, LocalStore::Take what);

  mutable std::mutex mutex_;  // guards all below
  std::vector<std::unique_ptr<LocalStore>> stores_;
  std::vector<Variable> variables_;  // by VariableId
  std::map<std::string, VariableId> by_name_;
  Workspace workspace_;
  std::shared_ptr<VariableSource> source_;  // the newest source that was restored
};

}  // namespace cairn
