// A CUDA device as core/kernels/device.h has it. What one workspace does on it is a queue of its
// own, so that the device hands each workspace a device with a queue.
#pragma once
#include <memory>
#include <string>

#include "core/kernels/cuda/runtime/driver.h"
#include "core/kernels/device.h"

namespace cairn {
class SpanSink;  // core/disk/trace.h
}

namespace cairn::cuda {

struct DeviceOptions {
  SpanSink* trace = nullptr;  // gets a span of each operation, if it wants them; null: none
  std::string model;          // for Device::figures()
  std::size_t memory_bytes = 0;
};

// `name` is "gpu:0" and so on; `cpu` computes operations on strings. Everything outlives the
// device.
//   Thread  any.
std::unique_ptr<Device> make_device(std::string name, Driver& driver, Device& cpu,
                                    DeviceOptions options = {});

}  // namespace cairn::cuda
