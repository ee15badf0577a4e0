// Constants, arguments, and what reaches outside of the graph: iterators and variables.
#include "core/graph/custom_rule.h"
#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"
#include "core/graph/reduce_op.h"

namespace cairn {
namespace {

using infer::OpTypes;

OpTypes infer_constant(const OpInputs& in) {
  const Tensor& value = in.attributes.get<Tensor>("value");
  if (!value.defined()) infer::fail("the constant has no value");
  return {value.type()};
}

OpTypes infer_subject(const OpInputs& in) { return {in.subject.begin(), in.subject.end()}; }

// As tf.gather along axis 0: the ids' shape S and the row's shape make [S..., row...].
OpTypes infer_gather_variable(const OpInputs& in) {
  infer::want_dtype(in, 0, infer::kIntegers);
  const TensorType& variable = in.subject[0];
  if (variable.shape.rank() == 0) infer::fail("the variable is a scalar and has no rows");
  std::vector<std::int64_t> dims = in.types[0].shape.dims();
  dims.insert(dims.end(), variable.shape.dims().begin() + 1, variable.shape.dims().end());
  return {{variable.dtype, Shape(std::move(dims))}};
}

// Optimizers calculate in float32; the assignments that calculate are defined for integers too,
// but for division, and plain assignment for every dtype.
void check_rule_dtype(RuleKind kind, DType dtype) {
  bool arithmetic = dtype == DType::kFloat32 || dtype == DType::kInt32 || dtype == DType::kInt64;
  if (kind == RuleKind::kAssignDiv) arithmetic = dtype == DType::kFloat32;
  if (kind == RuleKind::kAssign || (is_assignment(kind) ? arithmetic : dtype == DType::kFloat32))
    return;
  infer::fail("the rule \"", rule_name(kind), "\" cannot update a variable of ", dtype_name(dtype));
}

// The number of rows is the number of ids, which may be unknown until the graph runs.
void check_rows(const TensorType& variable, const TensorType& ids, const TensorType& rows) {
  if (variable.shape.rank() == 0) infer::fail("the variable is a scalar and has no rows");
  if (ids.dtype != DType::kInt64 || ids.shape.rank() != 1)
    infer::fail("ids are ", ids.to_string(), "; int64[n] is wanted");
  TensorType wanted{variable.dtype, variable.shape.with_dim(0, ids.shape[0])};
  if (rows.dtype != wanted.dtype || !infer::shapes_agree(rows.shape, wanted.shape))
    infer::fail("rows are ", rows.to_string(), "; ", wanted.to_string(), " is wanted");
}

// Inputs: the value, or ids and rows; then the learning rate, unless the rule is an assignment.
OpTypes infer_update(const OpInputs& in) {
  const auto& rule = in.attributes.get<UpdateRule>("rule");
  bool sparse = in.attributes.get<bool>("sparse");
  verify_rule(rule);
  if (!has_operations(rule)) infer::fail("a custom rule without its operations");
  const TensorType& variable = in.subject[0];
  check_rule_dtype(rule.kind, variable.dtype);
  std::size_t values = sparse ? 2 : 1, wanted = values + (is_assignment(rule.kind) ? 0 : 1);
  if (in.types.size() != wanted) infer::fail(in.types.size(), " inputs; this rule takes ", wanted);
  if (sparse)
    check_rows(variable, in.types[0], in.types[1]);
  else if (in.types[0].dtype != variable.dtype ||
           !infer::shapes_agree(in.types[0].shape, variable.shape))
    infer::fail("the variable is ", variable.to_string(), ", the value is ",
                in.types[0].to_string());
  if (wanted > values && in.types[values] != TensorType{DType::kFloat32, Shape{}})
    infer::fail("the learning rate is ", in.types[values].to_string(), "; float32[] is wanted");
  return {};
}

// The same of a variable to whose update each replica in sync brings a share.
OpTypes infer_update_shared(const OpInputs& in) {
  parse_aggregation(in.attributes.get<std::string>("shares"));
  return infer_update(in);
}

const OpDef kEffectsOps[] = {
    {"constant", 0, 0, "value", infer_constant, nullptr, OpFlags::kConstant},
    {"argument", 0, 0, "index", infer_subject, nullptr, OpFlags::kNone, 0, Effect::kArgument},
    {"iterator_next", 0, 0, "iterator", infer_subject, nullptr, OpFlags::kNone, 0,
     Effect::kAdvance},
    {"read_variable", 0, 0, "variable", infer_subject, nullptr, OpFlags::kNone, 0, Effect::kRead},
    {"gather_variable", 1, 1, "variable", infer_gather_variable, nullptr, OpFlags::kNone, 0,
     Effect::kRead},
    {"update_shared", 1, 3, "variable rule sparse shares", infer_update_shared, nullptr,
     OpFlags::kAlwaysLive | OpFlags::kShared, 0, Effect::kUpdate},
    {"update_variable", 1, 3, "variable rule sparse", infer_update, nullptr, OpFlags::kAlwaysLive,
     0, Effect::kUpdate},
};

}  // namespace

std::span<const OpDef> effect_ops() { return kEffectsOps; }

}  // namespace cairn
