// The kernels of some_trees.h as they are generated, compiled for the host when the tests are
// built (write_trees.cc).
#pragma once
#include <map>
#include <string>

#include "core/kernels/cuda/trees/tree_kernel.h"

namespace cairn::testing {

// Does the share of one thread of several.
using HostKernel = void (*)(const cuda::TreeArguments& arguments, std::int64_t thread,
                            std::int64_t threads);
struct CompiledTree {
  std::string text;  // of the source that it was compiled from
  HostKernel run;
};

// By the name of the kernel.
const std::map<std::string, CompiledTree>& compiled_trees();

}  // namespace cairn::testing
