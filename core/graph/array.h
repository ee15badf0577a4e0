// Array: a lazily recorded value. An operation on arrays records a node and nothing else; eval()
// computes.
//
// One type serves eager use and tracing. A node holds its inputs, so an expression lives as long as
// an Array refers to it. Effects (reads and updates of variables, iterator advances) recorded while
// a function is traced on this thread are kept in program order by the trace.
// Operations are free functions in core/graph/ops.h.
//   Errors  InvalidArgument from the operation that was given wrong dtypes or shapes, naming both.
//   Thread  an Array may be copied across threads; recording belongs to one.
#pragma once
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace cairn {

struct ArrayNode;  // core/graph/recording.h

class Array {
 public:
  Array() = default;  // no value
  // Scalar constants. A floating-point number is float32, a bool is bool. An integer is int32, or
  // int64 where its type has more values; beside an array or a variable of another number type it
  // takes that type: x + 1, ids * 2.
  //   Errors  InvalidArgument: an integer beyond int64, or beyond the type that it would take.
  template <std::floating_point T>
  Array(T value)
      : Array(of_float(static_cast<float>(value))) {}  // NOLINT(google-explicit-constructor)
  template <std::integral T>
  Array(T value) : Array(of_integer(value)) {}  // NOLINT(google-explicit-constructor)
  Array(Tensor value);                          // a constant  NOLINT(google-explicit-constructor)
  Array(std::shared_ptr<const ArrayNode> node, int output)
      : node_(std::move(node)), output_(output) {}

  bool defined() const { return node_ != nullptr; }
  // Known as soon as the operation is recorded. A dimension may be unknown (Shape::kUnknown) until
  // it runs.
  const TensorType& type() const;
  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }
  int rank() const { return shape().rank(); }

  // Computes the value now. FailedPrecondition: it depends on an argument or iterator of a function
  // being traced.
  Tensor eval() const;

  // For core/graph and the layers on it: which node made this array, and which of its outputs it
  // is.
  const std::shared_ptr<const ArrayNode>& node() const { return node_; }
  int output() const { return output_; }
  // This array. If it was made from a C++ integer and `dtype` is a number type, the integer is
  // converted to `dtype`.
  Array beside(DType dtype) const;

  // Not usable: it says why `if (x < y)` cannot be.
  template <typename Never = void>
  explicit operator bool() const {
    static_assert(
        !std::is_void_v<Never>,
        "An Array has no truth value while it is recorded: choose by where(condition, a, b), "
        "or ask for the value by eval().item<bool>()");
    return false;
  }

 private:
  static Array of_float(float value);
  static Array of_bool(bool value);
  static Array of_int(std::int64_t value, DType dtype);
  [[noreturn]] static void refuse_unsigned(std::uint64_t value);
  template <std::integral T>
  static Array of_integer(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      return of_bool(value);
    } else {
      const auto wide = static_cast<std::int64_t>(value);
      if (std::is_unsigned_v<T> && wide < 0) refuse_unsigned(static_cast<std::uint64_t>(value));
      return of_int(wide, std::numeric_limits<T>::digits <= 31 ? DType::kInt32 : DType::kInt64);
    }
  }

  std::shared_ptr<const ArrayNode> node_;
  int output_ = 0;
  bool integer_literal_ = false;
};

// The gradient of a gather: row rows[i] belongs to id ids[i]; equal ids may repeat and mean their
// sum.
struct IndexedSlices {
  Array ids;   // int64 [n]
  Array rows;  // [n, row shape]
  Shape dense_shape;
};

}  // namespace cairn
