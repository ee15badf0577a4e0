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

// The names stand in graphs as an attribute of all_reduce.
std::string_view reduce_op_name(ReduceOp op);     // "sum", "mean": as graphs and wires have it
ReduceOp parse_reduce_op(std::string_view name);  // InvalidArgument: neither

}  // namespace cairn
