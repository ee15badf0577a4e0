// Values that the host needs to look at, of a run on a device with memory of its own. Copies are
// begun value by value and waited for once a wave.
#include <utility>

#include "core/exec/step.h"
#include "core/graph/op_def.h"

namespace cairn {

// Begins to copy the value, if it lies where the host cannot read.
void Step::bring(std::int32_t value) {
  const TensorType& type = bound_->type(value);
  if (space_.on_host || type.dtype == DType::kString) return;
  if (outside_tensor(bound_->root(value)) != nullptr) return;
  space_.host.begin(bound_->root(value), data(value),
                    static_cast<std::size_t>(type.shape.elements()) * dtype_bytes(type.dtype));
}

// The value for the host to look at until next() is called again: where it lies, or, if the host
// cannot read there, a copy. It waits only for what was not brought before.
const std::byte* Step::on_host(std::int32_t value) {
  if (space_.on_host || bound_->type(value).dtype == DType::kString) return data(value);
  if (const Tensor* tensor = outside_tensor(bound_->root(value))) return tensor->raw();
  bring(value);
  wait_for_copies();
  return space_.host.find(bound_->root(value));
}

// Values of the next run are sent while the device has work and the host has none.
void Step::wait_for_copies() {
  if (space_.on_host) return;
  if (inputs_.next) space_.device.send_ahead(std::exchange(inputs_.next, {})());
  space_.host.finish();
}

// All that the host looks at in this wave comes with one wait: checked values, ids, what is reduced
// or pushed, and in the last wave the outputs. Of updates that a check then stops it comes in vain.
// Outputs alone are not waited for yet, because updates on the device may still follow.
void Step::bring_what_host_reads() {
  bring_for_reads();
  if (!plan_->waves[wave_].reductions.empty() && member_ == nullptr) bring_shares();
  if (space_.rows != nullptr) begin_sums();
  for (const BoundUpdate& update : bound_->waves[wave_].updates)
    if (!stops(update.node)) bring_for_update(update);
  if (space_.host.begun() && wave_ + 1 == plan_->waves.size()) collect_outputs();
  if (space_.host.begun()) wait_for_copies();
  for (const Instruction& one : bound_->waves[wave_].compute)
    if (!one.run) check_values(one);
}

void Step::bring_for_reads() {
  const Wave& wave = plan_->waves[wave_];
  for (const ReadGroup& group : wave.reads) {
    const auto variable = static_cast<std::size_t>(group.variable);
    if (group.whole || (lender_ != nullptr && hold(variable) != nullptr)) continue;
    for (std::int32_t i : group.nodes) bring(input(i, 0));
  }
}

void Step::bring_shares() {
  auto& shares = shares_on_host_.emplace_back();
  for (const std::int32_t value : bound_->waves[wave_].reduced) {
    const TensorType& type = bound_->type(value);
    Tensor& share = shares.emplace_back(value, Tensor(type.dtype, type.shape)).second;
    space_.host.begin_into(share.mutable_raw(), data(value), share.bytes());
  }
}

// Begins to copy what make_update() reads, or of an update on the device its rate.
void Step::bring_for_update(const BoundUpdate& update) {
  const Node& n = node(update.node);
  if (!is_assignment(n.attributes.get<UpdateRule>("rule").kind))
    bring(input(update.node, n.inputs.size() - 1));
  if (lender_ != nullptr && held_for(update) != nullptr) return;
  if (!n.attributes.get<bool>("sparse")) {
    const std::int32_t value = input(update.node, 0);
    space_.host.begin_update(update.node, host_tensor(update.node, bound_->type(value)),
                             data(value));
    return;
  }
  if (update.summed) return;
  bring(input(update.node, 1));
  if (has_ids_of_read(update)) return;
  const std::span<const std::int32_t> readers = id_readers(update.node);
  if (readers.empty()) bring(input(update.node, 0));
  for (std::int32_t i : readers) bring(input(i, 0));
}

}  // namespace cairn
