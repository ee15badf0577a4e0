#include "core/kernels/cuda/runtime/ahead.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/queue.h"

namespace cairn::cuda {

Ahead::Ahead(Driver& driver)
    : driver_(driver),
      stream_(driver.make_stream()),
      sent_(driver.make_event()),
      taken_(driver.make_event()),
      staging_(driver) {}

Ahead::~Ahead() {
  try {
    driver_.wait(stream_);
  } catch (const Error&) {
    // A device that has failed has nothing under way.
  }
  memory_ = nullptr;
  driver_.destroy(taken_);
  driver_.destroy(sent_);
  driver_.destroy(stream_);
}

void Ahead::send(std::span<const Tensor> values) {
  constexpr std::size_t kAlign = 256;
  values_.clear();
  std::size_t bytes = 0;
  for (const Tensor& value : values) {
    if (value.dtype() == DType::kString || value.bytes() == 0) continue;
    values_.push_back({value, bytes});
    bytes += (value.bytes() + kAlign - 1) / kAlign * kAlign;
  }
  if (values_.empty()) return;
  // The run under way has taken what lies there; it need not have ended.
  driver_.wait_for(stream_, taken_);
  if (!make_room(bytes)) return values_.clear();
  for (const Sent& one : values_)
    staging_.send(stream_, memory_->data() + one.offset, one.value.raw(), one.value.bytes());
  driver_.record(sent_, stream_);
}

// The old memory goes first, or both would be held at once.
bool Ahead::make_room(std::size_t bytes) {
  if (bytes <= memory_bytes_) return true;
  memory_ = nullptr;
  memory_bytes_ = 0;
  try {
    memory_ = std::make_unique<Memory>(driver_, stream_, bytes);
  } catch (const ResourceExhaustedError&) {
    return false;  // then they go when they are asked for
  }
  memory_bytes_ = bytes;
  return true;
}

bool Ahead::take(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  const auto found = std::ranges::find_if(values_, [&](const Sent& one) {
    return one.value.raw() == from && one.value.bytes() == bytes;
  });
  if (found == values_.end()) return false;
  driver_.wait_for(stream, sent_);
  driver_.copy(stream, Device::Direction::kWithin, to, memory_->data() + found->offset, bytes);
  driver_.record(taken_, stream);
  values_.erase(found);
  return true;
}

}  // namespace cairn::cuda
