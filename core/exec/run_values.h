// RunValues: the values of one run of a plan: where each of them lies, how what came with the run
// gets to the device, and how the host gets to look at what the device has computed.
//
//   RunValues values(plan, workspace.state(), memory, context, inputs);
//   values.bind();                    // every value that came with the run or the graph is there
//   ... kernels read and write at data() ...
//   values.bring(a), values.bring(b);
//   values.wait_for_copies();         // once for all of them
//   ... values.host_view(a) ...
//
// Kernels find every value at data(). Where the device's memory is the host's, so does the host,
// and nothing is ever copied. On a device with memory of its own host_view() is a copy, which
// bring() begins; strings, and what came with the run, are in the host's memory always.
//   Errors  bind(): those of BoundPlan. All: those of the device.
//   Thread  the step's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/exec/bound_plan.h"
#include "core/exec/plan.h"
#include "core/exec/workspace.h"
#include "core/rows/variable_store.h"

namespace cairn {

// One read of a wave, as it is planned and as it is bound.
struct ReadAt {
  const ReadGroup& group;
  Read& read;
  UniqueIds& ids;
  ReadHere& here;
};

class RunValues {
 public:
  // `space` and `memory` outlive it.
  RunValues(const std::shared_ptr<const Plan>& plan, Workspace::State& space, StepMemory& memory,
            const StepContext& context, RunInputs&& inputs);

  void bind();
  bool is_bound() const { return bound_ != nullptr; }
  // Hands the store's memory back, and drops what was brought to the host.
  void let_go();

  const Plan& plan() const { return *plan_; }
  BoundPlan& bound() const { return *bound_; }
  Workspace::State& space() const { return space_; }
  Device& device() const { return space_.device; }
  bool on_host() const { return space_.on_host; }  // the device's memory is the host's
  const StepContext& context() const { return context_; }
  const RunInputs& inputs() const { return inputs_; }

  const Node& node(std::int32_t i) const { return plan_->graph.nodes[static_cast<std::size_t>(i)]; }
  const Node& producer(std::int32_t value) const {
    return node(plan_->producer[static_cast<std::size_t>(value)]);
  }
  std::int32_t input(std::int32_t i, std::size_t k) const {
    return plan_->value(node(i).inputs[k]);
  }
  const GraphVariable& variable_of(std::int32_t i) const;
  VariableId stored_variable(std::int32_t i) const;  // the store's number for it
  ReadAt read_at(std::size_t wave, std::size_t group) const;
  // The read whose ids are the update's, number for number; none: the update finds its own.
  std::optional<ReadAt> ids_source(std::int32_t update) const;
  // The lookups of that read.
  std::span<const std::int32_t> id_readers(std::int32_t update) const;
  // Whether those ids were pulled by, in this run, and so are known to the host.
  bool has_ids_of_pull(std::int32_t update) const;

  // ---- in the device's memory ----

  const std::byte* data(std::int32_t value) const {
    return space_.pointers[static_cast<std::size_t>(bound_->root(value))];
  }
  std::byte* writable(std::int32_t value) const { return const_cast<std::byte*>(data(value)); }
  void lies_at(std::int32_t value, const std::byte* place) {
    space_.pointers[static_cast<std::size_t>(value)] = place;
  }
  // The value's own place in the arena.
  std::byte* own_place(std::int32_t value) const { return arena_at(bound_->offset(value)); }
  std::byte* arena_at(std::int64_t offset) const { return arena_.get() + offset; }
  const std::shared_ptr<std::byte>& arena() const { return arena_; }
  // Where the first of its rows lies within those of the larger value.
  const std::byte* place_within(std::int32_t value) const;
  // The owner that keeps a value's memory while a request refers to it: that of the place which the
  // store chose for the value, or else the arena.
  const std::shared_ptr<std::byte>& owner_of(std::int32_t value) const;
  // A value that is at hand: kernels read it where it lies, or, if the device cannot, a copy.
  void give(std::int32_t value, const Tensor& tensor);
  // At least `bytes` of the host's memory, valid until the next call, from which a copy may begin.
  std::byte* staging(std::size_t bytes);

  // ---- in the host's memory ----

  // The tensor of a value that came with the run or the graph; nullptr: computed or read.
  const Tensor* outside_tensor(std::int32_t value) const;
  // Begins to copy the value, if it lies where the host cannot read.
  void bring(std::int32_t value);
  // Returns when all that was brought is at hand. What the workspace's next run brings is sent
  // ahead meanwhile, once, because the device has work then and the host has none.
  void wait_for_copies();
  // The value for the host to look at until let_go(): where it lies, or, if the host cannot read
  // there, a copy. It waits only for what was not brought before.
  const std::byte* host_view(std::int32_t value);
  float learning_rate(std::int32_t update);
  // For an update's values, which the host makes: where the store wants them, or anywhere.
  Tensor memory_for_update(std::int32_t update, const TensorType& type);
  // The value as a tensor that owns its memory: the arena is used again, and a store may want its
  // rows back. From a device with memory of its own the copy is only begun.
  Tensor output(std::int32_t value);

 private:
  void set_outside_values();
  bool lies_as_constant(std::int32_t value) const;
  void send_constants();
  void give_rounded(std::int32_t value, const Tensor& tensor);
  void place_updates();
  void make_step_key();

  std::shared_ptr<const Plan> plan_;
  Workspace::State& space_;
  StepMemory& memory_;
  const StepContext context_;
  RunInputs inputs_;
  Tensor step_key_;  // undefined: the graph does not ask for it
  BoundPlan* bound_ = nullptr;
  std::shared_ptr<std::byte> arena_;
  // Values that lie where the store wants them, and not in the arena.
  std::vector<std::pair<std::int32_t, std::shared_ptr<std::byte>>> placed_;
};

}  // namespace cairn
