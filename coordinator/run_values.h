// What Strategy::run takes and gives, in both of the places where it is called: on its own, where
// values are at hand, and within a function that is being traced, where they are recorded.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/graph/array.h"
#include "core/graph/function.h"
#include "core/tensor/tensor.h"

namespace cairn {

// An argument of run(): a Tensor, an Array (a number or a Variable becomes one), or what stands for
// a dataset: what the strategy's iterate() or its coordinator made, and in a traced function that
// function's own Iterator.
struct RunArgument : std::variant<Tensor, Array, std::shared_ptr<const IteratorSource>, Iterator> {
  using Value = std::variant<Tensor, Array, std::shared_ptr<const IteratorSource>, Iterator>;
  template <typename T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, RunArgument>)
      RunArgument(T&& value)  // NOLINT(google-explicit-constructor)
      : Value(converted(std::forward<T>(value))) {}

 private:
  template <typename T>
  static Value converted(T&& value) {
    constexpr bool kFits = std::is_constructible_v<Value, T&&>;
    static_assert(kFits,
                  "An argument of Strategy::run is a Tensor, an Array, a number, a Variable, a "
                  "dataset of iterate() or of "
                  "the ClusterCoordinator, or an Iterator of the function being traced");
    if constexpr (kFits)
      return Value(std::forward<T>(value));
    else
      return Tensor();
  }
};

// What one replica returned. It is an Array, to go on recording with; outside of a traced function
// its value is there.
class RunValue : public Array {
 public:
  explicit RunValue(Array value) : Array(std::move(value)) {}
  // Errors FailedPrecondition: the run was recorded, and its value is not known before the traced
  // function runs.
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

// The outputs of a run, in the order of the function's own (core/graph/function.h says how a nest
// lies flat).
class RunResult {
 public:
  explicit RunResult(std::vector<RunValue> values) : values_(std::move(values)) {}
  const RunValue& operator[](std::size_t i) const { return at(i); }
  const RunValue& at(std::size_t i) const { return values_.at(i); }
  const RunValue& front() const { return at(0); }
  const RunValue& back() const { return values_.at(values_.size() - 1); }
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  // Errors  as of RunValue::tensor().
  operator std::vector<Tensor>() const;  // NOLINT(google-explicit-constructor)
  operator std::vector<Array>() const {
    return {values_.begin(), values_.end()};
  }  // NOLINT(google-explicit-constructor)

 private:
  std::vector<RunValue> values_;
};

}  // namespace cairn
