// The driver seam over the CUDA runtime, and the library's entry.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "core/kernels/cuda/build_id.h"
#include "core/kernels/cuda/cublas_products.h"
#include "core/kernels/cuda/cuda_error.h"
#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/entry.h"
#include "core/kernels/cuda/queue.h"
#include "core/kernels/cuda/ranges.h"
#include "core/kernels/cuda/sort.h"
#include "core/kernels/cuda/utilisation.h"

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

class CudaRecording final : public Recording {
 public:
  explicit CudaRecording(cudaGraph_t graph) {
    const cudaError_t status = cudaGraphInstantiate(&ready_, graph, 0);
    cudaGraphDestroy(graph);
    check(status, "making a recorded step ready");
  }
  ~CudaRecording() override { cudaGraphExecDestroy(ready_); }
  void replay(Stream stream) override { check(cudaGraphLaunch(ready_, stream), "a recorded step"); }

 private:
  cudaGraphExec_t ready_ = nullptr;
};

class CudaDriver final : public Driver {
 public:
  explicit CudaDriver(int ordinal)
      : ordinal_(ordinal), utilisation_(bus_of(ordinal)), products_((here(), *this)) {
    // Freed memory stays with the process, or each step that grows would ask the system anew.
    cudaMemPool_t pool = nullptr;
    check(cudaDeviceGetDefaultMemPool(&pool, ordinal), "the device's memory");
    std::uint64_t keep = ~std::uint64_t{0};
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
          "the device's memory");
  }

  std::byte* allocate(std::size_t bytes, Stream stream) override {
    here();
    void* made = nullptr;
    const cudaError_t status = cudaMallocAsync(&made, bytes, stream);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      std::size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      throw ResourceExhaustedError(str("gpu:", ordinal_, " has no ", bytes_text(bytes),
                                       " more: ", bytes_text(free), " of its ", bytes_text(total),
                                       " are free"));
    }
    check(status, "allocating");
    return static_cast<std::byte*>(made);
  }
  void release(std::byte* memory, Stream stream) noexcept override {
    cudaFreeAsync(memory, stream);
  }
  std::size_t used_bytes() const override {
    cudaMemPool_t pool = nullptr;
    check(cudaDeviceGetDefaultMemPool(&pool, ordinal_), "the device's memory");
    std::uint64_t used = 0;
    check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used),
          "the device's memory");
    return used;
  }
  std::optional<int> busy_percent() override { return utilisation_.percent(); }
  std::byte* allocate_pinned(std::size_t bytes) override {
    here();
    void* made = nullptr;
    check(cudaHostAlloc(&made, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
          "allocating pinned memory");
    return static_cast<std::byte*>(made);
  }
  void release_pinned(std::byte* memory) noexcept override { cudaFreeHost(memory); }

  Stream make_stream() override {
    here();
    Stream made = nullptr;
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream");
    return made;
  }
  void destroy(Stream stream) noexcept override {
    {
      std::lock_guard hold(mutex_);
      if (const auto found = workspaces_.find(stream); found != workspaces_.end()) {
        release(found->second, stream);
        use().remove(Use::kScratch, Products::kWorkspaceBytes);
        workspaces_.erase(found);
      }
    }
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  Event make_event() override {
    here();
    Event made = nullptr;
    check(cudaEventCreate(&made), "making an event");
    return made;
  }
  void destroy(Event event) noexcept override { cudaEventDestroy(event); }
  void record(Event event, Stream stream) override {
    check(cudaEventRecord(event, stream), "recording an event");
  }
  void wait_for(Stream stream, Event event) override {
    check(cudaStreamWaitEvent(stream, event, 0), "waiting for an event");
  }
  double elapsed_ms(Event first, Event last) override {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, first, last), "timing");
    return static_cast<double>(ms);
  }
  bool reached(Event event) override {
    const cudaError_t status = cudaEventQuery(event);
    if (status != cudaErrorNotReady) return check(status, "asking for an event"), true;
    cudaGetLastError();  // or the next launch would seem to have failed
    return false;
  }
  void wait(Event event) override { check(cudaEventSynchronize(event), "waiting for the device"); }
  void wait(Stream stream) override {
    check(cudaStreamSynchronize(stream), "waiting for the device");
  }

  void copy(Stream stream, Device::Direction direction, std::byte* to, const std::byte* from,
            std::size_t bytes) override {
    if (bytes == 0) return;
    here();
    check(cudaMemcpyAsync(to, from, bytes, kind_of(direction), stream), "copying");
  }
  void fill_zero(Stream stream, std::byte* to, std::size_t bytes) override {
    if (bytes == 0) return;
    here();
    check(cudaMemsetAsync(to, 0, bytes, stream), "filling with zeros");
  }

  ProductRun plan_product(const ProductShape& shape, Stream stream) override {
    here();
    std::byte* workspace = nullptr;
    {
      std::lock_guard hold(mutex_);
      std::byte*& of_stream = workspaces_[stream];
      if (of_stream == nullptr) {
        of_stream = allocate(Products::kWorkspaceBytes, stream);
        use().add(Use::kScratch, Products::kWorkspaceBytes);
      }
      workspace = of_stream;
    }
    return products_.plan(shape, stream, workspace);
  }

  void narrow(Stream stream, std::int64_t n, const float* from, std::uint16_t* to) override {
    here();
    cuda::narrow(stream, n, from, to);
  }

  std::size_t sort_scratch(std::int64_t n, int bits) override {
    here();
    return cuda::sort_scratch(n, bits);
  }
  void sort(Stream stream, std::int64_t n, int bits, const std::uint64_t* keys,
            std::uint64_t* sorted_keys, const std::int32_t* values, std::int32_t* sorted_values,
            std::byte* scratch) override {
    sort_pairs(stream, n, bits, keys, sorted_keys, values, sorted_values, scratch,
               cuda::sort_scratch(n, bits));
  }

  std::size_t sum_scratch(std::int64_t n) override {
    use();
    return cuda::sum_scratch(n);
  }
  void running_sums(Stream stream, std::int64_t n, const std::int32_t* values, std::int32_t* sums,
                    std::byte* scratch) override {
    cuda::running_sums(stream, n, values, sums, scratch, cuda::sum_scratch(n));
  }

  std::unique_ptr<Recording> record_work(Stream stream,
                                         const std::function<void()>& enqueue) override {
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
    return std::make_unique<CudaRecording>(graph);
  }

  bool wants_names() const override { return cuda::wants_names(); }
  void begin_range(const char* name) override { cuda::begin_range(name); }
  void end_range() override { cuda::end_range(); }

 private:
  // The device of this thread's calls.
  void here() const { check(cudaSetDevice(ordinal_), "choosing a device"); }

  const int ordinal_;
  const Utilisation utilisation_;
  Products products_;
  std::mutex mutex_;  // guards workspaces_
  std::map<Stream, std::byte*> workspaces_;
};

}  // namespace

void Queue::launched() { check(cudaPeekAtLastError(), "launching a kernel"); }

namespace {

void open_devices(Device& cpu, SpanSink& trace, OpenedDevices& opened) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    opened.absent = str("the driver shows no GPU: ", cudaGetErrorString(status));
    if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"))
      opened.absent += str(" (CUDA_VISIBLE_DEVICES is \"", visible, "\")");
    return;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp found{};
    check(cudaGetDeviceProperties(&found, i), "asking what a device is");
    const int capability = found.major * 10 + found.minor;
    if (capability < 80) {
      opened.absent +=
          str(opened.absent.empty() ? "" : "; ", found.name, " has compute capability ",
              found.major, ".", found.minor, ", and 8.0 is the least that is used");
      continue;
    }
    // They live as long as the process: streams may be in use while it ends.
    auto* const driver = new CudaDriver(i);
    opened.devices.push_back({make_device(str("gpu:", opened.devices.size()), *driver, cpu,
                                          {&trace, found.name, found.totalGlobalMem}),
                              found.name, found.totalGlobalMem, capability});
  }
}

}  // namespace
}  // namespace cairn::cuda

extern "C" {
__attribute__((visibility("default"))) const char* cairn_cuda_build_id() {
  return cairn::cuda::build_id();
}
__attribute__((visibility("default"))) void cairn_cuda_open(cairn::Device& cpu,
                                                            cairn::SpanSink& trace,
                                                            cairn::cuda::OpenedDevices& opened) {
  try {
    cairn::cuda::open_devices(cpu, trace, opened);
  } catch (const cairn::Error& error) {
    opened.absent = error.what();
  }
}
}
