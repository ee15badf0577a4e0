// HostCopies: what a run has brought from its device's memory so that the host can look at it.
//
// Copies are begun one by one and waited for together, because a wait costs more than most copies.
// A value that was copied stays at hand until clear().
//   Thread  the workspace's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/kernels/device.h"
#include "core/tensor/tensor.h"

namespace cairn {

class HostCopies {
 public:
  explicit HostCopies(Device& device) : device_(device) {}

  // Begins to copy a value, unless it was done already. What is enqueued later may overwrite the
  // device's memory.
  void begin(std::int32_t value, const std::byte* from, std::size_t bytes);
  // The same into `to`, which stays until finish() has returned, or clear().
  void begin_into(std::byte* to, const std::byte* from, std::size_t bytes);
  // The same into memory of a tensor that is kept for the update `node` until take().
  void begin_update(std::int32_t node, Tensor to, const std::byte* from);
  // Whether there is something to wait for.
  bool begun() const { return begun_; }
  // Returns when all that was begun is at hand; without a wait if that is nothing.
  //   Errors  as Device::finish_copies_out().
  void finish();

  // nullptr: it is not at hand.
  const std::byte* find(std::int32_t value) const;
  // At hand after finish().
  Tensor take(std::int32_t node);
  // Nothing is at hand, and what was begun is not wanted.
  void clear();

 private:
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 16;
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
  };
  std::byte* room(std::size_t bytes);

  Device& device_;
  std::vector<std::pair<std::int32_t, const std::byte*>> values_;
  std::size_t at_hand_ = 0;  // so many of them
  std::vector<std::pair<std::int32_t, Tensor>> updates_;
  bool begun_ = false;
  // Kept from run to run, so that a warm step allocates nothing.
  std::vector<Block> blocks_;
  std::size_t block_ = 0, used_ = 0;
};

}  // namespace cairn
