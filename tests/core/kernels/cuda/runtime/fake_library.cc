// A libcairn_cuda.so whose GPUs are fake drivers: programs compute on a "gpu:0" in tests of the
// whole way that figures, traces and errors of a GPU take, and on as many more as CAIRN_FAKE_GPUS
// says, each with a driver and a memory of its own. They look for the library where
// CAIRN_CUDA_LIBRARY says, and only if there is a libcuda.so.1, which tests put in their path.
#include <algorithm>
#include <cstdlib>

#include "core/kernels/cuda/build_id.h"
#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/entry.h"
#include "tests/core/kernels/cuda/runtime/fake_driver.h"

namespace {
constexpr std::size_t kMemory = std::size_t{16} << 30;

int count() {
  const char* const told = std::getenv("CAIRN_FAKE_GPUS");
  return told == nullptr ? 1 : std::max(std::atoi(told), 1);
}
}  // namespace

extern "C" {
__attribute__((visibility("default"))) const char* cairn_cuda_build_id() {
  return cairn::cuda::build_id();
}
__attribute__((visibility("default"))) void cairn_cuda_open(cairn::Device& cpu,
                                                            cairn::SpanSink& trace,
                                                            cairn::cuda::OpenedDevices& opened) {
  for (int i = 0; i < count(); ++i) {
    const std::string name = cairn::str("gpu:", i);
    // As the real library's, they live as long as the process.
    auto* const driver = new cairn::testing::FakeDriver(name);
    opened.devices.push_back(
        {cairn::cuda::make_device(name, *driver, cpu, {&trace, "a fake GPU", kMemory}),
         "a fake GPU", kMemory, 90});
  }
  opened.sums = [] { return cairn::cuda::SumFigures{true, "by fake drivers"}; };
  opened.compiled = [] { return cairn::cuda::CompiledFigures{false, "there is no fake compiler"}; };
  opened.absent = "an older fake GPU has compute capability 7.5, and 8.0 is the least that is used";
}
}
