// What a step reduces with the other replicas: in the host's memory, or on the devices.
#include "core/exec/step.h"

namespace cairn {

std::span<const Reduction> Step::reductions() {
  for (std::int32_t i : plan_->waves[wave_].reductions)
    if (stops(i)) raise_failed_check();
  BoundWave& wave = bound_->waves[wave_];
  for (std::size_t k = 0; k < wave.reduced.size(); ++k) {
    const std::int32_t value = wave.reduced[k];
    const Node& n = node(plan_->producer[static_cast<std::size_t>(value)]);
    const TensorType& type = bound_->type(value);
    Reduction& made = wave.reductions[k];
    made = {parse_reduce_op(n.attributes.get<std::string>("reduction")), type.dtype,
            type.shape.elements(), const_cast<std::byte*>(data(value)), owner_of(value)};
    if (space_.on_host || member_ != nullptr) continue;
    Tensor& share = shares_on_host_.back()[k].second;
    made.values = share.mutable_raw();
    made.owner = std::make_shared<Tensor>(share);
  }
  if (member_ != nullptr) begin_on_device(wave.reductions);
  return wave.reductions;
}

// The device keeps what it needs; to the others of the group the values are nowhere.
void Step::begin_on_device(std::span<Reduction> reductions) {
  std::vector<DeviceSum> sums;
  for (Reduction& each : reductions) {
    sums.push_back({each.op, each.dtype, each.elements, each.values, std::move(each.owner)});
    each.values = nullptr;
  }
  member_->begin(space_.device, std::move(sums));
}

// What the reductions of `ticket` have come to.
void Step::take_in_reduced(std::int32_t ticket) {
  if (space_.on_host) return;
  if (member_ != nullptr) return member_->finish(space_.device);
  auto& shares = shares_on_host_[static_cast<std::size_t>(ticket)];
  for (const auto& [value, sum] : shares)
    space_.device.copy(Device::Direction::kIn, const_cast<std::byte*>(data(value)), sum.raw(),
                       sum.bytes());
  shares.clear();
}

}  // namespace cairn
