// ReplicaRecording: how the code of several replicas in sync is recorded: into a graph for each,
// one after another. Each trace records its own replica's part alone, of cross-replica code too,
// and meets the others in all_reduce and in updates, whenever the function runs.
//
// How the graphs run is the strategy's choice: each on a thread of its own (InSyncStrategy), or all
// of them on one worker (ParameterServerStrategy).
//   Thread  any, for what is const.
#pragma once
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "core/graph/eager.h"
#include "strategy/base/replica_context.h"

namespace cairn {

// nullptr: no strategy's scope is open here.
const StrategyPlace* place_here();
// Where this thread stands, as a strategy sees it. Without a scope a program is in no replica, and
// sees variables as a whole: that is cross-replica context too.
enum class ContextHere : std::uint8_t { kElsewhere, kReplica, kCross };
ContextHere context_here(const Strategy* strategy);

// EagerRuntime::gradients_here() of `replicas` replicas in sync. In the cross-replica context of
// several, a gradient would be one of code that all of them compute alike, and summing it would
// count it as often; the reference refuses it as well.
int gradients_of(ContextHere context, int replicas);

// One replica's share of a change of a variable that several replicas share, or have equal copies
// of. The variable's aggregation combines the shares.
//   Errors  InvalidArgument: there is no aggregation, or it is the mean of other than float32.
VariableChange shared_by_replicas(const VariableSpec& spec, VariableChange change, int replicas);

// Variables that a function's body makes. While it is traced, the body runs once for each replica,
// and makes its variables as often: the first replica's are kept under the name that was asked for,
// and the other replicas are given the same ones in the same order. A layer remembers its
// variables, which are therefore made once in any case.
class TracedVariables {
 public:
  // A function is about to be traced for each replica, the first of which is `first`.
  void begin(int first) {
    first_ = first;
    made_.clear();
  }
  // Is this a trace of a replica that is given what the first one made?
  bool given_here() const;
  // `create(spec)` makes it, for the first.
  //   Errors  InvalidArgument: the first replica made none, or one of another type.
  template <typename Create>
  Variable make(VariableSpec spec, const Create& create);

 private:
  struct Made {
    std::vector<Variable> variables;     // for the first replica, in order
    std::map<int, std::size_t> claimed;  // by replica: how many of them
  };
  Variable given(const VariableSpec& spec);
  static int part_here();
  int first_ = 0;
  std::map<std::string, Made> made_;  // by the name that was asked for
};

class ReplicaRecording {
 public:
  // There are `replicas` in all; this process records `here` of them, from number `first` on.
  ReplicaRecording(Strategy& strategy, VariableCreator& creator, int replicas, int first, int here);

  // Cross-replica context, by whose graph is recorded: a place for each replica here.
  const std::deque<StrategyPlace>& cross_places() const { return cross_places_; }
  // The replica whose graph is being recorded.
  //   Errors  FailedPrecondition naming `what`: none, since this function is not the strategy's.
  int part_here(const char* what) const;
  // A value per replica of which this trace has one: the others record theirs.
  PerReplica spread(Array own, int part) const;

  // All replicas' values combined, recorded here for the replica whose trace this is.
  Array reduced(ReduceOp op, const Array& own) const;
  std::vector<Array> reduced(ReduceOp op, const std::vector<Array>& own) const;
  //   Errors  Unimplemented: a dtype that has no sum.
  Array gathered(const Array& own, int axis) const;
  PerReplica merged(const ReplicaContext& replica, const ReplicaContext::MergeBody& body,
                    const std::vector<Array>& arguments) const;
  //   Errors  Unimplemented: the value is one per replica, of which each trace has its own alone.
  void require_at_hand(const PerReplica& value) const;

 private:
  Strategy& strategy_;
  VariableCreator& creator_;
  const int replicas_, first_;
  std::deque<StrategyPlace> cross_places_;
};

// ---- templates ----
template <typename Create>
Variable TracedVariables::make(VariableSpec spec, const Create& create) {
  if (given_here()) return given(spec);
  const bool traced = part_here() != StrategyPlace::kNoPart;
  const std::string name = spec.name;
  Variable made = create(std::move(spec));
  if (traced) made_[name].variables.push_back(made);
  return made;
}

}  // namespace cairn
