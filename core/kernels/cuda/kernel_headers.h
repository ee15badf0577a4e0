// The texts of the headers that kernels include which are compiled at run time. A program takes
// them along, since where it runs there is no source folder.
#pragma once
#include <span>

namespace cairn::cuda {

struct KernelHeader {
  const char* name;  // as it is included
  const char* text;
};

std::span<const KernelHeader> kernel_headers();

}  // namespace cairn::cuda
