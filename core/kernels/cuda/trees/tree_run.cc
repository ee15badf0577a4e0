#include "core/kernels/cuda/trees/tree_run.h"

#include <algorithm>

#include "core/kernels/cuda/runtime/group.h"
#include "core/kernels/cuda/trees/tree_kernel.h"

namespace cairn::cuda {
namespace {

// Below that a launch takes as long as the work.
constexpr std::int64_t kElementsLeast = 64 * 1024;

bool lies_on(const void* at, int boundary) {
  return reinterpret_cast<std::uintptr_t>(at) % static_cast<std::uintptr_t>(boundary) == 0;
}

}  // namespace

std::shared_ptr<const TreeRun> TreeRun::plan(Queue& queue, const Program& program) {
  if (program.elements < kElementsLeast) return nullptr;
  auto source = tree_source(program);
  if (!source) return nullptr;
  auto kernel = queue.driver().compile(source->source);
  if (kernel == nullptr) return nullptr;
  source->source = {};  // the text is not read again
  return std::make_shared<const TreeRun>(queue, program.elements, std::move(*source),
                                         std::move(kernel));
}

void TreeRun::run(const std::byte* const* leaves, std::byte* result) const {
  TreeArguments arguments{};
  arguments.elements = elements_;
  arguments.result = result;
  arguments.packed = lies_on(result, source_.result_boundary);
  for (std::size_t i = 0; i < source_.boundaries.size(); ++i) {
    arguments.leaves[i] = leaves[i];
    arguments.packed = arguments.packed && lies_on(leaves[i], source_.boundaries[i]);
  }
  std::copy(source_.periods.begin(), source_.periods.end(), arguments.periods);
  const std::int64_t pieces =
      arguments.packed ? (elements_ + source_.pack - 1) / source_.pack : elements_;
  kernel_->launch(queue_.stream(), (pieces + kBlock - 1) / kBlock, &arguments, sizeof arguments);
}

}  // namespace cairn::cuda
