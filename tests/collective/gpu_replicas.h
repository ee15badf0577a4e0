// GPUs of replicas, fake ones, and what replicas on them reduce.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/graph/ops.h"
#include "core/kernels/cuda/device.h"
#include "tests/core/executor_testing.h"
#include "tests/core/kernels/cuda/runtime/fake_driver.h"

namespace cairn::testing {

struct Gpu {
  explicit Gpu(const std::string& name)
      : driver(name), device(cuda::make_device(name, driver, cpu_device())) {}
  FakeDriver driver;
  std::unique_ptr<Device> device;
};

// A function that reduces a value which other operations read too, and does other work beside it.
inline ConcreteFunction reducing() {
  return trace_function({floats({2}), ints({2})}, [](const auto& in) {
    const Array doubled = arg(in, 0) * 2.0f;
    const Array total = all_reduce(ReduceOp::kSum, doubled);
    const Array middle = all_reduce(ReduceOp::kMean, arg(in, 0));
    const Array count = all_reduce(ReduceOp::kSum, arg(in, 1));
    const Array apart = exp(arg(in, 0) * 0.0f);
    return std::vector<Array>{total + apart, doubled, middle, count};
  });
}

}  // namespace cairn::testing
