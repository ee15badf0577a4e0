// A kernel: how an operation is computed on a device. Kernels are found by the operation's name.
//
// A kernel is prepared once for concrete shapes and then run many times. What it prepares keeps its
// own scratch, so a prepared kernel belongs to one workspace, and a run allocates nothing.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "core/base/arithmetic.h"
#include "core/graph/graph.h"

namespace cairn {

// Where a run reads and writes: row-major, at least 8-byte aligned, outputs disjoint from inputs. A
// string input is its std::string objects one after another; a kernel that makes strings sets
// outputs[0] to its own.
struct KernelCall {
  const std::byte* const* inputs;
  std::byte** outputs;
};

// InvalidArgument for values that do not fit (an id out of range); the caller adds the operation,
// the node and the shapes.
using KernelRun = std::function<void(const KernelCall&)>;

// The node at concrete shapes.
struct KernelTypes {
  std::span<const TensorType> inputs;
  std::span<const TensorType> outputs;
  const Attributes& attributes;
  Arithmetic products = Arithmetic::kFloat32;
};

struct Kernel {
  std::string_view op;
  KernelRun (*prepare)(const KernelTypes& types);
};

// nullptr: no kernel; elementwise operations have a BlockOp instead
// (core/kernels/cpu/elementwise.h). Thread: any.
const Kernel* find_kernel(std::string_view op);

// One part of the table a file.
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

template <typename T>
const T* input_of(const KernelCall& call, int i) {
  return reinterpret_cast<const T*>(call.inputs[i]);
}
template <typename T>
T* output_of(const KernelCall& call, int i = 0) {
  return reinterpret_cast<T*>(call.outputs[i]);
}

}  // namespace cairn
