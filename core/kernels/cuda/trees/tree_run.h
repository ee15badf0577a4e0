// A program as a kernel of its own, where there is a compiler for it.
#pragma once
#include <memory>
#include <vector>

#include "core/kernels/cuda/runtime/queue.h"
#include "core/kernels/cuda/trees/tree_source.h"

namespace cairn::cuda {

class TreeRun {
 public:
  // nullptr: the interpreter is to run it, because the driver has no compiler, or the program is
  // not for one (tree_source.h), or it has so few elements that a kernel of its own gains nothing.
  //   Cost  tenths of a second where the kernel is compiled.
  static std::shared_ptr<const TreeRun> plan(Queue& queue, const Program& program);

  // Enqueues the kernel. `leaves` are the program's.
  void run(const std::byte* const* leaves, std::byte* result) const;

  TreeRun(Queue& queue, std::int64_t elements, TreeSource source,
          std::shared_ptr<CompiledKernel> kernel)
      : queue_(queue),
        elements_(elements),
        source_(std::move(source)),
        kernel_(std::move(kernel)) {}

 private:
  Queue& queue_;
  const std::int64_t elements_;
  const TreeSource source_;
  const std::shared_ptr<CompiledKernel> kernel_;
};

}  // namespace cairn::cuda
