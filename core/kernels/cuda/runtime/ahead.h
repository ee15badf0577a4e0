// Ahead: values of a queue's next run that travel to the device while this run computes.
//
// They go over a stream of their own to memory of their own, so that nothing of the run under way
// has to end first. The next run copies them from there to where it wants them, within the device,
// whose memory is many times as fast as the way from the host.
//   Thread  one at a time.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/kernels/cuda/runtime/driver.h"
#include "core/kernels/cuda/runtime/staging.h"
#include "core/tensor/tensor.h"

namespace cairn::cuda {

class Memory;  // core/kernels/cuda/runtime/queue.h

class Ahead {
 public:
  explicit Ahead(Driver& driver);
  // All work of the queue has ended.
  ~Ahead();
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  // Begins to copy them. What was sent before and not taken is forgotten. If the device has no
  // memory for them, nothing is sent.
  //   Cost  one copy within the host's memory.
  void send(std::span<const Tensor> values);
  // Whether these bytes of the host's were sent. If so, enqueues a copy of them to `to`.
  bool take(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes);

 private:
  struct Sent {
    Tensor value;  // kept, so that no other value can come to lie at its address
    std::size_t offset;
  };
  bool make_room(std::size_t bytes);

  Driver& driver_;
  Stream stream_;
  Event sent_, taken_;  // recorded behind the last copy to memory_, and from it
  Staging staging_;
  std::unique_ptr<Memory> memory_;
  std::size_t memory_bytes_ = 0;
  std::vector<Sent> values_;
};

}  // namespace cairn::cuda
