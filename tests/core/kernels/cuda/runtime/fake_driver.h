// A driver that computes on the host, at once, and finds faults that a real one hides: work that
// reads or writes what work on another stream has not been made to wait for, reads of memory that
// nothing wrote, memory that is used after its release or never released.
//
// A copy from or to pinned memory is under way until the host has waited for it, or for an event
// behind it. What such a copy brings is not there before; and pinned memory that the host has
// changed in the meantime is found when it waits, memory that is unpinned or released in the
// meantime at once (pinned_memory.h).
//
// The order of work is stream_order.h's. Several threads may use the driver at once, as they may a
// real one; each call, with the work that it does, holds the driver's lock: they take turns.
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/driver.h"
#include "core/tensor/bfloat16.h"
#include "tests/core/kernels/cuda/fake_sums.h"
#include "tests/core/kernels/cuda/host_product.h"
#include "tests/core/kernels/cuda/host_sort.h"
#include "tests/core/kernels/cuda/runtime/fake_counts.h"
#include "tests/core/kernels/cuda/runtime/pinned_memory.h"
#include "tests/core/kernels/cuda/runtime/stream_order.h"

namespace cairn::testing {

// Thread: any; what counts(), gemms() and ranges() refer to is read when no other uses the driver.
class FakeDriver final : public SummingDriver {
 public:
  using Stream = cuda::Stream;
  using Event = cuda::Event;
  using Range = cuda::Range;

  using Counts = FakeCounts;

  explicit FakeDriver(std::string name = "gpu:0") : name_(std::move(name)) {}
  ~FakeDriver() override {
    CAIRN_CHECK(order_.leaks().empty() && pinned_.blocks() == 0, "leaked: ", order_.leaks(), "; ",
                pinned_.blocks(), " pinned blocks");
  }
  const Counts& counts() const { return counts_; }
  const std::vector<Gemm>& gemms() const { return gemms_; }  // of all products planned
  std::size_t blocks() const { return order_.blocks(); }

  std::byte* allocate(std::size_t bytes, Stream stream) override {
    const Hold hold(mutex_);
    CAIRN_CHECK(recorded() == nullptr, "memory is allocated while work is recorded");
    if (used_bytes() + bytes > limit_)
      throw ResourceExhaustedError(str(name_, " has no ", bytes, " bytes more"));
    ++counts_.allocations;
    order_.require(stream);
    const std::size_t rounded = (bytes + 255) / 256 * 256;
    auto* made = static_cast<std::byte*>(std::aligned_alloc(256, rounded));
    std::memset(made, 0xff, rounded);
    order_.add_block(made, rounded);
    return made;
  }
  // Work under way on the stream may still use it, work on other streams may not.
  void release(std::byte* memory, Stream stream) noexcept override {
    const Hold hold(mutex_);
    CAIRN_CHECK(recorded() == nullptr, "memory is released while work is recorded");
    announce(stream, {}, std::vector<Range>{{memory, 1}});
    order_.remove_block(memory);
    std::free(memory);
  }
  std::size_t used_bytes() const override {
    const Hold hold(mutex_);
    return order_.used_bytes();
  }
  std::byte* allocate_pinned(std::size_t bytes) override {
    const Hold hold(mutex_);
    ++counts_.pinned_blocks;
    const std::size_t rounded = (bytes + 63) / 64 * 64;
    auto* made = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
    pinned_.add(made, rounded, PinnedMemory::Kind::kAllocated);
    return made;
  }
  void release_pinned(std::byte* memory) noexcept override {
    unpin(memory);
    std::free(memory);
  }

  void pin(std::byte* memory, std::size_t bytes) override {
    const Hold hold(mutex_);
    if (pins_refused_ || pinned_.holds_some_of(memory, bytes))
      throw ResourceExhaustedError(str(name_, " cannot pin ", bytes, " bytes"));
    ++counts_.pins;
    pinned_.add(memory, bytes, PinnedMemory::Kind::kWhereItLies);
  }
  void unpin(std::byte* memory) noexcept override {
    const Hold hold(mutex_);
    pinned_.remove(memory);
  }
  // From now on the system pins no memory where it lies.
  void refuse_pins() { pins_refused_ = true; }
  Device::Room room() const override { return {limit_ - std::min(limit_, used_bytes()), limit_}; }

  Stream make_stream() override {
    const Hold hold(mutex_);
    return order_.make_stream();
  }
  void destroy(Stream stream) noexcept override {
    const Hold hold(mutex_);
    order_.destroy(stream);
  }
  Event make_event() override {
    const Hold hold(mutex_);
    return order_.make_event();
  }
  void destroy(Event event) noexcept override {
    const Hold hold(mutex_);
    order_.destroy(event);
  }
  void record(Event event, Stream stream) override {
    now_or_later([=, this] {
      ++counts_.events;
      ticks_[event] = counts_.events;
      order_.record(event, stream);
    });
  }
  void wait_for(Stream stream, Event event) override {
    now_or_later([=, this] { order_.wait_for(stream, event); });
  }
  // A millisecond passes from each event to the next.
  double elapsed_ms(Event first, Event last) override {
    const Hold hold(mutex_);
    return ticks_.at(last) - ticks_.at(first);
  }
  void wait(Stream stream) override { host_waits_for(stream); }
  void wait(Event event) override { host_waits_for(event); }
  // As late as CUDA may say so: when this thread has waited for it, or for what came after it.
  bool reached(Event event) override {
    const Hold hold(mutex_);
    return order_.host_has_seen(event);
  }

  void copy(Stream stream, Device::Direction direction, std::byte* to, const std::byte* from,
            std::size_t bytes) override {
    const Hold hold(mutex_);
    check_side(direction != Device::Direction::kOut, to, bytes);
    check_side(direction != Device::Direction::kIn, from, bytes);
    const Range read{from, direction == Device::Direction::kIn ? 0 : bytes};
    const Range write{to, direction == Device::Direction::kOut ? 0 : bytes};
    CAIRN_CHECK(recorded() == nullptr || direction == Device::Direction::kWithin,
                "a copy between host and device is recorded");
    announce(stream, std::vector<Range>{read}, std::vector<Range>{write});
    if (bytes == 0) return;
    if (direction != Device::Direction::kWithin) {
      counts_.bytes_copied += bytes;
      if (const auto* pinned = pinned_.find(direction == Device::Direction::kIn ? from : to)) {
        if (pinned->kind == PinnedMemory::Kind::kWhereItLies) counts_.bytes_straight += bytes;
        return pinned_.begin_copy(order_, stream, direction, to, from, bytes);
      }
    }
    if (direction == Device::Direction::kOut) ++counts_.blocking_copies;
    piece([=] { std::memcpy(to, from, bytes); });
  }
  void fill_zero(Stream stream, std::byte* to, std::size_t bytes) override {
    const Hold hold(mutex_);
    check_side(true, to, bytes);
    announce(stream, {}, std::vector<Range>{{to, bytes}});
    piece([=] { std::memset(to, 0, bytes); });
  }

  cuda::ProductRun plan_product(const cuda::ProductShape& s, Stream) override {
    const Hold hold(mutex_);
    ++counts_.products;
    CAIRN_CHECK(!s.narrow_result || rounds_to_bfloat16(s.arithmetic),
                "a product of float32 that is made in bfloat16: cuBLASLt has none");
    if (s.deterministic) ++counts_.deterministic_products;
    gemms_.push_back(s.gemm);
    return [this, s](Stream, const cuda::ProductMemory& at) { piece([=] { run_product(s, at); }); };
  }
  void narrow(Stream, std::int64_t n, const float* from, std::uint16_t* to) override {
    piece([=, this] {
      ++counts_.narrowed;
      narrow_to_bfloat16(from, static_cast<std::size_t>(n), reinterpret_cast<std::byte*>(to));
    });
  }

  std::size_t sort_scratch(std::int64_t n, int) override { return static_cast<std::size_t>(n); }
  void sort(Stream, std::int64_t n, int bits, const std::uint64_t* keys, std::uint64_t* sorted_keys,
            const std::int32_t* values, std::int32_t* sorted_values, std::byte*) override {
    piece([=, this] {
      ++counts_.sorts;
      sort_on_host(n, bits, keys, sorted_keys, values, sorted_values);
    });
  }

  std::size_t sum_scratch(std::int64_t n) override { return static_cast<std::size_t>(n); }
  void running_sums(Stream, std::int64_t n, const std::int32_t* values, std::int32_t* sums,
                    std::byte*) override {
    piece([=] { std::partial_sum(values, values + n, sums); });
  }

  std::unique_ptr<cuda::Recording> record_work(Stream,
                                               const std::function<void()>& enqueue) override {
    auto made = std::make_unique<Replay>(*this);
    record_into(&made->work);
    try {
      enqueue();
    } catch (...) {
      record_into(nullptr);
      throw;
    }
    record_into(nullptr);
    return made;
  }
  void run_on_host(const std::function<void()>& work) override { piece(work); }

  // Sets what compiles kernels from now on. An empty one, as at first: there is no compiler.
  using Compiler = std::function<std::shared_ptr<cuda::CompiledKernel>(const cuda::KernelSource&)>;
  void compile_by(Compiler compiler) { compiler_ = std::move(compiler); }
  std::shared_ptr<cuda::CompiledKernel> compile(const cuda::KernelSource& source) override {
    return compiler_ ? compiler_(source) : nullptr;
  }

  // From now on the device has so much memory.
  void limit(std::size_t bytes) { limit_ = bytes; }
  std::optional<int> busy_percent() override { return 93; }

  // From now on a profiler is attached, and sees the names of ranges, ">" before those within.
  void attach_profiler() { attached_ = true; }
  const std::vector<std::string>& ranges() const { return ranges_; }
  bool wants_names() const override { return attached_; }
  void begin_range(const char* name) override {
    const Hold hold(mutex_);
    open_.emplace_back(ranges_.size(), counts_.pieces);
    ranges_.push_back(std::string(open_.size() - 1, '>') + name);
    range_pieces_.push_back(0);
  }
  void end_range() override {
    const Hold hold(mutex_);
    const auto& [range, before] = open_.back();
    range_pieces_[range] = counts_.pieces - before;
    open_.pop_back();
  }
  // Pieces of work in the ranges whose names begin so. What is recorded or replayed is in none.
  int pieces_of(std::string_view name) const {
    int pieces = 0;
    for (std::size_t i = 0; i < ranges_.size(); ++i)
      if (std::string_view(ranges_[i]).starts_with(name)) pieces += range_pieces_[i];
    return pieces;
  }
  void forget_ranges() {
    ranges_.clear();
    range_pieces_.clear();
  }

  // Work on this block is announced row by row, by code that knows the rows: announcements of more
  // than `row_bytes` of it are left out.
  void watch_rows(const std::byte* block, std::size_t row_bytes) override {
    order_.watch_rows(block, row_bytes);
  }

  bool watches() const override { return true; }
  void announce(Stream stream, std::span<const Range> reads,
                std::span<const Range> writes) override {
    const Hold hold(mutex_);
    if (recorded() != nullptr) {
      recorded()->push_back(
          [this, stream, r = std::vector<Range>(reads.begin(), reads.end()),
           w = std::vector<Range>(writes.begin(), writes.end())] { announce(stream, r, w); });
      return;
    }
    order_.announce(stream, reads, writes);
  }

 private:
  using Hold = std::lock_guard<std::recursive_mutex>;
  struct Replay final : cuda::Recording {
    explicit Replay(FakeDriver& of) : driver(of) {}
    void replay(Stream) override {
      const Hold hold(driver.mutex_);
      ++driver.counts_.replays;
      for (const auto& one : work) one();
    }
    FakeDriver& driver;
    std::vector<std::function<void()>> work;
  };

  void now_or_later(const std::function<void()>& work) {
    const Hold hold(mutex_);
    if (recorded() != nullptr)
      recorded()->push_back(work);
    else
      work();
  }
  void piece(const std::function<void()>& work) {
    now_or_later([this, work] {
      ++counts_.pieces;
      work();
    });
  }

  template <typename Work>
  void host_waits_for(Work work) {
    const Hold hold(mutex_);
    CAIRN_CHECK(recorded() == nullptr, "the host waits for what is only recorded");
    ++counts_.waits;
    order_.host_waits_for(work);
    pinned_.end_copies(order_);
  }

  void check_side(bool device, const std::byte* at, std::size_t bytes) {
    if (bytes > 0 && device != order_.holds(at))
      throw InternalError(str("memory that is ", device ? "not the device's" : "the device's",
                              " is taken for ", device ? "the device's" : "the host's"));
  }

  using Recorded = std::vector<std::function<void()>>;
  // The work that this thread records; nullptr: it runs work at once.
  Recorded* recorded() const {
    const auto found = recorded_.find(std::this_thread::get_id());
    return found == recorded_.end() ? nullptr : found->second;
  }

  void record_into(Recorded* work) {
    const Hold hold(mutex_);
    if (work == nullptr) {
      recorded_.erase(std::this_thread::get_id());
      return;
    }
    ++counts_.recordings;
    recorded_[std::this_thread::get_id()] = work;
  }

  const std::string name_;
  mutable std::recursive_mutex mutex_;  // guards all below; work on the host may call the driver
  Counts counts_;
  std::vector<Gemm> gemms_;
  std::map<std::thread::id, Recorded*> recorded_;
  std::size_t limit_ = std::size_t{1} << 50;
  Compiler compiler_;
  bool attached_ = false;
  std::vector<std::string> ranges_;
  std::vector<int> range_pieces_;                  // beside ranges_
  std::vector<std::pair<std::size_t, int>> open_;  // ranges, and the pieces before each
  std::map<Event, int> ticks_;
  PinnedMemory pinned_;
  bool pins_refused_ = false;
  StreamOrder order_;
};

}  // namespace cairn::testing
