// From the functions of several replicas in sync, each traced in that replica's own context, the
// one function that runs them all: it reads once, and pushes once.
//
// Where replicas meet, it has what they come to:
//   all_reduce       their sum or their mean
//   update_shared    one update, of their shares by its aggregation: values are added or averaged,
//                    rows stand behind one another, or the first replica's alone count
//   update_variable  the first replica's: all have the same one, in cross-replica context
// Values that all replicas compute alike, as in cross-replica code, are computed once; a variable
// is read once, however many replicas read it.
//
//   Order   Values are added in the order of replicas, so that a run repeats bit for bit.
//   Random  Replica i of n draws what replica number n * r + i draws, where the function runs as
//           replica r of others.
//   Data    Replicas take elements in turn: element n * k + i is replica i's k-th, as
//           Dataset::deal() has them.
//   Thread  any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/graph/function.h"

namespace cairn {

struct ReplicaPart {
  std::shared_ptr<const ConcreteFunction> function;
  // Which arguments of the joined function its own are, in their order, the worker's index left
  // out: that is the same for all, and the last.
  std::vector<std::size_t> arguments;
};

enum class JoinedOutputs : std::uint8_t {
  kOfFirst,  // the first replica's: a call's, which are alike on all
  kOfAll,    // the first replica's, then the second's, and so on
};

//   Errors  InvalidArgument: the replicas do not meet in the same places, or take different numbers
//           of elements; says where they part.
ConcreteFunction join_replicas(const std::vector<ReplicaPart>& parts, JoinedOutputs outputs);

// Where one replica meets the others, all must: else it would wait for a meeting to which they do
// not come.
//   Errors  InvalidArgument: `own`, of replica number `replica`, meets elsewhere than replica 0's.
void require_same_meetings(const Graph& first, const Graph& own, std::size_t replica);

}  // namespace cairn
