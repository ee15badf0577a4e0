// Elementwise operations of two or three inputs, which broadcast.
#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using infer::OpTypes;

// Dtypes are not promoted, as in TensorFlow; only a C++ integer adapts (see of_one_type()).
Shape broadcast_inputs(const OpInputs& in) {
  infer::want_same_dtype(in);
  return infer::broadcast(in.types[0].shape, in.types[1].shape);
}

OpTypes arithmetic(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kArithmetic);
  return {{in.types[0].dtype, broadcast_inputs(in)}};
}

OpTypes float_only(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kFloats);
  return arithmetic(in);
}

// Equality is defined for bool too, an order is not.
OpTypes equality(const OpInputs& in) {
  infer::want_dtype(in, 0,
                    {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kBool, DType::kUint8});
  return {{DType::kBool, broadcast_inputs(in)}};
}

OpTypes ordering(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kArithmetic);
  return {{DType::kBool, broadcast_inputs(in)}};
}

OpTypes logical(const OpInputs& in) {
  infer::want_dtype(in, 0, {DType::kBool});
  return {{DType::kBool, broadcast_inputs(in)}};
}

OpTypes infer_where(const OpInputs& in) {
  infer::want_dtype(in, 0, {DType::kBool});
  infer::want_dtype(in, 1,
                    {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kBool, DType::kUint8});
  infer::want_dtype(in, 2, {in.types[1].dtype});
  return {{in.types[1].dtype,
           infer::broadcast(in.types[0].shape,
                            infer::broadcast(in.types[1].shape, in.types[2].shape))}};
}

using Arrays = std::vector<Array>;

// The gradients of both inputs, folded back to their shapes.
Arrays fold(const Array& y, const Array& da, const Array& db) {
  const auto& in = y.node()->inputs;
  return {unbroadcast(da, in[0]), unbroadcast(db, in[1])};
}

const Array& first(const Array& y) { return y.node()->inputs[0]; }
const Array& second(const Array& y) { return y.node()->inputs[1]; }

Arrays grad_add(const Array& y, const Array& dy) { return fold(y, dy, dy); }
Arrays grad_sub(const Array& y, const Array& dy) { return fold(y, dy, -dy); }
// The product rule: each factor's gradient is dy times the other one.
Arrays grad_mul(const Array& y, const Array& dy) { return fold(y, dy * second(y), dy * first(y)); }
// y = a / b: dy/da = 1 / b and dy/db = -a / b^2 = -y / b.
Arrays grad_div(const Array& y, const Array& dy) {
  Array da = dy / second(y);
  return fold(y, da, -da * y);
}
// y = a - b floor(a / b), where floor() is constant: dy/da = 1 and dy/db = -floor(a / b).
Arrays grad_floor_mod(const Array& y, const Array& dy) {
  return fold(y, dy, -dy * floor(first(y) / second(y)));
}

// If the two values are equal, the first one gets the gradient, as in the reference.
Arrays pick(const Array& y, const Array& dy, const Array& takes_first) {
  return fold(y, where(takes_first, dy, 0.0f), where(takes_first, 0.0f, dy));
}
Arrays grad_maximum(const Array& y, const Array& dy) {
  return pick(y, dy, greater_equal(first(y), second(y)));
}
Arrays grad_minimum(const Array& y, const Array& dy) {
  return pick(y, dy, less_equal(first(y), second(y)));
}

// y = a^b: dy/da = b a^(b - 1) and dy/db = a^b log a. The latter is taken as 0 where a <= 0: there
// the exponent is a whole number or the value is NaN anyway. The inner where() keeps the log finite
// on the branch that is not taken, for 0 times infinity would be NaN.
Arrays grad_pow(const Array& y, const Array& dy) {
  const Array &a = first(y), &b = second(y);
  Array positive = greater(a, 0.0f);
  Array log_a = where(positive, log(where(positive, a, 1.0f)), 0.0f);
  return fold(y, dy * b * pow(a, b - 1.0f), dy * y * log_a);
}

// Each branch gets the gradient where it was chosen; the condition has none.
Arrays grad_where(const Array& y, const Array& dy) {
  const auto& in = y.node()->inputs;
  if (y.dtype() != DType::kFloat32) return {};
  return {Array(), unbroadcast(where(in[0], dy, 0.0f), in[1]),
          unbroadcast(where(in[0], 0.0f, dy), in[2])};
}

const OpDef kBinaryOps[] = {
    {"add", 2, 2, "", arithmetic, grad_add, OpFlags::kElementwise | OpFlags::kAddition},
    {"sub", 2, 2, "", arithmetic, grad_sub, OpFlags::kElementwise},
    {"mul", 2, 2, "", arithmetic, grad_mul, OpFlags::kElementwise},
    {"div", 2, 2, "", arithmetic, grad_div, OpFlags::kElementwise},
    {"floor_mod", 2, 2, "", arithmetic, grad_floor_mod, OpFlags::kElementwise},
    {"maximum", 2, 2, "", arithmetic, grad_maximum, OpFlags::kElementwise},
    {"minimum", 2, 2, "", arithmetic, grad_minimum, OpFlags::kElementwise},
    {"pow", 2, 2, "", float_only, grad_pow, OpFlags::kElementwise},
    {"equal", 2, 2, "", equality, nullptr, OpFlags::kElementwise},
    {"not_equal", 2, 2, "", equality, nullptr, OpFlags::kElementwise},
    {"less", 2, 2, "", ordering, nullptr, OpFlags::kElementwise},
    {"less_equal", 2, 2, "", ordering, nullptr, OpFlags::kElementwise},
    {"greater", 2, 2, "", ordering, nullptr, OpFlags::kElementwise},
    {"greater_equal", 2, 2, "", ordering, nullptr, OpFlags::kElementwise},
    {"logical_and", 2, 2, "", logical, nullptr, OpFlags::kElementwise},
    {"logical_or", 2, 2, "", logical, nullptr, OpFlags::kElementwise},
    {"where", 3, 3, "", infer_where, grad_where, OpFlags::kElementwise},
};

}  // namespace

std::span<const OpDef> binary_ops() { return kBinaryOps; }

namespace {

// A C++ integer takes the other operand's number type; of two integers the wider type holds both.
std::pair<Array, Array> of_one_type(const Array& a, const Array& b) {
  if (!a.defined() || !b.defined() || a.dtype() == b.dtype()) return {a, b};
  const Array first = a.dtype() == DType::kInt32 ? a.beside(b.dtype()) : a;
  const Array second = b.beside(first.dtype());
  return {first.beside(second.dtype()), second};
}

Array record_binary(std::string_view op, const Array& a, const Array& b) {
  auto [first, second] = of_one_type(a, b);
  return record(op, {first, second});
}

}  // namespace

Array add(const Array& a, const Array& b) { return record_binary("add", a, b); }
Array sub(const Array& a, const Array& b) { return record_binary("sub", a, b); }
Array mul(const Array& a, const Array& b) { return record_binary("mul", a, b); }
Array div(const Array& a, const Array& b) { return record_binary("div", a, b); }
Array floor_mod(const Array& a, const Array& b) { return record_binary("floor_mod", a, b); }
Array maximum(const Array& a, const Array& b) { return record_binary("maximum", a, b); }
Array minimum(const Array& a, const Array& b) { return record_binary("minimum", a, b); }
Array pow(const Array& a, const Array& b) { return record_binary("pow", a, b); }
Array equal(const Array& a, const Array& b) { return record_binary("equal", a, b); }
Array not_equal(const Array& a, const Array& b) { return record_binary("not_equal", a, b); }
Array less(const Array& a, const Array& b) { return record_binary("less", a, b); }
Array less_equal(const Array& a, const Array& b) { return record_binary("less_equal", a, b); }
Array greater(const Array& a, const Array& b) { return record_binary("greater", a, b); }
Array greater_equal(const Array& a, const Array& b) { return record_binary("greater_equal", a, b); }
Array logical_and(const Array& a, const Array& b) { return record_binary("logical_and", a, b); }
Array logical_or(const Array& a, const Array& b) { return record_binary("logical_or", a, b); }
Array where(const Array& condition, const Array& a, const Array& b) {
  auto [first, second] = of_one_type(a, b);
  return record("where", {condition, first, second});
}

}  // namespace cairn
