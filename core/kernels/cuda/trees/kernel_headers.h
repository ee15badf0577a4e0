// The headers that kernels compiled at run time include, as text. They are built into the library,
// because the source tree is not there when it runs.
#pragma once
#include <span>

namespace cairn::cuda {

struct KernelHeader {
  const char* name;  // as it is included
  const char* text;
};

std::span<const KernelHeader> kernel_headers();

}  // namespace cairn::cuda
