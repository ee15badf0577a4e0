#include "collective/base/call.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn {
namespace {

std::string describe(const AllReduceBuffer& reduction) {
  return str("the ", reduce_op_name(reduction.op), " of ", reduction.elements, " ",
             dtype_name(reduction.dtype), lies_on_device(reduction) ? " on a device" : "");
}

bool same(const AllReduceBuffer& a, const AllReduceBuffer& b) {
  return a.op == b.op && a.dtype == b.dtype && a.elements == b.elements &&
         lies_on_device(a) == lies_on_device(b);
}

// The part in which they differ, as each has it; the whole call where there is no such part. Of a
// model's hundred gradients the first that is not alike says more than a hundred shapes.
std::string describe_difference(const CollectiveCall& mine, const CollectiveCall& other) {
  if (mine.kind != other.kind || mine.kind != CallKind::kAllReduce) return describe(mine);
  if (mine.reductions.size() != other.reductions.size()) return describe(mine);
  for (std::size_t i = 0; i < mine.reductions.size(); ++i) {
    if (!same(mine.reductions[i], other.reductions[i]))
      return str("all_reduce whose value ", i, " is ", describe(mine.reductions[i]));
  }
  return describe(mine);
}

// Whether two members' calls can meet. What all_gather and broadcast carry may differ: its type
// travels with it.
bool agree(const CollectiveCall& a, const CollectiveCall& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == CallKind::kBroadcast) return a.root == b.root;
  if (a.kind == CallKind::kReduce)
    return a.root == b.root && a.op == b.op && a.value.type() == b.value.type();
  return std::ranges::equal(a.reductions, b.reductions, same);
}

// A mean of integers would have to be rounded, and no one rounding is what all callers expect.
void check_summable(ReduceOp op, DType dtype) {
  const bool summable =
      dtype == DType::kFloat32 || dtype == DType::kInt32 || dtype == DType::kInt64;
  if (!summable)
    throw InvalidArgumentError(str("a collective sums float32, int32 and int64, not ",
                                   dtype_name(dtype), ": cast the value first"));
  if (op == ReduceOp::kMean && dtype != DType::kFloat32)
    throw InvalidArgumentError(
        str("a collective's mean is of float32, not ", dtype_name(dtype), ": ask for the sum"));
}

}  // namespace

std::uint64_t own_bytes(const CollectiveCall& call, int rank) {
  std::uint64_t bytes = 0;
  for (const AllReduceBuffer& each : call.reductions)
    bytes += static_cast<std::uint64_t>(each.elements) * dtype_bytes(each.dtype);
  const bool passes = call.kind == CallKind::kAllGather || call.kind == CallKind::kReduce ||
                      (call.kind == CallKind::kBroadcast && call.root == rank);
  if (passes && call.value.defined()) bytes += call.value.bytes();
  return bytes;
}

std::string describe(const CollectiveCall& call) {
  switch (call.kind) {
    case CallKind::kAllReduce: {
      std::int64_t elements = 0;
      for (const AllReduceBuffer& each : call.reductions) elements += each.elements;
      const bool on_devices = std::ranges::any_of(call.reductions, lies_on_device);
      return str("all_reduce of ", call.reductions.size(), " values (", elements, " elements",
                 on_devices ? ", on devices)" : ")");
    }
    case CallKind::kBroadcast: return str("broadcast from rank ", call.root);
    case CallKind::kAllGather: return "all_gather";
    case CallKind::kReduce:
      return str("reduce to rank ", call.root, " of the ", reduce_op_name(call.op), " of ",
                 call.value.type().to_string());
    case CallKind::kBarrier: return "barrier";
  }
  return "an unknown call";
}

std::string difference(const CollectiveCall& one, int rank_of_one, const CollectiveCall& other,
                       int rank_of_other) {
  if (agree(one, other)) return {};
  return str("rank ", rank_of_one, " calls ", describe_difference(one, other), ", rank ",
             rank_of_other, " calls ", describe_difference(other, one));
}

void check_call(const CollectiveCall& call, int rank, int size) {
  const bool has_root = call.kind == CallKind::kBroadcast || call.kind == CallKind::kReduce;
  if (has_root && (call.root < 0 || call.root >= size))
    throw InvalidArgumentError(
        str(describe(call), ": the group has ", size, " members, ranks 0 to ", size - 1));
  const bool gives = call.kind == CallKind::kAllGather || call.kind == CallKind::kReduce ||
                     (call.kind == CallKind::kBroadcast && call.root == rank);
  if (gives && !call.value.defined())
    throw InvalidArgumentError(str("rank ", rank, " passes no value to a collective"));
  if (call.kind == CallKind::kReduce) check_summable(call.op, call.value.dtype());
  for (const AllReduceBuffer& each : call.reductions) check_summable(each.op, each.dtype);
}

}  // namespace cairn
