// CompiledKernels: the kernels of this process that were compiled while it runs, for all its
// devices. Each is compiled once, or read from a folder where a process before left it.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/kernels/cuda/entry.h"
#include "core/kernels/cuda/runtime/driver.h"
#include "core/kernels/cuda/trees/kernel_folder.h"

namespace cairn::cuda {

class CompiledKernels {
 public:
  explicit CompiledKernels(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // For the device that this thread has chosen, of that compute capability. nullptr: there is no
  // NVRTC, or CAIRN_NVRTC is 0, or the kernel could not be made, which stderr reports once.
  //   Errors  Internal: the device failed.
  //   Thread  any; one compiles at a time.
  std::shared_ptr<CompiledKernel> get(const KernelSource& source, int capability);

  CompiledFigures figures() const;

 private:
  class Loaded;
  std::shared_ptr<Loaded> make(const KernelSource& source, int capability);
  std::string code_of(const KernelSource& source, int capability);

  const KernelFolder folder_;
  mutable std::mutex mutex_;                                          // guards all below
  std::unordered_map<std::string, std::shared_ptr<Loaded>> kernels_;  // null: it failed
  CompiledFigures figures_;
};

}  // namespace cairn::cuda
