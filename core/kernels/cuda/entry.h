// How a process and libcairn_cuda.so meet: the process loads the library at run time and calls
// these. Both must be of one build, so build_id() is compared before anything else of the library
// is called.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/kernels/device.h"

namespace cairn {
class SpanSink;  // core/disk/trace.h
}

namespace cairn::cuda {

struct OpenedDevice {
  std::unique_ptr<Device> device;  // "gpu:0" and so on
  std::string model;               // "NVIDIA H100 80GB HBM3"
  std::size_t memory_bytes = 0;
  int compute_capability = 0;  // 90 for 9.0
};

// The kernels of elementwise trees that this process has compiled so far.
struct CompiledFigures {
  bool compiles = false;  // else trees are interpreted
  std::string text;       // "by NVRTC 13.0", or why there are none
  int trees = 0;          // that were given a kernel
  int kernels = 0;        // different ones of those
  int found = 0;          // of the kernels: not compiled but found on disk
  int failed = 0;         // could not be made
};

// Where the values of GPUs are summed.
struct SumFigures {
  bool on_devices = false;  // else in the host's memory
  std::string text;         // "by NCCL 2.28.3", or why GPUs cannot sum values where they lie
};

// The devices that open_devices() found. `absent` says in words why there is none, or none more.
struct OpenedDevices {
  std::vector<OpenedDevice> devices;
  std::string absent;
  // GPUs of several processes need NCCL 2.14 to sum values where they lie. Empty: there are no
  // devices. The first call loads NCCL.
  std::function<SumFigures()> sums;
  // Empty: there are no devices that compile kernels. The first call loads the compiler.
  std::function<CompiledFigures()> compiled;
};

}  // namespace cairn::cuda

extern "C" {
// Equal in two builds of the same sources by the same compiler.
using CairnCudaBuildId = const char* (*)();
// Opens every device that can be used; the devices live as long as the process. `cpu`, which
// computes what has to do with strings, and `trace` outlive them.
using CairnCudaOpen = void (*)(cairn::Device& cpu, cairn::SpanSink& trace,
                               cairn::cuda::OpenedDevices& opened);
}
