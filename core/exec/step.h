// Step: one run of a plan, without input or output of its own. It computes until it needs something
// from outside, says what, and goes on when it is asked again:
//
//   Step step(plan, workspace, memory, context, inputs);
//   for (;;) {
//     const Step::Next needed = step.next();
//     if (auto* pull = std::get_if<Step::Pull>(&needed))
//       ...  fill pull->reads
//     else if (auto* push = std::get_if<Step::Push>(&needed))
//       ...  apply push->updates
//     else if (auto* announce = std::get_if<Step::Announce>(&needed))
//       ...  fill announce->left_out
//     else if (auto* reduce = std::get_if<Step::AllReduce>(&needed))
//       ...  begin reduce->reductions, and go on at once
//     else if (auto* await = std::get_if<Step::Await>(&needed))
//       ...  wait for those begun with await->ticket, and with tickets before it
//     else
//       break;
//   }
//   step.outputs()
//
// So the driver of a step decides what waits for what: a lane's coroutine awaits its shards and its
// turn to compute, run() calls a store.
// A plan of a graph without all_reduce, or for one replica, asks for no AllReduce and no Await. A
// step whose updates need not be announced (StepMemory::wants_announced()) asks for no Announce.
//
// A check of numerics that fails stops what is computed from the checked value, or from the check's
// result, and nothing else: no such update is pushed, updates that do not depend on it are. The
// error is raised in the place of the first all-reduce, or the first pull by such ids, that depends
// on it, else in the place of Finished: a step with a failed check has no outputs.
//   Thread  one at a time. Several steps may be between two calls of next() at once, each with its
//           own Workspace.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "core/exec/all_reduce_buffer.h"
#include "core/exec/executor.h"
#include "core/rows/variable_store.h"

namespace cairn {

class DeviceMember;  // core/kernels/device_group.h

class Step {
 public:
  // Rows to be read: every `value` is to be filled before next() is called again.
  struct Pull {
    std::span<Read> reads;
  };
  // Changes to be made before next() is called again. The values stay where they are until then.
  struct Push {
    std::span<Update> updates;
  };
  // Changes that are about to be made, as VariableStore::announce() has them. The answer is to be
  // filled in before next() is called again; those not left out are then pushed, and made on the
  // device behind the push.
  struct Announce {
    std::span<const Update> updates;
    std::vector<bool>* left_out;  // out, beside `updates`
  };
  // Reductions to begin, in this order after all begun before, on every replica alike. next() may
  // be called again at once; it computes what does not depend on them. Tickets count from 0. The
  // list is valid until next() is called again, what the reductions point to until they have been
  // awaited. That is the host's memory: of a device with memory of its own the shares are copied
  // out, and what they have come to is copied in when it has been awaited. With sum_on() they stay
  // on the device, which has begun to sum them already, and the reductions point nowhere.
  struct AllReduce {
    std::int32_t ticket = 0;
    std::span<const AllReduceBuffer> reductions;
  };
  // The reductions of this ticket, and of all before it, must have ended before next() is called
  // again.
  struct Await {
    std::int32_t ticket = 0;
  };
  struct Finished {};
  using Next = std::variant<Pull, Push, Announce, AllReduce, Await, Finished>;

  // `memory` outlives the step.
  //   Errors  InvalidArgument: the plan all-reduces over another number of replicas than
  //           `context` says.
  Step(std::shared_ptr<const Plan> plan, Workspace& workspace, StepMemory& memory,
       const StepContext& context, RunInputs inputs);
  // A step may be given up at any time. What it had pushed, or begun to reduce, may still be on its
  // way: its memory is then not used again.
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Before the first next(): this replica's member, which outlives the step, of a group of the
  // devices on which the replicas' runs compute. That a ticket has been awaited then means that all
  // replicas have begun it; a step that ends otherwise than by Finished leaves the group unusable.
  void sum_on(DeviceMember& member);

  // Computes up to what it needs next. Not to be called again after Finished, nor after an error.
  //   Errors  those of the operations; InvalidArgument: an id outside its variable, or a check of
  //           numerics that failed (see above).
  Next next();
  const StepContext& context() const;
  // Will next() compute, or only say that the step has finished?
  bool computes_next() const;
  const std::vector<Tensor>& outputs() const;  // once it has finished

 private:
  class Run;
  const std::unique_ptr<Run> run_;
};

}  // namespace cairn
