// Elementwise operations of one input.
#include <numbers>

#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/ops/ops_check.h"
#include "core/graph/ops/ops_wait.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using infer::OpTypes;

OpTypes float_op(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kFloats);
  return {in.types[0]};
}

OpTypes arithmetic_op(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kArithmetic);
  return {in.types[0]};
}

// The question is one of floating-point numbers only; every integer is finite.
OpTypes float_to_bool(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kFloats);
  return {{DType::kBool, in.types[0].shape}};
}

OpTypes bool_op(const OpInputs& in) {
  infer::want_dtype(in, 0, {DType::kBool});
  return {in.types[0]};
}

// Numbers and bools convert into each other; text does not.
OpTypes infer_cast(const OpInputs& in) {
  infer::want_fixed_size(in, 0);
  std::int64_t to = in.attributes.get<std::int64_t>("to");
  if (to < 0 || to >= kDTypeCount || static_cast<DType>(to) == DType::kString)
    infer::fail("no dtype to cast to has the number ", to);
  return {{static_cast<DType>(to), in.types[0].shape}};
}

OpTypes infer_check_numerics(const OpInputs& in) {
  in.attributes.get<std::string>("what");
  return float_op(in);
}

OpTypes infer_check_range(const OpInputs& in) {
  in.attributes.get<std::string>("cure");
  const double low = in.attributes.get<double>("low"), high = in.attributes.get<double>("high");
  if (!(low <= high)) infer::fail("a range from ", low, " to ", high, " holds no number");
  return infer_check_numerics(in);
}

// The operation stands in for arithmetic where what is around it is measured. The bound keeps a
// graph from stopping a lane for good.
OpTypes infer_wait_for(const OpInputs& in) {
  const double seconds = in.attributes.get<double>("seconds");
  if (!(seconds >= 0 && seconds <= 1)) infer::fail("a wait is of 0 to 1 seconds");
  return float_op(in);
}

const Array& operand(const Array& y) { return y.node()->inputs[0]; }
bool is_float(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kBfloat16 || dtype == DType::kFloat16 ||
         dtype == DType::kFloat64;
}

using Arrays = std::vector<Array>;
// Where the result y gives the derivative, the gradient uses y, which is there already. For example
// y = e^x has dy/dx = y, and y = x^(-1/2) has -y^3 / 2.
Arrays grad_neg(const Array&, const Array& dy) { return {-dy}; }
Arrays grad_abs(const Array& y, const Array& dy) { return {dy * sign(operand(y))}; }
Arrays grad_exp(const Array& y, const Array& dy) { return {dy * y}; }
Arrays grad_expm1(const Array& y, const Array& dy) { return {dy * (y + 1.0f)}; }
Arrays grad_sin(const Array& y, const Array& dy) { return {dy * cos(operand(y))}; }
Arrays grad_cos(const Array& y, const Array& dy) { return {-dy * sin(operand(y))}; }

// erf(x) has the derivative 2 / sqrt(pi) e^(-x^2), and erfc(x) = 1 - erf(x).
constexpr float kErfSlope = 2 * std::numbers::inv_sqrtpi_v<float>;  // of erf at 0
Arrays grad_erf(const Array& y, const Array& dy) {
  return {dy * kErfSlope * exp(-square(operand(y)))};
}
Arrays grad_erfc(const Array& y, const Array& dy) {
  return {dy * -kErfSlope * exp(-square(operand(y)))};
}

Arrays grad_log(const Array& y, const Array& dy) { return {dy / operand(y)}; }
Arrays grad_log1p(const Array& y, const Array& dy) { return {dy / (operand(y) + 1.0f)}; }
Arrays grad_sqrt(const Array& y, const Array& dy) { return {dy * 0.5f / y}; }
Arrays grad_rsqrt(const Array& y, const Array& dy) { return {dy * -0.5f * (y * y * y)}; }
Arrays grad_square(const Array& y, const Array& dy) { return {dy * 2.0f * operand(y)}; }
Arrays grad_reciprocal(const Array& y, const Array& dy) { return {-dy * y * y}; }
Arrays grad_sigmoid(const Array& y, const Array& dy) { return {dy * y * (1.0f - y)}; }
Arrays grad_tanh(const Array& y, const Array& dy) { return {dy * (1.0f - y * y)}; }
// At 0 the derivative is taken as 0, as in TensorFlow.
Arrays grad_relu(const Array& y, const Array& dy) { return {where(greater(y, 0.0f), dy, 0.0f)}; }
// y = log(1 + e^x) has dy/dx = e^x / (1 + e^x), which is sigmoid(x).
Arrays grad_softplus(const Array& y, const Array& dy) { return {dy * sigmoid(operand(y))}; }
Arrays grad_passed_on(const Array&, const Array& dy) { return {dy}; }
// The gradient of a checked value depends on the check.
Arrays grad_check_numerics(const Array& y, const Array& dy) { return {after(dy, y)}; }
// Only between floating-point types: what is rounded to integers has no derivative.
Arrays grad_cast(const Array& y, const Array& dy) {
  if (!is_float(operand(y).dtype()) || !is_float(y.dtype())) return {};
  return {cast(dy, operand(y).dtype())};
}

const OpDef kUnaryOps[] = {
    {"neg", 1, 1, "", arithmetic_op, grad_neg, OpFlags::kElementwise},
    {"abs", 1, 1, "", arithmetic_op, grad_abs, OpFlags::kElementwise},
    {"exp", 1, 1, "", float_op, grad_exp, OpFlags::kElementwise},
    {"expm1", 1, 1, "", float_op, grad_expm1, OpFlags::kElementwise},
    {"sin", 1, 1, "", float_op, grad_sin, OpFlags::kElementwise},
    {"cos", 1, 1, "", float_op, grad_cos, OpFlags::kElementwise},
    {"erf", 1, 1, "", float_op, grad_erf, OpFlags::kElementwise},
    {"erfc", 1, 1, "", float_op, grad_erfc, OpFlags::kElementwise},
    {"log", 1, 1, "", float_op, grad_log, OpFlags::kElementwise},
    {"log1p", 1, 1, "", float_op, grad_log1p, OpFlags::kElementwise},
    {"sqrt", 1, 1, "", float_op, grad_sqrt, OpFlags::kElementwise},
    {"rsqrt", 1, 1, "", float_op, grad_rsqrt, OpFlags::kElementwise},
    {"square", 1, 1, "", arithmetic_op, grad_square, OpFlags::kElementwise},
    {"reciprocal", 1, 1, "", float_op, grad_reciprocal, OpFlags::kElementwise},
    {"sigmoid", 1, 1, "", float_op, grad_sigmoid, OpFlags::kElementwise},
    {"tanh", 1, 1, "", float_op, grad_tanh, OpFlags::kElementwise},
    {"relu", 1, 1, "", float_op, grad_relu, OpFlags::kElementwise},
    {"softplus", 1, 1, "", float_op, grad_softplus, OpFlags::kElementwise},
    {"sign", 1, 1, "", float_op, nullptr, OpFlags::kElementwise},
    {"floor", 1, 1, "", float_op, nullptr, OpFlags::kElementwise},
    {"ceil", 1, 1, "", float_op, nullptr, OpFlags::kElementwise},
    {"round", 1, 1, "", float_op, nullptr, OpFlags::kElementwise},
    {"is_finite", 1, 1, "", float_to_bool, nullptr, OpFlags::kElementwise},
    {"logical_not", 1, 1, "", bool_op, nullptr, OpFlags::kElementwise},
    {"cast", 1, 1, "to", infer_cast, grad_cast,
     OpFlags::kElementwise | OpFlags::kAlias | OpFlags::kConversion},
    {"stop_gradient", 1, 1, "", infer::same_as_first, nullptr, OpFlags::kAlias},
    {"check_numerics", 1, 1, "what", infer_check_numerics, grad_check_numerics,
     OpFlags::kAlias | OpFlags::kCheck | OpFlags::kAlwaysLive},
    {"check_range", 1, 1, "what cure low high", infer_check_range, grad_check_numerics,
     OpFlags::kAlias | OpFlags::kCheck | OpFlags::kRange | OpFlags::kAlwaysLive},
    {"after", 2, 2, "", infer::same_as_first, grad_passed_on, OpFlags::kAlias, shape_of(1)},
    {"wait_for", 1, 1, "seconds", infer_wait_for, grad_passed_on, OpFlags::kOnHost},
};

}  // namespace

std::span<const OpDef> unary_ops() { return kUnaryOps; }

Array neg(const Array& x) { return record("neg", {x}); }
Array abs(const Array& x) { return record("abs", {x}); }
Array exp(const Array& x) { return record("exp", {x}); }
Array expm1(const Array& x) { return record("expm1", {x}); }
Array sin(const Array& x) { return record("sin", {x}); }
Array cos(const Array& x) { return record("cos", {x}); }
Array erf(const Array& x) { return record("erf", {x}); }
Array erfc(const Array& x) { return record("erfc", {x}); }
Array log(const Array& x) { return record("log", {x}); }
Array log1p(const Array& x) { return record("log1p", {x}); }
Array sqrt(const Array& x) { return record("sqrt", {x}); }
Array rsqrt(const Array& x) { return record("rsqrt", {x}); }
Array square(const Array& x) { return record("square", {x}); }
Array reciprocal(const Array& x) { return record("reciprocal", {x}); }
Array sigmoid(const Array& x) { return record("sigmoid", {x}); }
Array tanh(const Array& x) { return record("tanh", {x}); }
Array relu(const Array& x) { return record("relu", {x}); }
Array softplus(const Array& x) { return record("softplus", {x}); }
Array sign(const Array& x) { return record("sign", {x}); }
Array floor(const Array& x) { return record("floor", {x}); }
Array ceil(const Array& x) { return record("ceil", {x}); }
Array round(const Array& x) { return record("round", {x}); }
Array is_finite(const Array& x) { return record("is_finite", {x}); }
Array logical_not(const Array& x) { return record("logical_not", {x}); }
Array stop_gradient(const Array& x) { return record("stop_gradient", {x}); }
Array check_numerics(const Array& x, const std::string& what) {
  return record("check_numerics", {x}, {{"what", what}});
}
Array check_range(const Array& x, float low, float high, const std::string& what,
                  const std::string& cure) {
  return record("check_range", {x},
                {{"cure", cure},
                 {"high", static_cast<double>(high)},
                 {"low", static_cast<double>(low)},
                 {"what", what}});
}
Array after(const Array& x, const Array& done) { return record("after", {x, done}); }
Array wait_for(const Array& x, double seconds) {
  return record("wait_for", {x}, {{"seconds", seconds}});
}
Array cast(const Array& x, DType to) {
  if (x.defined() && x.dtype() == to && to != DType::kString) return x;
  return record("cast", {x}, {{"to", static_cast<std::int64_t>(to)}});
}

}  // namespace cairn
