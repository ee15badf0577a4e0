// StrategyExtended: what code that must know how it is distributed (an optimizer, a metric) asks of
// a strategy, under the names of the reference: where replicas and variables are, and how a value
// that was reduced gets to where a variable lies.
//
//   Array updated = get_replica_context().merge_call(
//       [&](Strategy& strategy, const PerReplica& gradient) {
//         const StrategyExtended extended = strategy.extended();
//         const RunValue sum = extended.reduce_to(ReduceOp::kSum, gradient, w);
//         extended.update(
//             w, [](const Variable& v, const Array& g) { v.assign_sub(g * 0.1f); }, sum);
//         ...
//
//   Source  tf.distribute.StrategyExtended of TensorFlow 2.21. What of it Cairn has no use for, and
//           why, says docs/differences.md.
//   Thread  the strategy's.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/graph/variable.h"
#include "strategy/base/distributed_values.h"

namespace cairn {

class Strategy;

// While it lives, variables made by the strategy lie where another one does: on parameter servers
// on its shard, in one part, and they take no turn of a round-robin placement. Where all variables
// lie in one process it changes nothing. Nests; ends before its strategy.
class [[nodiscard]] Colocation {
 public:
  Colocation(std::vector<std::string>& names, const std::string& beside) : names_(names) {
    names_.push_back(beside);
  }
  ~Colocation() { names_.pop_back(); }
  Colocation(const Colocation&) = delete;
  Colocation& operator=(const Colocation&) = delete;

 private:
  std::vector<std::string>& names_;
};

// Where a reduced value is to be: where a variable is, where another value's replicas are, or on
// devices by their names.
class Destinations {
 public:
  Destinations(const Variable& variable)  // NOLINT(google-explicit-constructor)
      : variable_(variable) {}
  Destinations(const PerReplica&) {}              // NOLINT(google-explicit-constructor)
  Destinations(std::vector<std::string> devices)  // NOLINT(google-explicit-constructor)
      : devices_(std::move(devices)) {}
  Destinations(const std::string& device)  // NOLINT(google-explicit-constructor)
      : devices_{device} {}
  Destinations(const char* device) : devices_{device} {}  // NOLINT(google-explicit-constructor)

 private:
  friend class StrategyExtended;
  Variable variable_;
  std::vector<std::string> devices_;
};

// A view of a strategy, which outlives it; made by Strategy::extended().
class StrategyExtended {
 public:
  explicit StrategyExtended(Strategy& strategy) : strategy_(strategy) {}

  // ---- where things are ----

  // The device of each replica of this process, "cpu:0", "cpu:1", ...; on a cluster that of each
  // worker, "/job:worker/task:0/cpu:0".
  std::vector<std::string> worker_devices() const;
  // The devices that have variables: those of all copies, or the one place, or each ps,
  // "/job:ps/task:0/cpu:0".
  std::vector<std::string> parameter_devices() const;
  // Whether this strategy made it.
  bool variable_created_in_scope(const Variable& variable) const;
  // Whether functions must have shapes that are all known when they are traced. No strategy wants
  // that.
  bool experimental_require_static_shapes() const { return false; }

  // auto beside = strategy.extended().colocate_vars_with(table);
  //   Errors  InvalidArgument: `variable` is another strategy's. When a variable is made on
  //           parameter servers: `variable` is in several parts.
  Colocation colocate_vars_with(const Variable& variable) const;

  // ---- values: in cross-replica context, or without a scope ----

  // The same value as Strategy::reduce() returns. Whatever the destinations, it is one value, which
  // a host's memory holds once for all its devices.
  //   Errors  those of reduce(). InvalidArgument: the destination is a variable of another
  //           strategy, or a device that there is not.
  RunValue reduce_to(ReduceOp op, const PerReplica& value, const Destinations& destinations) const;
  // The same for each pair, in their order.
  std::vector<RunValue> batch_reduce_to(
      ReduceOp op,
      const std::vector<std::pair<PerReplica, Destinations>>& value_destination_pairs) const;

  // Calls change(variable, arguments...) in cross-replica context, so that what it assigns is
  // assigned to all copies of the variable, and returns what it returns. The reference calls it
  // once for each copy; all copies here take the same change, which is therefore computed once.
  //   Errors  FailedPrecondition: called in replica context (use merge_call). InvalidArgument: the
  //           variable is another strategy's; an argument is one value per replica, of which no
  //           copy could say which is its own: reduce it first.
  template <typename F, typename... A>
  auto update(const Variable& variable, F&& change, const A&... arguments) const {
    const std::vector<Array> own = update_arguments(variable, {PerReplica(arguments)...});
    const Scope open = update_scope();
    return call(std::forward<F>(change), variable, own, std::index_sequence_for<A...>{});
  }

 private:
  void require_own(const char* what, const Variable& variable) const;
  void require_destinations(const Destinations& destinations) const;
  std::vector<Array> update_arguments(const Variable& variable,
                                      const std::vector<PerReplica>& arguments) const;
  Scope update_scope() const;
  template <typename F, std::size_t... I>
  static auto call(F&& change, const Variable& variable, const std::vector<Array>& own,
                   std::index_sequence<I...>) {
    return std::forward<F>(change)(variable, own[I]...);
  }

  Strategy& strategy_;
};

}  // namespace cairn
