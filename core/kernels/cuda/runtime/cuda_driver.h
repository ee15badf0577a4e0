// The driver seam over the CUDA runtime.
#pragma once
#include "core/kernels/cuda/runtime/driver.h"
#include "core/kernels/cuda/runtime/utilisation.h"

namespace cairn::cuda {

// All of Driver but matrix products, which raise Unimplemented: programs that only move rows need
// no cuBLASLt.
class CudaDriver : public Driver {
 public:
  // `ordinal` as CUDA counts its devices.
  explicit CudaDriver(int ordinal);

  void enter() override { here(); }
  std::byte* allocate(std::size_t bytes, Stream stream) override;
  void release(std::byte* memory, Stream stream) noexcept override;
  std::size_t used_bytes() const override;
  Device::Room room() const override;
  std::optional<int> busy_percent() override;
  std::byte* allocate_pinned(std::size_t bytes) override;
  void release_pinned(std::byte* memory) noexcept override;
  void pin(std::byte* memory, std::size_t bytes) override;
  void unpin(std::byte* memory) noexcept override;

  Stream make_stream() override;
  void destroy(Stream stream) noexcept override;
  Event make_event() override;
  void destroy(Event event) noexcept override;
  void record(Event event, Stream stream) override;
  void wait_for(Stream stream, Event event) override;
  double elapsed_ms(Event first, Event last) override;
  bool reached(Event event) override;
  void wait(Event event) override;
  void wait(Stream stream) override;

  void copy(Stream stream, Device::Direction direction, std::byte* to, const std::byte* from,
            std::size_t bytes) override;
  void fill_zero(Stream stream, std::byte* to, std::size_t bytes) override;

  ProductRun plan_product(const ProductShape& shape, Stream stream) override;
  void narrow(Stream stream, std::int64_t n, const float* from, std::uint16_t* to) override;

  std::size_t sort_scratch(std::int64_t n, int bits) override;
  void sort(Stream stream, std::int64_t n, int bits, const std::uint64_t* keys,
            std::uint64_t* sorted_keys, const std::int32_t* values, std::int32_t* sorted_values,
            std::byte* scratch) override;
  std::size_t sum_scratch(std::int64_t n) override;
  void running_sums(Stream stream, std::int64_t n, const std::int32_t* values, std::int32_t* sums,
                    std::byte* scratch) override;

  std::unique_ptr<Recording> record_work(Stream stream,
                                         const std::function<void()>& enqueue) override;

  bool wants_names() const override;
  void begin_range(const char* name) override;
  void end_range() override;

 protected:
  // Chooses the device for this thread's calls.
  void here() const;

 private:
  const int ordinal_;
  const Utilisation utilisation_;
};

}  // namespace cairn::cuda
