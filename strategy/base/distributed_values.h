// Values as strategies give them: bare, or one per replica.
//
// A step that runs on several replicas returns a value for each of them: a per-replica value
// (tf.distribute.DistributedValues). reduce(), gather() and experimental_local_results() of the
// strategy make bare values of it again. With one replica there is nothing to tell apart, so every
// value is bare.
//   Thread  values may be copied across threads; what is recorded belongs to one, as Arrays do.
#pragma once
#include <concepts>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/graph/array.h"
#include "core/graph/reduce_op.h"
#include "core/tensor/tensor.h"

namespace cairn {

// "SUM" or "MEAN", in upper or lower case, as tf.distribute takes it.
//   Errors  InvalidArgument: another name.
ReduceOp reduce_op_of(std::string_view name);

// A bare value. It is an Array, to go on recording with; outside of a traced function its number is
// known too.
class RunValue : public Array {
 public:
  explicit RunValue(Array value) : Array(std::move(value)) {}
  // The number, whose shape is the Array's.
  //   Errors  FailedPrecondition: the value was recorded into a function that is being traced, and
  //           is known only when that one runs; or it has one value per replica.
  const Tensor& tensor() const;
  operator const Tensor&() const { return tensor(); }  // NOLINT(google-explicit-constructor)
  template <typename T>
  std::span<const T> values() const {
    return tensor().values<T>();
  }
  template <typename T>
  T item() const {
    return tensor().item<T>();
  }
};

// One value per replica, or a bare one, which is the same for all of them. A bare one is used as
// the RunValue that it is; one with a value per replica is no Array, and operations refuse it.
class PerReplica : public RunValue {
 public:
  // A bare value: an Array, a Tensor, a number, a Variable (its value now).
  template <typename T>
  requires(!std::same_as<std::remove_cvref_t<T>, PerReplica> && std::convertible_to<T&&, Array>)
      PerReplica(T&& value)  // NOLINT(google-explicit-constructor)
      : RunValue(Array(std::forward<T>(value))) {}
  // values[i] belongs to replica i; their shapes may differ. One value alone unwraps: it is bare.
  //   Errors  InvalidArgument: there is none.
  explicit PerReplica(std::vector<Array> values);

  // Whether there is one value per replica.
  bool is_per_replica() const { return !values_.empty(); }
  // How many values there are: 1, if it is bare.
  std::size_t size() const { return is_per_replica() ? values_.size() : 1; }
  // The value of replica `replica`; a bare value is every replica's.
  //   Errors  InvalidArgument: there is one value per replica, and no such replica.
  const Array& of_replica(std::size_t replica) const;

 private:
  std::vector<Array> values_;  // empty: bare
};

// Which replica a value is asked for (experimental_distribute_values_from_function).
struct ValueContext {
  int replica_id_in_sync_group = 0;  // [0, num_replicas_in_sync)
  int num_replicas_in_sync = 1;
};

}  // namespace cairn
