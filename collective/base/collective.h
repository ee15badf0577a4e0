// Collective: what the members of a group of replicas compute together, whatever lies between them:
// the memory of one process (thread_group.h), or a network.
//
// Every member makes the same calls in the same order. A call meets the calls of the same number of
// all other members, so the second call of one member never meets the third of another.
//
//   const auto ticket = group.begin_all_reduce(gradients);
//   ...                                  compute what does not depend on them
//   group.wait(ticket);                  every member's gradients now hold the same bits
//
//   Errors  Unavailable naming the member: it has left, or was lost. DeadlineExceeded naming those
//           that did not come within the group's timeout. FailedPrecondition: the members' calls
//           differ (another operation, dtype or shape), naming both. After any of them the group
//           is of no more use: every later call of every member raises that error.
//           InvalidArgument: a dtype that has no sum, a root that is no rank; such a call was not
//           made, and the group goes on.
//   Thread  a member object is used by one thread at a time; abort() may be called from any thread.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "collective/base/counts.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/exec/all_reduce_buffer.h"
#include "core/tensor/tensor.h"

namespace cairn {

// How long a call waits for members that have not made theirs, unless the group was made with
// another timeout. A lost member is noticed sooner and by other means; this bound is for a member
// that is alive and busy elsewhere: a step may take minutes, but no call may hang for ever.
inline constexpr Duration kCollectiveTimeout = std::chrono::minutes(10);

class Collective {
 public:
  using Ticket = std::int64_t;  // counts the calls, of whatever kind, that this member made, from 0

  virtual ~Collective();

  virtual int rank() const = 0;  // this member, [0, size)
  virtual int size() const = 0;

  // Begins to replace each value by the sum, or the mean, of what all members have in its place,
  // after everything begun before, and returns at once. Sums are of float32, int32 and int64
  // (integers wrap around), means of float32. The order of summation depends on nothing
  // but the group's size and the values' sizes, so that a run repeats bit for bit, and all members
  // end with the same bits. The values are written to until wait() of this ticket returns, or, if
  // the group has failed, until their owners are let go of.
  virtual Ticket begin_all_reduce(std::vector<AllReduceBuffer> reductions) = 0;
  // Returns once this ticket, and all before it, have ended.
  virtual void wait(Ticket ticket) = 0;

  // Returns member `root`'s `value` on every member; the others pass any tensor, which is ignored.
  virtual Tensor broadcast(const Tensor& value, int root) = 0;
  // Returns the values of all members, by rank. Shapes and dtypes may differ.
  virtual std::vector<Tensor> all_gather(const Tensor& value) = 0;
  // Returns, on `root`, the sum or the mean of the members' values, which have one dtype and shape;
  // on the others, an undefined Tensor.
  virtual Tensor reduce(ReduceOp op, const Tensor& value, int root) = 0;
  // Returns when all members have called it.
  virtual void barrier() = 0;

  // Ends the group for all members, this one included, with this error: its code, and its message
  // behind "rank 1 gave up: ". For a member whose step failed, so that the others do not wait for
  // it. Calls that are complete stay good, and of several errors the group keeps the first.
  //   Thread  any, also while the member's own thread waits in a call.
  virtual void abort(const ErrorParts& error) = 0;

  // Has `act` called once when the group has failed, for whatever reason, or at once if it has; not
  // when the group ends in order. For what waits elsewhere for members that are lost. Groups of one
  // process, whose members cannot be lost without it, need not do it.
  //   Thread  `act` runs on any, and must neither wait nor call the group.
  virtual void when_failed(std::function<void()> /*act*/) {}
  // Raises what the group has failed with, if it has. A group that cannot tell does nothing.
  //   Thread  any, also while the member's own thread waits in a call.
  virtual void require_well() {}

  // Totals over this member's calls so far; zeros if the group does not count.
  virtual CollectiveCounts counts() const { return {}; }
};

}  // namespace cairn
