// How busy a GPU is, by the driver's own library, NVML.
#pragma once
#include <optional>
#include <string>

namespace cairn::cuda {

// Thread: any. Cost: a question is some tens of microseconds; nothing waits for the device.
class Utilisation {
 public:
  // Loads libnvidia-ml.so.1 if it is there; it stays for as long as the process. `bus`: the
  // device's place on the PCI bus, as CUDA gives it.
  explicit Utilisation(const std::string& bus);
  // The utilisation by all processes in the driver's last sample, which is some tenths of a second
  // long. nullopt: there is no such library, or it does not say.
  std::optional<int> percent() const;

 private:
  struct Rates {
    unsigned int gpu = 0, memory = 0;
  };
  using Handle = struct nvmlDevice_st*;
  using Ask = int (*)(Handle, Rates*);
  Handle handle_ = nullptr;
  Ask ask_ = nullptr;
};

}  // namespace cairn::cuda
