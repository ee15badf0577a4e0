// How values of several replicas, or of several elements, become one.
#pragma once
#include <cstdint>
#include <string_view>

namespace cairn {

// The values of all of them are combined element by element.
enum class ReduceOp : std::uint8_t {
  kSum = 0,
  kMean = 1,  // of float32 only
};

// How the updates that replicas in sync make to a variable become one, as tf.VariableAggregation.
enum class Aggregation : std::uint8_t { kNone, kSum, kMean, kOnlyFirstReplica };

// "none", "sum", "mean", "only_first_replica": as graphs have it. The second is the inverse.
std::string_view aggregation_name(Aggregation aggregation);
Aggregation parse_aggregation(std::string_view name);  // InvalidArgument: none of these

// The names stand in graphs as an attribute of all_reduce.
std::string_view reduce_op_name(ReduceOp op);     // "sum", "mean": as graphs and wires have it
ReduceOp parse_reduce_op(std::string_view name);  // InvalidArgument: neither

}  // namespace cairn
