// CollectiveCall: what a member asks of its group in one call, of which everything but the values
// must be the same on all members.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/exec/all_reduce_buffer.h"
#include "core/tensor/tensor.h"

namespace cairn {

// The numbers travel between members; never renumber.
enum class CallKind : std::uint8_t {
  kAllReduce = 0,
  kBroadcast = 1,
  kAllGather = 2,
  kReduce = 3,
  kBarrier = 4,
};

// When a call met another member's: written by the group's thread before the call ends.
struct CallTimes {
  TimePoint met{};  // on the steady clock; as it began there, if another had made it before
};

struct CollectiveCall {
  CallKind kind = CallKind::kBarrier;
  int root = 0;                             // of broadcast and reduce
  ReduceOp op = ReduceOp::kSum;             // of reduce
  Tensor value;                             // of broadcast, on its root; of all_gather; of reduce
  std::vector<AllReduceBuffer> reductions;  // of all_reduce
  std::shared_ptr<CallTimes> times = nullptr;  // null: not wanted
};

// The bytes of the member's own values in it (CollectiveCounts).
std::uint64_t own_bytes(const CollectiveCall& call, int rank);
// "all_reduce of 3 values (20 elements)", "broadcast from rank 1": for messages.
std::string describe(const CollectiveCall& call);
// How two members' calls differ, "rank 0 calls barrier, rank 2 calls all_gather"; empty if they
// agree.
std::string difference(const CollectiveCall& one, int rank_of_one, const CollectiveCall& other,
                       int rank_of_other);
// Whether a group of `size` members can do it at all.
//   Errors  InvalidArgument: a dtype that has no sum (or, if it is no float32, no mean), a root
//           that is no rank, a value that is undefined. Nothing was asked of the group then.
void check_call(const CollectiveCall& call, int rank, int size);

}  // namespace cairn
