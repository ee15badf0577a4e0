// MirroredStep: the variables as a closure of a group sees them. What the group keeps in step is
// read from this lane's copies and, as the members' gradients are one by now, updated there; one
// member has the ps keep it too, as the share of the round. All else is read from the ps and
// pushed there at once, as by RemoteStep.
//
//   Which are mirrored: those that the function updates by what the replicas have in common
//   (Aggregation::kOnlyFirstReplica).
//   Errors, Cancel, Thread  those of RemoteStep.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "worker/mirror.h"
#include "worker/remote_step.h"

namespace cairn::worker {

// The numbers in the store of the variables that a group keeps in step when it runs the graph,
// whose variables have the numbers `variables` there.
std::set<VariableId> mirrored_variables(const Graph& graph,
                                        const std::vector<VariableId>& variables);

class MirroredStep final : public StepStore {
 public:
  // The copies of round `base` are as the ps have what is `mirrored`; 0: none is. `first`: this
  // member tells the ps. The mirror outlives it, and no other step uses it meanwhile.
  MirroredStep(RemoteStore& store, DoingSlot* slot, Mirror& mirror, std::set<VariableId> mirrored,
               std::uint64_t base, bool first)
      : store_(store),
        remote_(store, slot),
        mirror_(mirror),
        mirrored_(std::move(mirrored)),
        base_(base),
        first_(first) {}

  rpc::Task<void> pull(StepContext step, std::span<Read> reads) override;
  // Once: `step.round` is the round of which it is.
  rpc::Task<void> push(StepContext step, std::span<Update> updates) override;
  std::shared_ptr<std::byte> update_place(VariableId variable, std::size_t bytes) override;
  std::uint64_t staleness() const override { return remote_.staleness(); }
  bool updated() const override { return updated_; }
  std::uint64_t fingerprint_of_copies() const override { return mirror_.fingerprint(mirrored_); }

 private:
  rpc::Task<void> have(StepContext step, std::vector<VariableId> variables);

  RemoteStore& store_;
  RemoteStep remote_;
  Mirror& mirror_;
  const std::set<VariableId> mirrored_;
  const std::uint64_t base_;
  const bool first_;
  bool updated_ = false;
  bool settled_ = false;  // whether the copies that are there are the ones that this step needs
};

}  // namespace cairn::worker
