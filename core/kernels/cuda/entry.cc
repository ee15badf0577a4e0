// The library's entry: a device for each GPU, with matrix products by cuBLASLt.
#include "core/kernels/cuda/entry.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "core/kernels/cuda/build_id.h"
#include "core/kernels/cuda/compiled_kernels.h"
#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/ops/cublas_products.h"
#include "core/kernels/cuda/runtime/cuda_driver.h"
#include "core/kernels/cuda/runtime/cuda_error.h"
#include "core/kernels/cuda/runtime/nccl.h"

namespace cairn::cuda {
namespace {

class WholeDriver final : public CudaDriver {
 public:
  // `capability` is 90 for 9.0.
  WholeDriver(int ordinal, int capability, std::string chip, CompiledKernels& kernels)
      : CudaDriver(ordinal),
        ordinal_(ordinal),
        capability_(capability),
        chip_(std::move(chip)),
        kernels_(kernels),
        products_(*this) {}

  DeviceSumMeans sum_means() override { return nccl_means(chip_); }
  std::string new_group_id() override { return new_nccl_id(); }
  SumGroup join(std::span<Driver* const> drivers, const DeviceGroupPlace& place) override {
    std::vector<int> ordinals;
    for (Driver* const each : drivers) {
      auto* const own = dynamic_cast<WholeDriver*>(each);
      if (own == nullptr) return {{}, "devices of different kinds"};
      ordinals.push_back(own->ordinal_);
    }
    return make_nccl_group(ordinals, place,
                           [](int ordinal) { check(cudaSetDevice(ordinal), "choosing a device"); });
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
    CudaDriver::destroy(stream);
  }
  using CudaDriver::destroy;

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

  std::shared_ptr<CompiledKernel> compile(const KernelSource& source) override {
    here();
    return kernels_.get(source, capability_);
  }

 private:
  const int ordinal_;  // as CUDA counts its devices
  const int capability_;
  const std::string chip_;  // its UUID
  CompiledKernels& kernels_;
  Products products_;
  std::mutex mutex_;  // guards workspaces_
  std::map<Stream, std::byte*> workspaces_;
};

void open_devices(Device& cpu, SpanSink& trace, OpenedDevices& opened) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    opened.absent = str("the driver shows no GPU: ", cudaGetErrorString(status));
    if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"))
      opened.absent += str(" (CUDA_VISIBLE_DEVICES is \"", visible, "\")");
    return;
  }
  connect_nccl_at_once();
  // They live as long as the process: streams may be in use while it ends.
  auto* const kernels = new CompiledKernels(KernelFolder::of_environment());
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
    auto* const driver =
        new WholeDriver(i, capability, {found.uuid.bytes, sizeof found.uuid.bytes}, *kernels);
    opened.devices.push_back({make_device(str("gpu:", opened.devices.size()), *driver, cpu,
                                          {&trace, found.name, found.totalGlobalMem}),
                              found.name, found.totalGlobalMem, capability});
  }
  if (opened.devices.empty()) return;
  opened.sums = [] { return SumFigures{nccl().found, nccl().text}; };
  opened.compiled = [kernels] { return kernels->figures(); };
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
