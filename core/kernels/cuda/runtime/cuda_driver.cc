#include "core/kernels/cuda/runtime/cuda_driver.h"

#include <cuda_runtime_api.h>

#include "core/kernels/cuda/runtime/cuda_error.h"
#include "core/kernels/cuda/runtime/queue.h"
#include "core/kernels/cuda/runtime/ranges.h"
#include "core/kernels/cuda/runtime/recording.h"
#include "core/kernels/cuda/runtime/sort.h"

namespace cairn::cuda {
namespace {

cudaMemcpyKind kind_of(Device::Direction direction) {
  switch (direction) {
    case Device::Direction::kIn: return cudaMemcpyHostToDevice;
    case Device::Direction::kOut: return cudaMemcpyDeviceToHost;
    case Device::Direction::kWithin: break;
  }
  return cudaMemcpyDeviceToDevice;
}

// "00000000:1B:00.0"; empty: CUDA does not say.
std::string bus_of(int ordinal) {
  char bus[32] = "";
  if (cudaDeviceGetPCIBusId(bus, sizeof bus, ordinal) != cudaSuccess) cudaGetLastError();
  return bus;
}

}  // namespace

CudaDriver::CudaDriver(int ordinal) : ordinal_(ordinal), utilisation_(bus_of(ordinal)) {
  here();
  // Freed memory stays with the process, or each step that grows would ask the system anew.
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, ordinal), "the device's memory");
  std::uint64_t keep = ~std::uint64_t{0};
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
        "the device's memory");
}

std::byte* CudaDriver::allocate(std::size_t bytes, Stream stream) {
  here();
  void* made = nullptr;
  const cudaError_t status = cudaMallocAsync(&made, bytes, stream);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw ResourceExhaustedError(str("gpu:", ordinal_, " has no ", bytes_text(bytes), " more: ",
                                     bytes_text(free), " of its ", bytes_text(total), " are free"));
  }
  check(status, "allocating");
  return static_cast<std::byte*>(made);
}

void CudaDriver::release(std::byte* memory, Stream stream) noexcept {
  cudaFreeAsync(memory, stream);
}

std::size_t CudaDriver::used_bytes() const {
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, ordinal_), "the device's memory");
  std::uint64_t used = 0;
  check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), "the device's memory");
  return used;
}

// The pool's own memory that is not in use is as good as free.
Device::Room CudaDriver::room() const {
  here();
  Device::Room room;
  check(cudaMemGetInfo(&room.free, &room.total), "the device's memory");
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, ordinal_), "the device's memory");
  std::uint64_t reserved = 0;
  check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved),
        "the device's memory");
  const std::size_t used = used_bytes();
  if (reserved > used) room.free += reserved - used;
  return room;
}

std::optional<int> CudaDriver::busy_percent() { return utilisation_.percent(); }
std::byte* CudaDriver::allocate_pinned(std::size_t bytes) {
  here();
  void* made = nullptr;
  check(cudaHostAlloc(&made, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
        "allocating pinned memory");
  return static_cast<std::byte*>(made);
}

void CudaDriver::release_pinned(std::byte* memory) noexcept { cudaFreeHost(memory); }

// Kernels use the host's addresses, which not every system allows for memory that is pinned late.
void CudaDriver::pin(std::byte* memory, std::size_t bytes) {
  here();
  cudaError_t status =
      cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
  if (status == cudaSuccess) {
    void* seen = nullptr;
    status = cudaHostGetDevicePointer(&seen, memory, 0);
    if (status == cudaSuccess && seen == memory) return;
    cudaHostUnregister(memory);
  }
  cudaGetLastError();  // or the next launch would seem to have failed
  throw ResourceExhaustedError(
      str(bytes_text(bytes), " of the host's memory cannot be pinned for gpu:", ordinal_, ": ",
          status == cudaSuccess ? "the GPU would see it at another address"
                                : cudaGetErrorString(status)));
}

void CudaDriver::unpin(std::byte* memory) noexcept { cudaHostUnregister(memory); }

Stream CudaDriver::make_stream() {
  here();
  Stream made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream");
  return made;
}

void CudaDriver::destroy(Stream stream) noexcept {
  cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
}

Event CudaDriver::make_event() {
  here();
  Event made = nullptr;
  check(cudaEventCreate(&made), "making an event");
  return made;
}

void CudaDriver::destroy(Event event) noexcept { cudaEventDestroy(event); }
void CudaDriver::record(Event event, Stream stream) {
  check(cudaEventRecord(event, stream), "recording an event");
}

void CudaDriver::wait_for(Stream stream, Event event) {
  check(cudaStreamWaitEvent(stream, event, 0), "waiting for an event");
}

double CudaDriver::elapsed_ms(Event first, Event last) {
  float ms = 0;
  check(cudaEventElapsedTime(&ms, first, last), "timing");
  return static_cast<double>(ms);
}

bool CudaDriver::reached(Event event) {
  const cudaError_t status = cudaEventQuery(event);
  if (status != cudaErrorNotReady) return check(status, "asking for an event"), true;
  cudaGetLastError();  // or the next launch would seem to have failed
  return false;
}
void CudaDriver::wait(Event event) { check(cudaEventSynchronize(event), "waiting for the device"); }
void CudaDriver::wait(Stream stream) {
  check(cudaStreamSynchronize(stream), "waiting for the device");
}

void CudaDriver::copy(Stream stream, Device::Direction direction, std::byte* to,
                      const std::byte* from, std::size_t bytes) {
  if (bytes == 0) return;
  here();
  check(cudaMemcpyAsync(to, from, bytes, kind_of(direction), stream), "copying");
}

void CudaDriver::fill_zero(Stream stream, std::byte* to, std::size_t bytes) {
  if (bytes == 0) return;
  here();
  check(cudaMemsetAsync(to, 0, bytes, stream), "filling with zeros");
}

ProductRun CudaDriver::plan_product(const ProductShape&, Stream) {
  throw UnimplementedError("matrix products without cuBLASLt");
}

void CudaDriver::narrow(Stream stream, std::int64_t n, const float* from, std::uint16_t* to) {
  here();
  cuda::narrow(stream, n, from, to);
}

std::size_t CudaDriver::sort_scratch(std::int64_t n, int bits) {
  here();
  return cuda::sort_scratch(n, bits);
}

void CudaDriver::sort(Stream stream, std::int64_t n, int bits, const std::uint64_t* keys,
                      std::uint64_t* sorted_keys, const std::int32_t* values,
                      std::int32_t* sorted_values, std::byte* scratch) {
  sort_pairs(stream, n, bits, keys, sorted_keys, values, sorted_values, scratch,
             cuda::sort_scratch(n, bits));
}

std::size_t CudaDriver::sum_scratch(std::int64_t n) {
  here();
  return cuda::sum_scratch(n);
}

void CudaDriver::running_sums(Stream stream, std::int64_t n, const std::int32_t* values,
                              std::int32_t* sums, std::byte* scratch) {
  cuda::running_sums(stream, n, values, sums, scratch, cuda::sum_scratch(n));
}

std::unique_ptr<Recording> CudaDriver::record_work(Stream stream,
                                                   const std::function<void()>& enqueue) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a step");
  cudaGraph_t graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "recording a step");
  return make_recording(graph);
}

bool CudaDriver::wants_names() const { return cuda::wants_names(); }
void CudaDriver::begin_range(const char* name) { cuda::begin_range(name); }
void CudaDriver::end_range() { cuda::end_range(); }

void CudaDriver::here() const { check(cudaSetDevice(ordinal_), "choosing a device"); }

void Queue::launched() { check(cudaPeekAtLastError(), "launching a kernel"); }

}  // namespace cairn::cuda
