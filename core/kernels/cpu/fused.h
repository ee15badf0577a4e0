// A tree of elementwise operations, evaluated block by block: what lies between the first input and
// the result never leaves the cache. A tree may begin with a matrix product, which is then made
// panel by panel: its rows are used up while they are in cache.
#pragma once
#include <memory>
#include <vector>

#include "core/kernels/cpu/elementwise.h"
#include "core/kernels/cpu/gemm.h"
#include "core/kernels/cpu/strided.h"
#include "core/kernels/fused_tree.h"
#include "core/kernels/kernel.h"

namespace cairn {

// A kernel that belongs to one workspace: it keeps its registers.
//   Errors  InvalidArgument: an operation has no kernel for its dtypes.
KernelRun fuse(const FusedTree& tree);

// Built bottom up: leaf() and apply() hand out the numbers of operands.
class FusedBuilder {
 public:
  explicit FusedBuilder(TensorType result) : result_(std::move(result)) {}
  // An input of the run, stretched to the result's shape. Its place among the run's inputs is the
  // order of calls.
  int leaf(const TensorType& type);
  // The matrix product that finish() is given, of the result's shape. Once at most.
  int product();
  int apply(BlockOp op, const std::vector<int>& operands);
  // The last apply() is the result. The run takes the leaves in order.
  KernelRun finish();
  // The same after product(): the run takes a and b behind the leaves, and a is not transposed.
  KernelRun finish(const Gemm& product, Arithmetic arithmetic);
  std::size_t registers() const { return registers_; }

 private:
  friend struct FusedRun;
  enum class Kind { kLeaf, kProduct, kRegister };
  struct Operand {
    Kind kind = Kind::kLeaf;
    int index = 0;  // of the leaf or the register
  };
  struct Step {
    BlockOp op;
    int operands[3] = {-1, -1, -1};
    int made = 0;  // register
  };
  struct Leaf {
    std::size_t width = 0;
    bool dense = false;
    StridedCopy copy;
  };
  TensorType result_;
  std::vector<Operand> operands_;
  std::vector<Leaf> leaves_;
  std::vector<Step> steps_;
  std::vector<int> free_;
  std::size_t registers_ = 0;
};

}  // namespace cairn
