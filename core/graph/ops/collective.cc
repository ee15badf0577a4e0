// Operations that the replicas of a step compute together.
#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"
#include "core/graph/reduce_op.h"

namespace cairn {
namespace {

using infer::OpTypes;

ReduceOp reduction_of(const Attributes& attributes) {
  return parse_reduce_op(attributes.get<std::string>("reduction"));
}

// A mean of integers would have to be rounded, so only floats have one.
OpTypes infer_all_reduce(const OpInputs& in) {
  const ReduceOp op = reduction_of(in.attributes);
  for (std::size_t i = 0; i < in.types.size(); ++i)
    infer::want_dtype(in, static_cast<int>(i),
                      op == ReduceOp::kMean ? infer::kFloats : infer::kArithmetic);
  return {in.types.begin(), in.types.end()};
}

// Every replica's loss depends on every replica's input: the gradient of what all of them lose
// together is the same reduction of their gradients. Output i has input i alone.
std::vector<Array> grad_all_reduce(const Array& y, const Array& dy) {
  std::vector<Array> gradients(y.node()->inputs.size());
  gradients[static_cast<std::size_t>(y.output())] =
      all_reduce(reduction_of(y.node()->attributes), dy);
  return gradients;
}

const OpDef kCollectiveOps[] = {
    {"all_reduce", 1, OpDef::kAny, "reduction", infer_all_reduce, grad_all_reduce,
     OpFlags::kGradientOfEachOutput | OpFlags::kInPlace, 0, Effect::kAllReduce},
};

}  // namespace

std::span<const OpDef> collective_ops() { return kCollectiveOps; }

std::string_view reduce_op_name(ReduceOp op) { return op == ReduceOp::kSum ? "sum" : "mean"; }

ReduceOp parse_reduce_op(std::string_view name) {
  for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean})
    if (name == reduce_op_name(op)) return op;
  throw InvalidArgumentError(
      str("there is no reduction \"", name, "\": \"sum\" or \"mean\" is wanted"));
}

std::string_view aggregation_name(Aggregation aggregation) {
  switch (aggregation) {
    case Aggregation::kNone: return "none";
    case Aggregation::kSum: return "sum";
    case Aggregation::kMean: return "mean";
    case Aggregation::kOnlyFirstReplica: return "only_first_replica";
  }
  CAIRN_CHECK(false, "an aggregation of number ", static_cast<int>(aggregation));
}

Aggregation parse_aggregation(std::string_view name) {
  for (Aggregation each :
       {Aggregation::kNone, Aggregation::kSum, Aggregation::kMean, Aggregation::kOnlyFirstReplica})
    if (name == aggregation_name(each)) return each;
  throw InvalidArgumentError(str("there is no aggregation \"", name,
                                 "\": \"none\", \"sum\", \"mean\" or \"only_first_replica\" "
                                 "is wanted"));
}

// One node for all parts, so that the replicas exchange them together.
std::vector<Array> all_reduce(ReduceOp op, const std::vector<Array>& parts) {
  auto node = record_effect({"all_reduce",
                             parts,
                             {{"reduction", std::string(reduce_op_name(op))}},
                             {},
                             nullptr,
                             nullptr});
  std::vector<Array> reduced;
  for (std::size_t i = 0; i < parts.size(); ++i) reduced.emplace_back(node, static_cast<int>(i));
  return reduced;
}

Array all_reduce(ReduceOp op, const Array& x) { return all_reduce(op, std::vector<Array>{x})[0]; }

}  // namespace cairn
