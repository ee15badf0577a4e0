// The facts about an operation that need no device: its name, its type rule, its gradient, and what
// a planner must know. Kernels are found by operation and device (core/kernels/device.h). The table
// is fixed when the program is built.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/array.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace cairn {

struct OpInputs {
  std::span<const TensorType> types;
  const Attributes& attributes;
  // The types of an effect's subject: of the argument, of the variable, or of the iterator's
  // columns. Empty for pure operations.
  std::span<const TensorType> subject;
};

enum class Effect : std::uint8_t {
  kNone,      // a function of inputs and attributes: may be dropped, shared or moved
  kArgument,  // "argument"
  kAdvance,   // "iterator_next"
  kRead,      // "read_variable", "gather_variable"
  kUpdate,    // "update_variable", "update_shared"
  // "all_reduce": every replica takes part, in the same order. One whose result is unused may be
  // dropped, since the replicas' graphs differ in constants alone.
  kAllReduce,
};

// Facts that a planner, an executor or a gradient must know as well. Or-ed together.
enum class OpFlags : std::uint32_t {
  kNone = 0,
  // Element i of the output needs element i of each input alone, stretched to the output's shape: a
  // device that fuses computes it inside its only consumer.
  kElementwise = 1 << 0,
  // A matrix product with an attribute transpose_a: where that is false, a device that fuses makes
  // its rows where they are used up.
  kMatrixProduct = 1 << 1,
  // Where the dtypes are equal, the first output is the memory of the first input.
  kAlias = 1 << 2,
  // The outputs may be written over the inputs, each over its own, if no other node reads these.
  kInPlace = 1 << 3,
  // Runs even if none of its outputs is used.
  kAlwaysLive = 1 << 4,
  // Ends the step if an element of its input is not finite, or, with kRange, is not in the range of
  // the attributes `low` and `high`.
  kCheck = 1 << 5,
  kRange = 1 << 15,
  // Without a kernel: the value stands in the attribute `value`, or comes with the step.
  kConstant = 1 << 6,
  kStepKey = 1 << 7,
  // The same numbers in another dtype, as far as it has them.
  kConversion = 1 << 8,
  // Its inputs, one behind another along the attribute `axis`.
  kConcatenation = 1 << 9,
  // `gradient` is called once per output that has one (y.output() says which), and the gradients of
  // an input are summed. Without it no gradient passes through outputs after the first.
  kGradientOfEachOutput = 1 << 10,
  // The elements of its input from the attribute `begin` on along the attribute `axis`.
  kSlice = 1 << 11,
  // Its inputs beside one another along the attribute `axis`, which may be a new one.
  kJoin = 1 << 12,
  // Products of matrices that are made of its inputs, computed as kMatrixProduct is.
  kOfProducts = 1 << 13,
  // Its first input, stretched to another shape as those of elementwise operations are.
  kBroadcast = 1 << 14,
  // Its two inputs added up.
  kAddition = 1 << 16,
  // The first input added up to the shape of another one.
  kSumToShape = 1 << 17,
  // An update of which each replica in sync has a share; the attribute `shares` says what these
  // come to.
  kShared = 1 << 18,
  // Its kernel is the host's, whatever the device: a run of it cannot be recorded.
  kOnHost = 1 << 19,
};
constexpr OpFlags operator|(OpFlags a, OpFlags b) {
  return static_cast<OpFlags>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

// Inputs of which an operation needs the shape only and never looks at the elements: a bit each,
// the last for itself and all that follow.
using ShapeInputs = std::uint32_t;
constexpr ShapeInputs shape_of(int input) { return 1u << input; }
constexpr ShapeInputs shapes_from(int input) { return ~0u << input; }

struct OpDef {
  // InvalidArgument says what is wrong; infer_types() adds the operation and the shapes.
  using Infer = std::vector<TensorType> (*)(const OpInputs& in);
  // Records the gradients of the node's inputs, given an output `y` (the first, see
  // OpFlags::kGradientOfEachOutput) and the gradient `dy`, which has y's shape. Undefined Arrays,
  // or nothing at all, where none passes. Null: none ever passes.
  using Gradient = std::vector<Array> (*)(const Array& y, const Array& dy);
  static constexpr int kAny = 1 << 16;

  std::string_view name;
  int inputs_min = 0;
  int inputs_max = 0;
  std::string_view attributes;  // their names, separated by spaces; all of them are always there
  Infer infer = nullptr;
  Gradient gradient = nullptr;
  OpFlags flags = OpFlags::kNone;
  ShapeInputs shape_inputs = 0;
  Effect effect = Effect::kNone;

  bool has(OpFlags flag) const {
    return (static_cast<unsigned>(flags) & static_cast<unsigned>(flag)) != 0;
  }
  bool needs_shape_only(std::size_t input) const {
    return (shape_inputs >> std::min<std::size_t>(input, 31) & 1) != 0;
  }
};

// nullptr: no such operation. Thread: any.
const OpDef* find_op(std::string_view name);
// All of them, for tests that want to miss none.
std::vector<const OpDef*> all_ops();

// The types of the outputs. InvalidArgument names the operation and the inputs' types: a wrong
// number of inputs, attributes that are missing, unknown or of another type, or what the
// operation's own rule finds.
std::vector<TensorType> infer_types(const OpDef& op, const OpInputs& in);
// "add(float32[2], float32[3])"
std::string signature_text(const OpDef& op, std::span<const TensorType> types);

inline bool is_read(const Node& node) { return node.op->effect == Effect::kRead; }
inline bool is_update(const Node& node) { return node.op->effect == Effect::kUpdate; }
inline bool is_shared_update(const Node& node) { return node.op->has(OpFlags::kShared); }
inline bool is_elementwise(const Node& node) { return node.op->has(OpFlags::kElementwise); }
inline bool is_check(const Node& node) { return node.op->has(OpFlags::kCheck); }
// Its value comes with the graph or the step.
inline bool is_given(const Node& node) {
  return node.op->has(OpFlags::kConstant) || node.op->has(OpFlags::kStepKey);
}
// The first output is the memory of the first input, which has this dtype.
inline bool is_alias(const Node& node, DType input) {
  return node.op->has(OpFlags::kAlias) && input == node.outputs[0].dtype;
}

// One part of the table a file of operations.
std::span<const OpDef> unary_ops();
std::span<const OpDef> binary_ops();
std::span<const OpDef> matmul_ops();
std::span<const OpDef> reduction_ops();
std::span<const OpDef> shape_ops();
std::span<const OpDef> piece_ops();
std::span<const OpDef> indexing_ops();
std::span<const OpDef> arrange_ops();
std::span<const OpDef> selection_ops();
std::span<const OpDef> loss_ops();
std::span<const OpDef> scatter_ops();
std::span<const OpDef> image_ops();
std::span<const OpDef> normalise_ops();
std::span<const OpDef> random_ops();
std::span<const OpDef> recommendation_ops();
std::span<const OpDef> effect_ops();
std::span<const OpDef> collective_ops();

}  // namespace cairn
