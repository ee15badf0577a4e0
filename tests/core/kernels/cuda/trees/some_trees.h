// Trees of elementwise operations as training has them, for tests of how they are computed.
#pragma once
#include <string>
#include <vector>

#include "core/kernels/fused_tree.h"

namespace cairn::testing {

struct SomeTree {
  std::string what;
  FusedTree tree;
};

// Those that have a kernel of their own where there is a compiler. Each has enough elements for it,
// at the end of which some are left that fill no pack.
std::vector<SomeTree> trees_with_kernels();
// Those that are interpreted everywhere.
std::vector<SomeTree> trees_without_kernels();

}  // namespace cairn::testing
