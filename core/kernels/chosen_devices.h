// On which devices a process computes, as its user chose: --device of cairn-worker, a job's
// cluster.device.
//   Thread  any.
#pragma once
#include <string>
#include <vector>

#include "core/kernels/cuda/library.h"
#include "core/kernels/device.h"

namespace cairn {

struct ChosenDevices {
  std::vector<Device*> devices;  // one at least
  // "gpu:0 (NVIDIA H100 80GB HBM3, 79.6 GiB, compute capability 9.0)", "the CPU", or, where it was
  // not asked for, "the CPU; no GPU is used: this machine has no NVIDIA driver ...".
  std::string text;
};

// "auto": every GPU that can be used, or the CPU where there is none. "cpu". "gpu": every GPU that
// can be used. "gpu:1": that one. Looks for GPUs unless the choice is "cpu".
//   Errors  InvalidArgument: another choice. NotFound: there is no GPU, or not that one; says why.
ChosenDevices chosen_devices(const std::string& choice);
// Whether it is a choice at all, of this machine or another: looks for no GPU.
//   Errors  InvalidArgument: it is none.
void verify_device_choice(const std::string& choice);

// "NVIDIA H100 80GB HBM3, 79.6 GiB, compute capability 9.0".
std::string gpu_text(const cuda::OpenedDevice& gpu);

}  // namespace cairn
