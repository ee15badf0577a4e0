// Arguments and results of Strategy::run, in both of the places where it is called: on its own,
// where values are at hand, and within a function that is being traced, where they are recorded.
#pragma once
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/graph/function.h"
#include "strategy/base/distributed_values.h"

namespace cairn {

// An argument of run(): a bare value (a Tensor, an Array, a number, a Variable), which all replicas
// get; a per-replica value, of which each replica gets its own; or what stands for a dataset: what
// the strategy's iterate() or its coordinator made, and in a traced function that function's own
// Iterator.
struct RunArgument
    : std::variant<Tensor, PerReplica, std::shared_ptr<const IteratorSource>, Iterator> {
  using Value = std::variant<Tensor, PerReplica, std::shared_ptr<const IteratorSource>, Iterator>;
  template <typename T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, RunArgument>)
      RunArgument(T&& value)  // NOLINT(google-explicit-constructor)
      : Value(converted(std::forward<T>(value))) {}

 private:
  // Everything that converts to an Array becomes a PerReplica, which is then bare: among the
  // alternatives of the variant a RunValue, which is an Array and converts to a Tensor, could not
  // choose. A Tensor stays one, so that no Array is made of it only to be evaluated again.
  template <typename T>
  static Value converted(T&& value) {
    constexpr bool kIsArray =
        std::is_convertible_v<T&&, Array> && !std::is_same_v<std::remove_cvref_t<T>, Tensor>;
    constexpr bool kFits = kIsArray || std::is_constructible_v<Value, T&&>;
    static_assert(kFits,
                  "An argument of Strategy::run is a Tensor, an Array, a number, a Variable, a "
                  "per-replica value, a dataset of iterate() or of "
                  "the ClusterCoordinator, or an Iterator of the function being traced");
    if constexpr (kIsArray)
      return Value(std::in_place_type<PerReplica>, std::forward<T>(value));
    else if constexpr (kFits)
      return Value(std::forward<T>(value));
    else
      return Tensor();
  }
};

// The names of a function's outputs, in their order; empty names for plain results. Shared, because
// a run of a registered function points into its graph instead of copying them.
using OutputNames = std::shared_ptr<const std::vector<std::string>>;

// The outputs of a run, in the order of the function's own (core/graph/function.h says how a nest
// lies flat). With several replicas each of them is a per-replica value.
class RunResult {
 public:
  // Made by Strategy::run. `names` runs beside `values`; null: the outputs have no names.
  explicit RunResult(std::vector<PerReplica> values, OutputNames names = nullptr)
      : values_(std::move(values)), names_(std::move(names)) {}
  // By place. std::out_of_range: there are not so many.
  const PerReplica& operator[](std::size_t i) const { return at(i); }
  const PerReplica& at(std::size_t i) const { return values_.at(i); }
  // By name, or by the way into the nest that the function returned: "loss", "b/1/0".
  //   Errors  InvalidArgument naming the nearest: there is none of that name.
  const PerReplica& get(const std::string& name) const;
  // The only output of most functions, a loss say, or the first of several. std::out_of_range:
  // there is none.
  const PerReplica& front() const { return at(0); }
  const PerReplica& back() const { return values_.at(values_.size() - 1); }
  // How many values the function returned; none, if it returned nothing.
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  // Their names, in their order; null: they have none.
  const OutputNames& names() const { return names_; }
  // In their order: for (const PerReplica& value : result) ...
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  // All numbers, where the values are at hand and each is one for all replicas.
  //   Errors  as of RunValue::tensor().
  operator std::vector<Tensor>() const;  // NOLINT(google-explicit-constructor)
  // All values, to go on recording with. One with a value per replica is an Array without a value
  // there: reduce it first.
  operator std::vector<Array>() const {  // NOLINT(google-explicit-constructor)
    return {values_.begin(), values_.end()};
  }

 private:
  // Each value is bare with one replica, and per-replica with several.
  std::vector<PerReplica> values_;
  OutputNames names_;
};

}  // namespace cairn
