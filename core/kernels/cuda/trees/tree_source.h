// The source of a kernel for one program: the same operations as the interpreter's, over the same
// registers, without anything to decode. It is valid CUDA C++ and, for tests, C++ for the host;
// what its kernels have in common is tree_kernel.h.
//
// Sizes are no part of it, so that shapes that are stretched alike share a kernel: only whether
// rows consist of whole packs, and the axes of leaves that are stretched by strides, which are few.
#pragma once
#include <optional>
#include <vector>

#include "core/kernels/cuda/runtime/driver.h"
#include "core/kernels/cuda/trees/program.h"

namespace cairn::cuda {

struct TreeSource {
  // `name` says the operations, for profilers, and ends in a hash of the rest.
  KernelSource source;
  int pack = 1;  // elements that a thread computes side by side
  // How TreeArguments are filled: the lengths of rows, and what must lie on boundaries of how many
  // bytes for packs to be used. A leaf without such a need has 1.
  std::vector<std::uint32_t> periods;
  std::vector<int> boundaries;  // of each leaf
  int result_boundary = 1;
};

// nullopt: only the interpreter can run it. The tree may divide an integer by zero, or it
// has more leaves, row lengths or elements than TreeArguments has room for.
//   Thread  any.
std::optional<TreeSource> tree_source(const Program& program);

}  // namespace cairn::cuda
