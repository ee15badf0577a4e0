// MirroredStep: the variables as a closure of a group sees them. What the group keeps in step is
// read from this lane's copies and, as the members' gradients are one by now, updated there; one
// member has the ps keep it too, as the share of the round. All else is read from the ps and
// pushed there at once, as by RemoteStep.
//
//   Which variables are mirrored: those that the strategy has marked so in the function's graph
//   (GraphVariable::mirrored).
//   Errors, Cancel, Thread  those of RemoteStep.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "worker/rows/mirror.h"
#include "worker/rows/remote_step.h"

namespace cairn::worker {

// The numbers in the store of the variables that a group keeps in step when it runs the graph,
// whose variables have the numbers `variables` there.
std::set<VariableId> mirrored_variables(const Graph& graph,
                                        const std::vector<VariableId>& variables);

// When a step may use the copies, among others that do.
class CopiesTurn {
 public:
  // Resolves when all steps before this one are done with the copies.
  //   Errors  Aborted: they will not be, or the copies are of no use any more.
  virtual rpc::Task<void> turn() = 0;
  // This one is done with them, if its updates are the last of what it has to do.
  virtual void pass_on() = 0;

 protected:
  ~CopiesTurn() = default;
};

class MirroredStep final : public StepStore {
 public:
  struct Role {
    // The round of which copies are as the ps have what is mirrored; 0: none is. If it is not
    // applied yet, nothing can be fetched.
    std::uint64_t base = 0;
    bool ahead = false;
    bool first = false;         // this member pushes them to the ps
    bool check_copies = false;  // fingerprint_of_copies() is asked for
  };
  // The mirror and the turn outlive it; other steps use the mirror too, each in its turn.
  MirroredStep(RemoteStore& store, ActivitySlot* slot, Mirror& mirror,
               std::set<VariableId> mirrored, Role role, CopiesTurn& turn)
      : store_(store),
        remote_(store, slot),
        mirror_(mirror),
        mirrored_(std::move(mirrored)),
        role_(role),
        turn_(turn) {}

  rpc::Task<void> pull(StepContext step, std::span<Read> reads) override;
  // Once: `step.round` is the round of which it is.
  rpc::Task<void> push(StepContext step, std::span<Update> updates) override;
  std::shared_ptr<std::byte> update_place(VariableId variable, std::size_t bytes) override;
  std::uint64_t staleness() const override { return remote_.staleness(); }
  bool updated() const override { return updated_; }
  // As they were after this step: another one may have changed them since.
  std::uint64_t fingerprint_of_copies() const override { return fingerprint_; }

 private:
  rpc::Task<void> have(StepContext step, std::vector<VariableId> variables);

  RemoteStore& store_;
  RemoteStep remote_;
  Mirror& mirror_;
  const std::set<VariableId> mirrored_;
  const Role role_;
  CopiesTurn& turn_;
  bool updated_ = false;
  std::uint64_t fingerprint_ = 0;
  bool settled_ = false;  // whether the copies that are there are the ones that this step needs
};

}  // namespace cairn::worker
