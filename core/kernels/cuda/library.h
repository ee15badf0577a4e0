// The GPUs of this machine, by way of libcairn_cuda.so, which is loaded at the first question.
// Where there is no driver, no device or no library, there are none, and a sentence says why.
//   Thread  any.
#pragma once
#include <string>
#include <vector>

#include "core/kernels/cuda/entry.h"

namespace cairn {

// The library lies beside the program, in ../lib of it, or where CAIRN_CUDA_LIBRARY says. With
// CAIRN_CUDA_LIBRARY=none the program uses no GPU.
const cuda::OpenedDevices& gpus();

// Where NVIDIA's GPUs are on this machine's PCI bus, as "0000:1b:00.0", in that order, whether it
// has a driver or not. `folder`: where Linux lists the devices of the bus.
std::vector<std::string> gpus_on_bus(const std::string& folder = "/sys/bus/pci/devices");

// "gpu:1".
//   Errors  NotFound: there is no such device; says which there are, and why no more.
Device& gpu(int ordinal);

}  // namespace cairn
