#include "core/exec/step_reductions.h"

#include <memory>
#include <string>

#include "core/graph/op_def.h"

namespace cairn {

void StepReductions::bring_shares(std::size_t wave) {
  if (values_.plan().waves[wave].reductions.empty() || member_ != nullptr) return;
  auto& shares = shares_on_host_.emplace_back();
  for (const std::int32_t value : values_.bound().waves[wave].reduced) {
    const TensorType& type = values_.bound().type(value);
    Tensor& share = shares.emplace_back(value, Tensor(type.dtype, type.shape)).second;
    values_.space().host.begin_into(share.mutable_raw(), values_.data(value), share.bytes());
  }
}

std::span<const AllReduceBuffer> StepReductions::begin(std::size_t w) {
  for (std::int32_t i : values_.plan().waves[w].reductions)
    if (checks_.stops(i)) checks_.raise();
  BoundWave& wave = values_.bound().waves[w];
  for (std::size_t k = 0; k < wave.reduced.size(); ++k) {
    const std::int32_t value = wave.reduced[k];
    const TensorType& type = values_.bound().type(value);
    AllReduceBuffer& made = wave.reductions[k];
    made = {parse_reduce_op(values_.producer(value).attributes.get<std::string>("reduction")),
            type.dtype, type.shape.elements(), values_.writable(value), values_.owner_of(value)};
    if (values_.on_host() || member_ != nullptr) continue;
    Tensor& share = shares_on_host_.back()[k].second;
    made.values = share.mutable_raw();
    made.owner = std::make_shared<Tensor>(share);
  }
  ++begun_;
  if (member_ != nullptr) begin_on_device(wave.reductions);
  return wave.reductions;
}

// The device keeps what it needs; to the others of the group the values are nowhere.
void StepReductions::begin_on_device(std::span<AllReduceBuffer> reductions) {
  std::vector<DeviceSum> sums;
  for (AllReduceBuffer& each : reductions) {
    sums.push_back({each.op, each.dtype, each.elements, each.values, std::move(each.owner)});
    each.values = nullptr;
  }
  member_->begin(values_.device(), std::move(sums));
}

// One that another replica aborted is not over: its sums may still be written to.
void StepReductions::end_up_to(std::int32_t ticket) {
  for (; ended_ <= ticket; ++ended_) take_in(ended_);
}

void StepReductions::take_in(std::int32_t ticket) {
  if (values_.on_host()) return;
  if (member_ != nullptr) return member_->finish(values_.device());
  auto& shares = shares_on_host_[static_cast<std::size_t>(ticket)];
  for (const auto& [value, sum] : shares)
    values_.device().copy(Device::Direction::kIn, values_.writable(value), sum.raw(), sum.bytes());
  shares.clear();
}

}  // namespace cairn
