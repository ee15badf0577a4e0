// A kernel: how an operation is computed on a device. Kernels are found by the operation's name.
//
// A kernel is prepared once for concrete shapes and then run many times. What it prepares keeps its
// own scratch, so a prepared kernel belongs to one workspace, and a run allocates nothing. All
// decisions that depend on shapes, dtypes or attributes are made when it is prepared; a run looks
// at values alone.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "core/base/arithmetic.h"
#include "core/graph/graph.h"

namespace cairn {

// Where a run reads and writes: row-major, aligned to at least 8 bytes, outputs disjoint from
// inputs. A string input is its std::string objects one after another; a kernel that makes strings
// sets outputs[0] to strings of its own, which are valid until its next run.
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

// What a kernel is prepared for: the node at concrete shapes. `products` says what matrix products
// are computed in.
struct KernelTypes {
  std::span<const TensorType> inputs;
  std::span<const TensorType> outputs;
  const Attributes& attributes;
  Arithmetic products = Arithmetic::kFloat32;
};

// An entry of the table: an operation and how it is prepared. The graph was verified before, so
// prepare() need not check dtypes and shapes again.
//   Errors of prepare()  Unimplemented: this device has no kernel for these dtypes or shapes;
//   InvalidArgument: shapes that only now are known do not fit.
struct Kernel {
  std::string_view op;
  KernelRun (*prepare)(const KernelTypes& types);
};

// The kernel of an operation. nullptr: it has none; elementwise operations have a BlockOp instead
// (core/kernels/cpu/elementwise.h).
//   Thread  any.
const Kernel* find_kernel(std::string_view op);

// One part of the table per file.
std::span<const Kernel> matmul_kernels();
std::span<const Kernel> reduction_kernels();
std::span<const Kernel> softmax_kernels();
std::span<const Kernel> shape_kernels();
std::span<const Kernel> piece_kernels();
std::span<const Kernel> indexing_kernels();
std::span<const Kernel> scatter_kernels();
std::span<const Kernel> convolution_kernels();
std::span<const Kernel> pooling_kernels();
std::span<const Kernel> normalise_kernels();
std::span<const Kernel> random_kernels();
std::span<const Kernel> recommendation_kernels();
std::span<const Kernel> string_kernels();
std::span<const Kernel> wait_kernels();

// The inputs and outputs of a call as elements. Nothing is checked: the kernel knows its dtypes
// from when it was prepared.
template <typename T>
const T* input_of(const KernelCall& call, int i) {
  return reinterpret_cast<const T*>(call.inputs[i]);
}
template <typename T>
T* output_of(const KernelCall& call, int i = 0) {
  return reinterpret_cast<T*>(call.outputs[i]);
}

}  // namespace cairn
