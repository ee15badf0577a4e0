// A tree of elementwise operations that is to be computed as one kernel. The planner describes it;
// how it is computed is the device's affair (Device::fusion()).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/arithmetic.h"
#include "core/graph/graph.h"
#include "core/kernels/gemm.h"
#include "core/kernels/kernel.h"

namespace cairn {

struct FusedTree {
  enum class Kind : std::uint8_t { kLeaf, kProduct, kNode };
  struct Operand {
    Kind kind = Kind::kLeaf;
    int index = 0;  // of the leaf or the node
  };
  struct Node {
    const OpDef* op = nullptr;  // OpFlags::kElementwise
    std::vector<Operand> operands;
    std::vector<DType> inputs;  // the operands' dtypes
    DType output = DType::kFloat32;
  };

  // The type of the last node's value; every node has its shape. If it is bfloat16 where the node
  // makes float32, the value is rounded on its way to memory.
  TensorType result;
  // The run's inputs in order, each stretched to the result's shape. One of bfloat16 that a node
  // takes for float32 is widened on its way from memory.
  std::vector<TensorType> leaves;
  std::vector<Node> nodes;  // a node stands behind its operands
  // The matrix product that the tree begins with, of the result's shape, if there is one; at most
  // one operand is it. The run takes its factors behind the leaves. The first is not transposed.
  std::optional<Gemm> product;
  std::array<DType, 2> factors{DType::kFloat32, DType::kFloat32};  // as they lie in memory
  Arithmetic products = Arithmetic::kFloat32;
  bool deterministic = false;  // as KernelTypes has it

  // The tree of one operation over its inputs.
  static FusedTree of(const OpDef& op, const KernelTypes& types) {
    FusedTree tree;
    tree.result = types.outputs[0];
    tree.nodes.push_back({&op, {}, {}, types.outputs[0].dtype});
    for (const TensorType& input : types.inputs) {
      tree.nodes[0].operands.push_back({Kind::kLeaf, static_cast<int>(tree.leaves.size())});
      tree.nodes[0].inputs.push_back(input.dtype);
      tree.leaves.push_back(input);
    }
    return tree;
  }
};

}  // namespace cairn
