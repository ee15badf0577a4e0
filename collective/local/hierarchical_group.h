// HierarchicalGroup: a Collective of all replicas of several processes, each of which has as many
// of them as the others, on threads of its own.
//
//   auto processes = make_network_group(options);                // one member for this process
//   auto members = make_hierarchical_group(*processes, 2);       // one for each of its replicas
//   ...                                         one of them to each replica's thread
//
// Replica i of the n of process p has rank p * n + i. A call goes up and down: when all replicas of
// a process have made it, their values become one; the processes exchange what they have come to;
// the outcome is handed out. So the values of a process cross the network once, however many
// replicas it has.
//   Source  the hierarchical all-reduce of "Highly Scalable Deep Learning Training System with
//           Mixed-Precision", Jia et al., 2018.
//
//   Order    A process adds in the order of its replicas; then the sums are added as the group of
//            processes does it. The bits are those of each run with as many processes and replicas,
//            not those of a flat group of as many members.
//   When     The group has a thread in each process, which adds, copies, and makes the calls of the
//            processes' group: an all-reduce goes on from begin_all_reduce() on. The calls of the
//            processes are in the order of the replicas' calls.
//   Failures One error ends the group on all replicas of all processes: the first one of the
//            replicas here, or that of the processes' group, whose task it names. What ends it here
//            aborts the processes' group.
//   Leaving  A member that is destroyed leaves; the group of processes hears of it when another
//            replica here needs it.
//   Memory   A reduction must have an owner, as on a network: after an error its values may be used
//            until that is let go of.
//   Counts   of a replica: its own calls and bytes; it waits until the slowest replica here has
//            come, and then as the processes' group counts.
#pragma once
#include <memory>
#include <vector>

#include "collective/base/collective.h"
#include "core/base/clock.h"

namespace cairn {

// The members of this process, by rank. `processes` outlives them, and is not used beside them
// while a call of theirs goes on. Between their calls it may be, by all processes alike. A process
// of one replica asks it without a thread between, and `timeout` is that group's own.
//   `timeout`  how long a call waits for the other replicas of this process; then:
//              DeadlineExceeded naming them. For other processes the limit is that of their group.
//   Errors     InvalidArgument: less than one replica, or a timeout that is not positive.
//   Cost       an all-reduce adds and copies each replica's values once, on one thread. all_gather
//              makes a call of the processes for each replica of a process.
std::vector<std::unique_ptr<Collective>> make_hierarchical_group(
    Collective& processes, int replicas, Duration timeout = kCollectiveTimeout);

}  // namespace cairn
