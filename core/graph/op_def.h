// What the graph side knows about an operation: its name, its type rule and its gradient. Kernels
// are found by the same name in core/kernels/. The table is fixed when the program is built.
#pragma once
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
  // What an effect speaks of: the argument's or variable's type, or the columns of the iterator.
  // Empty for pure operations.
  std::span<const TensorType> subject;
};

enum class Effect : std::uint8_t {
  kNone,      // a function of inputs and attributes: may be dropped, shared or moved
  kArgument,  // "argument"
  kAdvance,   // "iterator_next"
  kRead,      // "read_variable", "gather_variable"
  kUpdate,    // "update_variable"
  // "all_reduce": every replica takes part, in the same order. One that nobody needs may be
  // dropped, and equal ones shared, since all replicas run the same graph.
  kAllReduce,
};

// What else a planner or a gradient must know. Or-ed together.
enum class OpFlags : std::uint16_t {
  kNone = 0,
  // `gradient` is called once per output that has one (y.output() says which), and the gradients of
  // an input are summed. Without it no gradient passes through outputs after the first.
  kGradientOfEachOutput = 1 << 0,
};
constexpr OpFlags operator|(OpFlags a, OpFlags b) {
  return static_cast<OpFlags>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

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
  Effect effect = Effect::kNone;

  bool has(OpFlags flag) const {
    return (static_cast<unsigned>(flags) & static_cast<unsigned>(flag)) != 0;
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
inline bool is_check(const Node& node) { return node.op->name == "check_numerics"; }

// One part of the table a file of operations.
std::span<const OpDef> unary_ops();
std::span<const OpDef> binary_ops();
std::span<const OpDef> matmul_ops();
std::span<const OpDef> reduction_ops();
std::span<const OpDef> shape_ops();
std::span<const OpDef> piece_ops();
std::span<const OpDef> indexing_ops();
std::span<const OpDef> loss_ops();
std::span<const OpDef> scatter_ops();
std::span<const OpDef> image_ops();
std::span<const OpDef> normalise_ops();
std::span<const OpDef> random_ops();
std::span<const OpDef> recommendation_ops();
std::span<const OpDef> effect_ops();
std::span<const OpDef> collective_ops();

}  // namespace cairn
