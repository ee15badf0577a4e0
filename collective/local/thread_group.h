// ThreadGroup: a Collective whose members are threads of one process.
//
//   auto members = make_thread_group(2, std::chrono::minutes(1));
//   ...                                         one of them to each replica's thread
//
// Values are summed where they lie: each chunk of a value is read from all members' memory, added
// in a fixed order, and written back into all of them; nothing is copied to a third place.
// broadcast() and all_gather() hand out the members' own tensors, which share their buffers.
//
//   When    Members inside wait() compute an all-reduce: they claim chunks one after another until
//           none is left. So a member that has begun the call and still computes delays no other,
//           and a waiting member uses its core. begin_all_reduce() computes nothing, because it
//           must return at once: the last member to begin would do the others' share while they go
//           on. The group has no thread of its own either, because the replicas have as many
//           threads as there are cores. With ThreadGroupOptions::adds one member adds alone; the
//           others wait for it.
//   Leaving a member that is destroyed leaves. Calls that all had begun and that were computed stay
//           good; others fail with Unavailable, "rank 1 has left the group".
//   Memory  once wait() has returned or thrown, nothing is written to this member's values any
//           more, by any thread; nor once the member was destroyed.
#pragma once
#include <memory>
#include <vector>

#include "collective/base/collective.h"
#include "collective/base/sum_order.h"
#include "core/base/clock.h"

namespace cairn {

struct ThreadGroupOptions {
  // How long a call waits for the others to make theirs, and for a chunk that another has claimed:
  // the members then fail with DeadlineExceeded.
  Duration timeout = kCollectiveTimeout;
  SumOrder order = SumOrder::kRanks;  // of all-reduces and reductions
  // Which member computes all-reduces, by rank.
  static constexpr int kAllMembers = -1;  // those that wait
  int adds = kAllMembers;
};
// The members, by rank.
//   Errors  InvalidArgument: less than one member, a timeout that is not positive, or a member that
//           adds and that there is not.
std::vector<std::unique_ptr<Collective>> make_thread_group(int size,
                                                           const ThreadGroupOptions& options);
// By their ranks, all of them computing.
std::vector<std::unique_ptr<Collective>> make_thread_group(int size,
                                                           Duration timeout = kCollectiveTimeout);

}  // namespace cairn
