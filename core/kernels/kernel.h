// A kernel: how an operation is computed on a device, which hands it out (core/kernels/device.h).
//
// A kernel is prepared once for concrete shapes and then run many times. What it prepares keeps its
// own scratch, so a prepared kernel belongs to one workspace, and a run allocates nothing. All
// decisions that depend on shapes, dtypes or attributes are made when it is prepared; a run looks
// at values alone.
#pragma once
#include <cstddef>
#include <functional>
#include <span>

#include "core/base/arithmetic.h"
#include "core/graph/graph.h"

namespace cairn {

// Where a run reads and writes, in the device's memory: row-major, aligned to at least 8 bytes,
// outputs disjoint from inputs, but that an input of OpFlags::kJoin may lie in its place in the
// output already, if the device has memory of its own. A string input is its std::string objects
// one after another; a kernel that makes strings sets outputs[0] to strings of its own, which are
// valid until its next run. Strings lie in the host's memory.
struct KernelCall {
  const std::byte* const* inputs;
  std::byte** outputs;
};

// One run.
//   Errors  InvalidArgument: values that do not fit, such as an id out of range. The caller adds
//           the operation, the node and the shapes, so the message here says only which value is
//           wrong and where.
//   Thread  one at a time per prepared kernel.
using KernelRun = std::function<void(const KernelCall&)>;

// The node that a kernel is prepared for, at concrete shapes. `products`: the arithmetic of matrix
// products. `deterministic`: the kernel must not be chosen by measured speed.
struct KernelTypes {
  std::span<const TensorType> inputs;
  std::span<const TensorType> outputs;
  const Attributes& attributes;
  Arithmetic products = Arithmetic::kFloat32;
  bool deterministic = false;
  bool rows_alike = false;  // as Gemm has it
  // From one row of the first input, or of the output, to the next, in elements, where these rows
  // lie within those of a larger value (Device::takes_rows_within()); 0: they lie by themselves.
  std::int64_t input_stride = 0, output_stride = 0;
};

template <typename T>
const T* input_of(const KernelCall& call, int i) {
  return reinterpret_cast<const T*>(call.inputs[i]);
}
template <typename T>
T* output_of(const KernelCall& call, int i = 0) {
  return reinterpret_cast<T*>(call.outputs[i]);
}

}  // namespace cairn
