// The plan of a graph, made once: which nodes run at all, and in which order compute, pulls and
// pushes follow. Everything that needs concrete shapes is in core/exec/bound_plan.h.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/exec/executor.h"
#include "core/graph/graph.h"

namespace cairn {

// One Read of a pull: a variable whole (node is its only member), or rows for one or several
// gathers, whose ids are joined.
struct ReadGroup {
  std::int32_t variable = 0;
  bool whole = false;
  // read_variable or gather_variable; for gathers the order in which the ids are joined
  std::vector<std::int32_t> nodes;
};

// Where the distinct ids of a sparse update come from.
struct UpdateIds {
  // The read whose joined ids are this update's ids, number for number; -1: the update finds its
  // own.
  std::int32_t wave = -1;
  std::int32_t group = -1;
};

// Compute, then at most one thing that is asked from outside: a pull, a push, all-reduces to begin,
// or the end of some that were begun in earlier waves.
//
// All-reduces begin in program order, each as soon as its inputs are computed; waves after it
// compute what does not depend on it, and the first wave that does comes after one that awaits it.
// They are numbered by tickets, 0, 1, ...: all that begin together have one.
struct Wave {
  std::vector<std::int32_t> compute;     // nodes in program order
  std::vector<ReadGroup> reads;          // not empty: pull
  std::vector<std::int32_t> updates;     // not empty: push; nodes in program order
  std::vector<std::int32_t> reductions;  // not empty: begin, with the next ticket
  std::int32_t awaited = -1;             // >= 0: this ticket and all before it
};

class Plan {
 public:
  Plan(Graph graph, std::vector<VariableId> bound, PlanOptions options);

  const Graph graph;
  const std::vector<VariableId> bound;
  const PlanOptions options;
  // A graph that changes no variable gives an example the same bits whichever others are in its
  // batch: a server computes together whatever requests wait. Training steps do not need that, and
  // plain products are a little faster.
  const bool rows_alike;
  std::vector<Wave> waves;            // the last one calls no store, or pushes
  std::vector<UpdateIds> update_ids;  // by node
  // by node: the number of its first output among all values; one more at the end
  std::vector<std::int32_t> value_base;
  std::vector<std::int32_t> producer;  // by value: the node
  // by value: by how many inputs of live nodes, and outputs of the graph, it is used
  std::vector<std::int32_t> uses;
  std::vector<std::int64_t> elements_taken;  // by iterator
  bool all_reduces = false;  // the graph has a live all-reduce, whatever the number of replicas
  // by node: of an iterator_next, which element of its iterator it takes
  std::vector<std::int32_t> advance_number;
  // By variable of the graph: which of its rows live nodes touch, and whether they change any.
  struct VariableUse {
    // Only those that ids name: every read and update is by ids, and no rule moves other rows.
    bool by_ids = true;
    bool changed = false;
  };
  std::vector<VariableUse> variable_uses;

  std::int32_t value(ValueRef ref) const {
    return value_base[static_cast<std::size_t>(ref.node)] + ref.output;
  }
  std::size_t values() const { return producer.size(); }
  // Is the node an all-reduce that needs other replicas?
  bool reduces(const Node& node) const;
  // Does the wave share an update of this one's variable, be it this one, with other replicas?
  bool shares_variable(const Wave& wave, std::int32_t update) const;
  bool live(std::int32_t node) const { return live_[static_cast<std::size_t>(node)]; }

 private:
  void number_values();
  void find_live();
  void count_uses();
  void find_variable_uses();
  void match_update_ids();
  void drop_unneeded();
  std::vector<ValueRef> joined_ids(ValueRef ids) const;
  ValueRef id_source(ValueRef ids) const;

  std::vector<bool> live_;
};

}  // namespace cairn
