// ReplicaRuntime: the variables of replicas in sync in one process, and what becomes of one that
// several of them change.
//
//   copies     Each replica has every variable (MirroredStrategy). ON_WRITE, which AUTO means: the
//              replicas' changes become one, by the variable's aggregation, and every copy takes
//              it; NONE: each replica changes its own copy. ON_READ: each replica changes its own
//              copy, and a read in cross-replica context combines them.
//   one place  All replicas read the same variable, and their changes become one by its
//              aggregation; NONE is refused. Synchronization means nothing.
//
// A change in cross-replica context is made once, on all copies alike; of an ON_READ variable that
// is a sum each copy gets its part of it, so that the sum is what was assigned.
//   Source  tf.distribute's MirroredVariable, SyncOnReadVariable, AggregatingVariable.
//   Thread  as LocalRuntime.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collective/local/group_store.h"
#include "core/exec/local_runtime.h"
#include "strategy/base/replica_recording.h"

namespace cairn {

class Strategy;

class ReplicaRuntime final : public LocalRuntime {
 public:
  using Rows = GroupStore::Rows;
  // `replicas`: of this process. `group`, which other processes with as many are members of: their
  // replicas are in sync with those here, and have copies too. Null: there are none elsewhere.
  ReplicaRuntime(std::uint64_t seed, int replicas, Rows rows,
                 std::unique_ptr<Collective> group = nullptr);
  // In all, of this process, and the number of the first of them.
  int replicas() const { return replicas_; }
  int local_replicas() const { return local_; }
  int first_replica() const { return first_; }
  // The processes' meeting place; null: there is one process.
  Collective* group() const { return group_.get(); }
  // Whose scopes tell the context. Before the first variable is made.
  void serve(const Strategy& strategy) { strategy_ = &strategy; }

  // Among several processes all must make the same variables in the same order; the initial value
  // is that of the first process.
  //   Errors  InvalidArgument: synchronization NONE, or a mean of what is no float.
  //           FailedPrecondition: the first process makes another variable here, naming both.
  Variable create_variable(VariableSpec spec) override;
  std::vector<Tensor> run_now(const ConcreteFunction& function) override;
  Array read_here(const Variable& variable, const Array& own) override;
  VariableChange change_here(const Variable& variable, VariableChange change) override;
  int gradients_here() const override;

  // A function is about to be traced for each replica. A variable that its body makes is made for
  // the first of them, and the others get the same one.
  void begin_traces() { traced_.begin(first_); }
  // FailedPrecondition naming a variable of which two copies differ although all of their changes
  // were made in step, and, of copies in one process, the first row.
  void require_equal_copies();
  // ON_READ variables as a checkpoint has them: what a cross-replica read gives stands in copy 0
  // for the life of the object.
  class SavedValues;

 protected:
  void restored(VariableId id) override;

 private:
  ContextHere context() const { return context_here(strategy_); }
  bool on_read(const VariableSpec& spec) const {
    return rows_ == Rows::kCopies && spec.synchronization == Synchronization::kOnRead;
  }
  VariableChange change_of_replica(const VariableSpec& spec, VariableChange change);
  VariableChange change_of_all(const Variable& variable, VariableChange change);
  void agree(VariableSpec& spec) const;
  void require_equal_processes();
  Tensor combined_copies(VariableId id);
  Array share_of(const VariableSpec& spec, const Array& value) const;
  Tensor value_of(int copy, VariableId id);
  void set_value(int copy, VariableId id, const Tensor& value);
  VariableId number(const Variable& variable) const;

  const std::unique_ptr<Collective> group_;
  const int local_, replicas_, first_;
  const Rows rows_;
  const Strategy* strategy_ = nullptr;
  std::set<std::string> apart_;  // variables that replicas change each for itself
  TracedVariables traced_;
};

class [[nodiscard]] ReplicaRuntime::SavedValues {
 public:
  explicit SavedValues(ReplicaRuntime& runtime);
  ~SavedValues();
  SavedValues(const SavedValues&) = delete;
  SavedValues& operator=(const SavedValues&) = delete;

 private:
  ReplicaRuntime& runtime_;
  std::map<VariableId, Tensor> own_;  // the values that copy 0 had
};

}  // namespace cairn
