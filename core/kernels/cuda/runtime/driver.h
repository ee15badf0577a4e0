// Driver: what the device code asks of CUDA, so that a fake can answer in its place.
//
// All work is ordered by streams: what is enqueued on one stream runs in that order, and streams
// wait for each other by events. Nothing here blocks, except wait(), allocations, and a copy to or
// from host memory that is not pinned. A copy of pinned memory is under way until the host has
// waited for it: until then the memory must not be written to, nor what is copied there be read.
//   Errors  every call may raise ResourceExhausted (no memory) or Internal (the device failed; the
//           message names the call and CUDA's reason). After a device has failed every later call
//           fails as well: the process has to be started again.
//   Thread  any; one stream is used by one thread at a time.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/arithmetic.h"
#include "core/base/error.h"
#include "core/kernels/cuda/runtime/host_ranges.h"
#include "core/kernels/cuda/runtime/memory_use.h"
#include "core/kernels/device.h"
#include "core/kernels/device_group.h"
#include "core/kernels/gemm.h"

// CUDA's own types, in the namespace in which CUDA declares them, so that files that include its
// headers and files that do not agree on them.
struct CUstream_st;
struct CUevent_st;

namespace cairn::cuda {

using Stream = CUstream_st*;
using Event = CUevent_st*;

// A range of device memory.
struct Range {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

// c[i] = a[i] x b[i] for each of `batch` products, row-major, one behind another.
struct ProductShape {
  Gemm gemm;
  std::int64_t batch = 1;
  Arithmetic arithmetic = Arithmetic::kFloat32;
  // Added to each row of c, and applied to the sum, before c is written.
  bool bias = false, relu = false;
  // c is bfloat16, rounded once behind bias and relu, and so is `bias`. Only where the arithmetic
  // rounds the factors too.
  bool narrow_result = false;
  // The algorithm is a function of the shape, the device and its library. Otherwise it is the
  // fastest, which may be another one in the next process, and sum in another order.
  bool deterministic = false;
};

// Where a product's matrices lie. The factors are float32, or bfloat16 where the arithmetic rounds
// to it; `bias` is [n]. What the shape does not ask for is null.
struct ProductMemory {
  const std::byte *a = nullptr, *b = nullptr, *bias = nullptr;
  std::byte* c = nullptr;
};

// A product prepared for one shape. Thread: one at a time.
using ProductRun = std::function<void(Stream stream, const ProductMemory& at)>;

// A sequence of work that was enqueued once and is repeated as a whole.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay(Stream stream) = 0;
};

// A kernel as CUDA C++ source, which defines `extern "C" __global__ void NAME` with one parameter.
// It may include what kernel_headers.h has.
struct KernelSource {
  std::string name, text;
};

// A kernel that was compiled at run time.   Thread  any.
class CompiledKernel {
 public:
  virtual ~CompiledKernel() = default;
  // Enqueues it, with blocks of kBlock threads each, which may be fewer than `blocks`: threads walk
  // in steps of how many there are. The parameter's bytes are copied.
  virtual void launch(Stream stream, std::int64_t blocks, const void* parameter,
                      std::size_t bytes) = 0;
};

// One device of a group of devices that sum values, as core/kernels/device_group.h has it.
//   Errors  Aborted: the group was aborted.
//   Thread  one at a time; abort() any.
class SumMember {
 public:
  virtual ~SumMember() = default;
  // Enqueues the member's part of the next call, the sums one after another. The owners of the
  // values stay the caller's.
  virtual void all_reduce(Stream stream, std::span<const DeviceSum> sums) = 0;
  // To be called once all members have enqueued the next call, in the order of the calls.
  //   Errors  Internal: a device or a link failed.
  virtual void all_have_begun() = 0;
  // Checks a group that spans processes. Call it after a stream has ended the group's calls.
  //   Errors  Internal: a device or a link failed.
  virtual void require_well() = 0;
  // Streams of this process's members go on, whatever they were waiting for in the group.
  virtual void abort() noexcept = 0;
};

struct SumGroup {
  std::vector<std::unique_ptr<SumMember>> members;  // by driver; empty: there is no such group
  std::string text;                                 // as DeviceGroup's
};

class Driver {
 public:
  virtual ~Driver() = default;

  // Makes this device the one on which this thread launches from now on. A thread may go from one
  // device to another between steps.
  virtual void enter() {}

  // A group of the devices of different drivers of this one's kind, which is the first one here.
  // Returns when all are connected, those of other processes too.
  virtual SumGroup join(std::span<Driver* const> /*drivers*/, const DeviceGroupPlace& /*place*/) {
    return {{}, sum_means().why_not};
  }
  // As Device has them.
  virtual DeviceSumMeans sum_means() {
    return {.by = {}, .why_not = "this driver cannot sum values of several devices", .chip = {}};
  }
  virtual std::string new_group_id() { throw UnimplementedError(sum_means().why_not); }

  // Memory that may be used on `stream` at once, and elsewhere after an event; 256-byte aligned.
  // Released memory is used again by later allocations, in the order of the stream.
  virtual std::byte* allocate(std::size_t bytes, Stream stream) = 0;
  virtual void release(std::byte* memory, Stream stream) noexcept = 0;
  virtual std::size_t used_bytes() const = 0;
  virtual Device::Room room() const = 0;
  // By what it is for; kept by those who allocate.
  MemoryUse& use() { return use_; }
  // Different rows of batches that caches of tables had already, and that came in; kept by those.
  struct CachedLookups {
    std::atomic<std::uint64_t> found{0}, read{0};
  };
  CachedLookups& cached_lookups() { return cached_lookups_; }
  // The host's memory that is pinned for copies; each range stays so while add()'s result is kept.
  HostRanges& host_ranges() { return host_ranges_; }
  // How busy all processes kept the device in the last moments; nullopt: the driver does not say.
  virtual std::optional<int> busy_percent() { return std::nullopt; }
  // Host memory that the device reads and writes at its address, and copies without a detour.
  virtual std::byte* allocate_pinned(std::size_t bytes) = 0;
  virtual void release_pinned(std::byte* memory) noexcept = 0;
  // Pins host memory where it lies, until unpin(), which is given its beginning. No page of it may
  // hold other memory that is pinned so.
  //   Errors  ResourceExhausted: the system does not allow it.
  //   Cost    a look at each page.
  virtual void pin(std::byte* memory, std::size_t bytes) = 0;
  virtual void unpin(std::byte* memory) noexcept = 0;

  virtual Stream make_stream() = 0;
  virtual void destroy(Stream stream) noexcept = 0;
  virtual Event make_event() = 0;
  virtual void destroy(Event event) noexcept = 0;
  virtual void record(Event event, Stream stream) = 0;
  virtual void wait_for(Stream stream, Event event) = 0;
  // Between two events that have been reached, in the order of the stream.
  virtual double elapsed_ms(Event first, Event last) = 0;
  // Whether all work before it has ended; wait() returns when it has.
  virtual bool reached(Event event) = 0;
  virtual void wait(Event event) = 0;
  // Returns when all work of the stream has ended.
  virtual void wait(Stream stream) = 0;

  virtual void copy(Stream stream, Device::Direction direction, std::byte* to,
                    const std::byte* from, std::size_t bytes) = 0;
  virtual void fill_zero(Stream stream, std::byte* to, std::size_t bytes) = 0;

  virtual ProductRun plan_product(const ProductShape& shape, Stream stream) = 0;
  // to[i] = from[i] rounded to bfloat16.
  virtual void narrow(Stream stream, std::int64_t n, const float* from, std::uint16_t* to) = 0;

  // Sorts `n` keys below 2^bits in ascending order and moves the values along; equal keys keep
  // their order. `scratch` has at least sort_scratch(n) bytes. In and out do not overlap.
  virtual std::size_t sort_scratch(std::int64_t n, int bits) = 0;
  virtual void sort(Stream stream, std::int64_t n, int bits, const std::uint64_t* keys,
                    std::uint64_t* sorted_keys, const std::int32_t* values,
                    std::int32_t* sorted_values, std::byte* scratch) = 0;

  // sums[i] = values[0] + ... + values[i], of `n` numbers below 2^31. `scratch` has at least
  // sum_scratch(n) bytes. In and out do not overlap.
  virtual std::size_t sum_scratch(std::int64_t n) = 0;
  virtual void running_sums(Stream stream, std::int64_t n, const std::int32_t* values,
                            std::int32_t* sums, std::byte* scratch) = 0;

  // nullptr: this driver has no compiler, or it failed; the caller has another way.
  //   Errors  as all calls: of the device, which does not take what was compiled for it.
  //   Cost    tenths of a second to compile it; milliseconds if it is in the cache.
  virtual std::shared_ptr<CompiledKernel> compile(const KernelSource& /*source*/) {
    return nullptr;
  }

  // Records the work that `enqueue` puts on the stream, instead of running it.
  virtual std::unique_ptr<Recording> record_work(Stream stream,
                                                 const std::function<void()>& enqueue) = 0;

  // For a profiler: what this thread enqueues up to end_range() is shown under a name. Ranges nest.
  // Not to be called where no names are wanted.
  virtual bool wants_names() const { return false; }
  virtual void begin_range(const char* /*name*/) {}
  virtual void end_range() {}

  // Runs the loops of kernels that are compiled for the host. A fake that records keeps them.
  virtual void run_on_host(const std::function<void()>& work) { work(); }

  // Announces what the next piece of work reads and writes. A fake checks the order; the real
  // driver has no use for it, and is not asked to look.
  virtual bool watches() const { return false; }
  virtual void announce(Stream, std::span<const Range> /*reads*/,
                        std::span<const Range> /*writes*/) {}
  // Announcements of more than one row of this block are ignored from now on.
  virtual void watch_rows(const std::byte* /*block*/, std::size_t /*row_bytes*/) {}

 private:
  MemoryUse use_;
  HostRanges host_ranges_{*this};
  CachedLookups cached_lookups_;
};

}  // namespace cairn::cuda
