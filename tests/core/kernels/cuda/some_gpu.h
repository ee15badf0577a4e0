// The GPU of a test: the fake driver's, or under CAIRN_ON_GPU the machine's first one. What a test
// says of counts holds on the fake alone, and stands behind `if (kCounted)`.
#pragma once
#include <memory>
#include <vector>

#ifdef CAIRN_ON_GPU
#include "core/kernels/cuda/library.h"
#include "core/kernels/gemm.h"
#else
#include "core/kernels/cuda/device.h"
#include "tests/core/kernels/cuda/runtime/fake_driver.h"
#endif

namespace cairn::testing {

#ifdef CAIRN_ON_GPU

struct Uncounted {
  struct Counts {
    int pieces = 0, replays = 0, narrowed = 0;
  };
  Counts counts() const { return {}; }
  std::vector<Gemm> gemms() const { return {}; }
};
struct SomeGpu {
  static constexpr bool kCounted = false;
  Uncounted driver;
  Device* gpu = &cairn::gpu(0);
};

#else

struct SomeGpu {
  static constexpr bool kCounted = true;
  FakeDriver driver;
  std::unique_ptr<Device> gpu = cuda::make_device("gpu:0", driver, cpu_device());
};

#endif

}  // namespace cairn::testing
