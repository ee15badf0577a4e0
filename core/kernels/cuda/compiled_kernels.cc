#include "core/kernels/cuda/compiled_kernels.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/kernels/cuda/runtime/cuda_error.h"
#include "core/kernels/cuda/runtime/launch.h"
#include "core/kernels/cuda/trees/nvrtc.h"

namespace cairn::cuda {
namespace {

// Asked each time, so that one process can compare both ways.
bool is_switched_off() {
  const char* const told = std::getenv("CAIRN_NVRTC");
  return told != nullptr && std::string_view(told) == "0";
}

}  // namespace

// A kernel whose code belongs to no device yet: each device that launches it gets a copy.
class CompiledKernels::Loaded final : public CompiledKernel {
 public:
  Loaded(const std::string& code, const std::string& name) {
    check(cudaLibraryLoadData(&library_, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          name);
    const cudaError_t status = cudaLibraryGetKernel(&kernel_, library_, name.c_str());
    if (status != cudaSuccess) cudaLibraryUnload(library_);
    check(status, name);
  }
  // As the devices, kernels live as long as the process: a graph may hold them.

  void launch(Stream stream, std::int64_t blocks, const void* parameter, std::size_t) override {
    void* parameters[] = {const_cast<void*>(parameter)};
    check(cudaLaunchKernel(function(), dim3(grid_of(blocks)), dim3(kBlock), parameters, 0, stream),
          "launching a compiled kernel");
  }

  // Copies it to this thread's device now; while a step is recorded that could fail.
  void bring() const {
    cudaFuncAttributes found{};
    check(cudaFuncGetAttributes(&found, function()), "loading a compiled kernel");
  }

 private:
  const void* function() const { return reinterpret_cast<const void*>(kernel_); }

  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
};

std::shared_ptr<CompiledKernel> CompiledKernels::get(const KernelSource& source, int capability) {
  const std::lock_guard hold(mutex_);
  if (is_switched_off() || !nvrtc().found) return nullptr;
  const auto [place, is_new] = kernels_.try_emplace(str(capability, "\n", source.text));
  if (is_new) place->second = make(source, capability);
  if (place->second == nullptr) return nullptr;
  place->second->bring();
  ++figures_.trees;
  return place->second;
}

std::shared_ptr<CompiledKernels::Loaded> CompiledKernels::make(const KernelSource& source,
                                                               int capability) {
  try {
    auto made = std::make_shared<Loaded>(code_of(source, capability), source.name);
    ++figures_.kernels;
    return made;
  } catch (const InternalError& error) {
    if (figures_.failed++ == 0)
      std::fprintf(stderr, "a tree of operations is interpreted, its kernel was not made: %s\n",
                   error.what());
    return nullptr;
  }
}

std::string CompiledKernels::code_of(const KernelSource& source, int capability) {
  const std::string key = str(compiler_key(capability), "\n", source.text);
  if (auto found = folder_.find(key)) {
    ++figures_.found;
    return std::move(*found);
  }
  std::string code = compile_kernel(source, capability);
  folder_.keep(key, code);
  return code;
}

CompiledFigures CompiledKernels::figures() const {
  const std::lock_guard hold(mutex_);
  CompiledFigures figures = figures_;
  figures.compiles = !is_switched_off() && nvrtc().found;
  figures.text = is_switched_off() ? "CAIRN_NVRTC is 0" : nvrtc().text;
  return figures;
}

}  // namespace cairn::cuda
