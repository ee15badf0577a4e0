// The library is found at run time, since machines without a driver lack it. What is declared of it
// here is the part of its interface that has been the same since its version 2.
//   Source  NVIDIA Management Library, API reference: nvmlInit_v2,
//           nvmlDeviceGetHandleByPciBusId_v2, nvmlDeviceGetUtilizationRates; 0 is success.
#include "core/kernels/cuda/runtime/utilisation.h"

#include <dlfcn.h>

namespace cairn::cuda {

Utilisation::Utilisation(const std::string& bus) {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  const auto find = reinterpret_cast<int (*)(const char*, Handle*)>(
      dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
  const auto ask = reinterpret_cast<Ask>(dlsym(library, "nvmlDeviceGetUtilizationRates"));
  if (init == nullptr || find == nullptr || ask == nullptr) return;
  if (init() == 0 && find(bus.c_str(), &handle_) == 0) ask_ = ask;
}

std::optional<int> Utilisation::percent() const {
  Rates rates;
  if (ask_ == nullptr || ask_(handle_, &rates) != 0) return std::nullopt;
  return static_cast<int>(rates.gpu);
}

}  // namespace cairn::cuda
