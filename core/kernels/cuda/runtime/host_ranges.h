// HostRanges: memory of the host's that a driver has pinned where it lies, so that copies between
// it and the device need no detour over pinned blocks.
//
//   const auto registered = ranges.add(begin, bytes);  // pinned until this goes
//   HostRanges::View view(ranges);
//   view.holds(from, bytes)  // before each copy
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace cairn::cuda {

class Driver;  // core/kernels/cuda/runtime/driver.h

// Thread  any, but for a view's.
class HostRanges {
 private:
  struct Known {
    const std::byte *begin, *end;
  };
  using List = std::vector<Known>;  // in ascending order; no two overlap

 public:
  explicit HostRanges(Driver& driver) : driver_(driver) {}
  HostRanges(const HostRanges&) = delete;
  HostRanges& operator=(const HostRanges&) = delete;

  // Pins the memory, if this very range is not pinned already, until the last of what was returned
  // for it goes: before the memory does, before the driver, and when no copy is under way.
  //   Errors  ResourceExhausted: the system does not allow it, or has pinned some of it otherwise.
  //   Cost    a look at each page, and of views a copy of the list.
  std::shared_ptr<void> add(std::byte* begin, std::size_t bytes);
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  // One thread's view of the ranges. It looks at the list that all threads share only when that
  // list has changed, so that a copy takes no lock.
  //   Thread  one at a time.
  class View {
   public:
    explicit View(HostRanges& ranges) : ranges_(ranges) {}
    // Whether all of these bytes lie in one range.
    bool holds(const std::byte* begin, std::size_t bytes);

   private:
    HostRanges& ranges_;
    std::uint64_t version_ = 0;
    std::shared_ptr<const List> known_;
  };

 private:
  struct Pinned {
    std::size_t bytes = 0;
    int uses = 0;
  };
  void use(std::byte* begin, std::size_t bytes);
  void remove(std::byte* begin);
  void publish();

  Driver& driver_;
  std::mutex mutex_;  // guards pinned_ and list_
  std::map<std::byte*, Pinned> pinned_;
  std::shared_ptr<const List> list_;
  std::atomic<std::uint64_t> version_ = 0;  // of list_
  std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace cairn::cuda
