// A tree of elementwise operations as a program: what every thread runs over its elements.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/trees/elementwise.h"
#include "core/kernels/fused_tree.h"

namespace cairn::cuda {

std::string_view name_of(Code code);  // "add_f"

// How a value is stretched to the result's shape.
struct Leaf {
  enum class Mode : std::uint8_t {
    kDense,    // element i
    kScalar,   // element 0
    kInner,    // element i % period: a row for every row
    kOuter,    // element i / period: a number for every row
    kGeneral,  // by strides
  };
  Mode mode = Mode::kDense;
  std::uint8_t width = 4;  // bytes per element
  bool narrow = false;     // bfloat16 that stands for float32
  Divisor period;
  Strides strides;

  static Leaf of(const TensorType& from, const Shape& to);
};

struct Operand {
  enum class Kind : std::uint8_t { kNone, kLeaf, kRegister };
  Kind kind = Kind::kNone;
  std::uint8_t index = 0;
};

struct ProgramStep {
  Code code = Code::none;
  std::uint8_t made = 0;  // the register; the last step writes the result instead
  DType from = DType::kFloat32, to = DType::kFloat32;
  Operand operands[3];
};

struct Program {
  static constexpr int kLeavesMax = 132;  // of 64 nodes with up to three operands each
  std::vector<Leaf> leaves;
  std::vector<ProgramStep> steps;
  int registers = 0;
  bool wide = false;       // a dtype has 8 bytes
  std::uint8_t width = 4;  // of the result's elements
  bool narrow = false;     // float32 that is written as bfloat16
  std::int64_t elements = 0;

  // The product of a tree that begins with one is a leaf behind the others, and lies as `product`.
  //   Errors  InvalidArgument: an operation has no kernel for its dtypes.
  static Program of(const FusedTree& tree, DType product = DType::kFloat32);
};

}  // namespace cairn::cuda
