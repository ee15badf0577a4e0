#include "core/kernels/chosen_devices.h"

#include <charconv>
#include <cstdio>

#include "core/base/error.h"

namespace cairn {
namespace {

// The N of "gpu:N"; -1: it is something else.
int ordinal_of(const std::string& choice) {
  if (!choice.starts_with("gpu:")) return -1;
  int ordinal = -1;
  const char* const end = choice.data() + choice.size();
  const auto [rest, error] = std::from_chars(choice.data() + 4, end, ordinal);
  return error == std::errc() && rest == end ? ordinal : -1;
}

std::string named(const cuda::OpenedDevice& gpu) {
  return str(gpu.device->name(), " (", gpu_text(gpu), ")");
}

ChosenDevices all_gpus(const cuda::OpenedDevices& found) {
  ChosenDevices chosen;
  for (const cuda::OpenedDevice& gpu : found.devices) {
    chosen.devices.push_back(gpu.device.get());
    chosen.text += (chosen.text.empty() ? "" : ", ") + named(gpu);
  }
  if (!found.absent.empty()) chosen.text += "; not used: " + found.absent;
  return chosen;
}

}  // namespace

std::string gpu_text(const cuda::OpenedDevice& gpu) {
  char memory[32];
  std::snprintf(memory, sizeof memory, "%.1f GiB", static_cast<double>(gpu.memory_bytes) / 0x1p30);
  return str(gpu.model, ", ", memory, ", compute capability ", gpu.compute_capability / 10, ".",
             gpu.compute_capability % 10);
}

void verify_device_choice(const std::string& choice) {
  if (choice != "auto" && choice != "cpu" && choice != "gpu" && ordinal_of(choice) < 0)
    throw InvalidArgumentError(
        str("there is no device \"", choice,
            "\" to choose: auto, cpu, gpu, or one GPU, as gpu:0, is wanted"));
}

ChosenDevices chosen_devices(const std::string& choice) {
  verify_device_choice(choice);
  if (choice == "cpu") return {{&cpu_device()}, "the CPU"};
  if (const int ordinal = ordinal_of(choice); ordinal >= 0) {
    Device& device = gpu(ordinal);
    return {{&device}, named(gpus().devices[static_cast<std::size_t>(ordinal)])};
  }
  const cuda::OpenedDevices& found = gpus();
  if (!found.devices.empty()) return all_gpus(found);
  if (choice == "gpu")
    throw NotFoundError(str("there is no GPU to compute on: ", found.absent,
                            "; choose auto to compute on the CPU where there is none"));
  return {{&cpu_device()}, "the CPU; no GPU is used: " + found.absent};
}

}  // namespace cairn
