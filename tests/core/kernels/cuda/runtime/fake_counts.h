// The counts of a fake driver's calls.
#pragma once
#include <cstddef>

namespace cairn::testing {

struct FakeCounts {
  int allocations = 0, waits = 0, products = 0, deterministic_products = 0, narrowed = 0, sorts = 0,
      recordings = 0, replays = 0, events = 0;
  // Copies to memory that is not pinned, for each of which CUDA holds the host up.
  int blocking_copies = 0;
  int pinned_blocks = 0;         // allocated so far
  int pins = 0;                  // of memory where it lies
  std::size_t bytes_copied = 0;  // between the host and the device
  // The copied bytes from or to memory that is pinned where it lies; the rest goes through blocks.
  std::size_t bytes_straight = 0;
  // The work that a device is given: kernels, products, copies within its memory and so on, each
  // counted as often as it runs.
  int pieces = 0;
};

}  // namespace cairn::testing
