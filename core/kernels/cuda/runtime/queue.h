// Queue: the work that one workspace has a device do, in order.
//   Thread  one at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/kernels/cuda/runtime/driver.h"
#include "core/kernels/cuda/runtime/faults.h"
#include "core/kernels/cuda/runtime/matrix_copy.h"
#include "core/kernels/cuda/runtime/staging.h"

namespace cairn::cuda {

// Memory of a device, released in the order of the queue that it was made for.
class Memory {
 public:
  //   Errors  ResourceExhausted: there is not so much; says what there is goes into.
  Memory(Driver& driver, Stream stream, std::size_t bytes, Use use = Use::kScratch);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  Driver& driver_;
  Stream stream_;
  const std::size_t bytes_;
  const Use use_;
  std::byte* data_;
};

class Ahead;

class Queue {
 public:
  // `cpu` computes what has to do with strings. Both outlive the queue.
  Queue(Driver& driver, Device& cpu);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Driver& driver() const { return driver_; }
  Device& cpu() const { return cpu_; }
  Stream stream() const { return current_; }

  // While one lives, work goes to a stream beside the queue's own: behind all that was enqueued
  // before it, and at the same time as what other sides get. join() puts later work behind theirs.
  class Side {
   public:
    explicit Side(Queue& queue) : queue_(queue) { queue_.current_ = queue_.fork(); }
    ~Side() { queue_.current_ = queue_.stream_; }
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;

   private:
    Queue& queue_;
  };
  void join();

  // By default scratch that a prepared kernel keeps.
  std::shared_ptr<Memory> memory(std::size_t bytes, Use use = Use::kScratch) {
    return std::make_shared<Memory>(driver_, stream_, bytes, use);
  }
  // At least `bytes` of scratch memory that several kernels may share, since they run one after
  // another. A run must not expect anything of what it finds there. Not for work on a Side.
  std::shared_ptr<Memory> shared_scratch(std::size_t bytes);

  // A place where a kernel may find a fault; the kernel keeps it for as long as it lives.
  // `describe` says what the fault is, given the position and the value that the kernel reported.
  using Describe = std::function<std::string(std::int64_t position, std::int64_t value)>;
  std::shared_ptr<const FaultSite> add_fault(Describe describe);

  // The matrix at `from` as a product takes it: a copy that is still good, or one that is made now,
  // in `scratch`, which is allocated at its first use. So what several products read is copied
  // once.
  const std::byte* copied(const std::byte* from, const MatrixCopy& how,
                          std::shared_ptr<Memory>& scratch);
  // These bytes are written: copies of what lay there are no longer good. Whatever writes to memory
  // that products may read calls this.
  void written(const std::byte* begin, std::size_t bytes);
  // Other work, such as a replay, has used the memory.
  void forget_copies() { copies_.clear(); }

  // Copies between the host and the device, in the order of the queue, through its pinned memory.
  // The bytes at `from` may change when copy_in() returns. A copy out is only begun: `to` has the
  // bytes after wait(), and must stay until then or until drop_copies_out().
  //   `keeper`  keeps the host's bytes there, and unchanged. If they are pinned (host_ranges.h),
  //             they are copied straight from where they lie, or to there, and the queue has a
  //             share of the keeper until it knows that the copy has been made.
  void copy_in(std::byte* to, const std::byte* from, std::size_t bytes,
               const std::shared_ptr<const void>& keeper = nullptr);
  void begin_copy_out(std::byte* to, const std::byte* from, std::size_t bytes,
                      const std::shared_ptr<const void>& keeper = nullptr);
  void drop_copies_out() noexcept { staging_.drop(); }
  // Values for which copy_in() will be called later: see ahead.h.
  void send_ahead(std::span<const Tensor> values);

  // Waits until all work so far has ended.
  //   Errors  InvalidArgument: a kernel found a fault. Copies out that were begun are dropped.
  void wait();

  // Call after each launch.
  //   Errors  Internal: CUDA refused it.
  void launched();

 private:
  static constexpr std::size_t kSides = 8;
  struct SideStream {
    Stream stream;
    Event done;
    bool used = false;
  };
  // So many keepers at most: then the queue waits. A step that gives something to the host waits
  // for its copies anyway, long before.
  static constexpr std::size_t kKeptMax = 1024;
  Stream fork();
  bool go_straight(const std::byte* host, std::size_t bytes,
                   const std::shared_ptr<const void>& keeper);
  void raise_fault();

  struct Copy {
    Range source;
    MatrixCopy how;
    std::shared_ptr<Memory> memory;  // the kernel that it was made for may be gone
  };

  Driver& driver_;
  Device& cpu_;
  Stream stream_, current_;
  Event forked_ = nullptr;
  std::vector<SideStream> sides_;  // made when they are first used
  std::size_t next_side_ = 0;
  Staging staging_;
  HostRanges::View pinned_;
  std::vector<std::shared_ptr<const void>> kept_;  // of copies that may be under way
  std::unique_ptr<Ahead> ahead_;                   // made when it is first used
  std::vector<Copy> copies_;
  std::weak_ptr<Memory> shared_scratch_;
  std::shared_ptr<Memory> record_;  // one FaultRecord
  int* any_fault_;                  // pinned
  std::int32_t sites_ = 0;          // given out so far
  std::unordered_map<std::int32_t, Describe> faults_;
};

}  // namespace cairn::cuda
