// Values: element types, shapes, and Tensor, a value in host memory.
//
// A Tensor is a handle to a 64-byte aligned buffer that is immutable by convention; copies share
// the buffer. The maker of a buffer may write to it until it hands the Tensor on.
//
//     Tensor batch(DType::kFloat32, {2, 3});                      // not initialised
//     std::ranges::fill(batch.mutable_values<float>(), 0.5f);
//     Tensor second = batch.rows(1, 2);                           // [1, 3], the same buffer
//
//   Thread  as std::shared_ptr: handles may be copied across threads, and after the hand-over any
//           number of threads may read the elements and none may write them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace cairn {

// The numbers are those of the wire format; never renumber.
enum class DType : std::uint8_t {
  kFloat32 = 0,
  kInt32 = 1,
  kInt64 = 2,
  kBool = 3,
  kUint8 = 4,
  kBfloat16 = 5,  // storage only: arithmetic happens in float32
  kFloat16 = 6,   // storage only
  kString = 7,    // at the data edge and as constants
  kFloat64 = 8,   // at the data edge: storage that cast() reads and writes
};
inline constexpr int kDTypeCount = 9;

std::size_t dtype_bytes(DType dtype);  // bytes per element; 0 for kString
// The name that job files, checkpoints and messages use: "float32". The second is the inverse.
std::string_view dtype_name(DType dtype);
//   Errors  InvalidArgument: there is no such dtype; lists those that there are.
DType parse_dtype(std::string_view name);

// The dtype that a C++ type stands for. The storage formats have none: their elements are read as
// std::uint16_t through raw().
template <typename T>
struct DTypeOf;
// clang-format off
template <> struct DTypeOf<float> { static constexpr DType value = DType::kFloat32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::kFloat64; };
template <> struct DTypeOf<std::int32_t> { static constexpr DType value = DType::kInt32; };
template <> struct DTypeOf<std::int64_t> { static constexpr DType value = DType::kInt64; };
template <> struct DTypeOf<bool> { static constexpr DType value = DType::kBool; };
template <> struct DTypeOf<std::uint8_t> { static constexpr DType value = DType::kUint8; };
// clang-format on

// Dimensions, outermost first; a scalar has none. Any dimension of a traced type may be kUnknown,
// which prints as "?"; the dimensions of a value are all known.
//   Cost  a vector of dimensions; copying one allocates.
class Shape {
 public:
  static constexpr std::int64_t kUnknown = -1;

  Shape() = default;  // a scalar
  Shape(std::initializer_list<std::int64_t> dims) : dims_(dims) {}
  // Explicit, so that a list of ids is not taken for a shape.
  explicit Shape(std::vector<std::int64_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  bool known() const;  // no dimension is kUnknown
  // The product of all dimensions (1 for a scalar), and that of all but the first, which is the
  // size of a row. CAIRN_CHECKs that the dimensions in question are known.
  std::int64_t elements() const;
  std::int64_t row_elements() const;
  Shape with_dim(int axis, std::int64_t size) const;  // that dimension replaced
  Shape without_front() const;                        // drops axis 0
  Shape with_front(std::int64_t size) const;          // adds an axis 0
  // Whether `value` may stand where this (traced) shape is declared: the same rank, and the same
  // size in every dimension that is known here.
  bool admits(const Shape& value) const;
  // For messages.
  std::string to_string() const;  // "[?, 16]"
  bool operator==(const Shape&) const = default;

 private:
  std::int64_t elements_from(std::size_t axis) const;
  std::vector<std::int64_t> dims_;
};

// The type of a traced value, known before there is a value: what graphs are verified with.
struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
  std::string to_string() const;  // "float32[?, 16]"
};

// A value: a dtype, a shape, and the elements in row-major order. Strings are the exception: they
// lie in a shared vector of std::string, raw() is null, and only string_values() reads them.
class Tensor {
 public:
  // No value: defined() is false. It stands for "not computed yet" and for an optional that is
  // empty.
  Tensor() = default;
  // Uninitialised memory, 64-byte aligned.
  //   Errors  ResourceExhausted: there is not enough memory.
  Tensor(DType dtype, Shape shape);
  // Memory that `owner` keeps valid and unchanged while it lives, such as a mapped file or a
  // received message; an alignment of 8 bytes suffices.
  static Tensor borrowed(DType dtype, Shape shape, const void* data,
                         std::shared_ptr<const void> owner);
  // All elements 0, or false. Not for strings.
  static Tensor zeros(DType dtype, Shape shape);
  // A copy of `values`, as many as the shape has elements, row-major.
  template <typename T>
  static Tensor of(Shape shape, std::span<const T> values);
  // One element, of shape [].
  template <typename T>
  static Tensor scalar(T value);
  // A string for each element, row-major. The second shares the vector.
  static Tensor strings(Shape shape, std::vector<std::string> values);
  static Tensor strings(Shape shape, std::shared_ptr<const std::vector<std::string>> values);

  // Whether there is a value; everything below but the type wants one.
  bool defined() const { return data_ != nullptr || strings_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  TensorType type() const { return {dtype_, shape_}; }
  std::int64_t elements() const { return shape_.elements(); }
  // Bytes of the buffer that the elements take; 0 for strings.
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * dtype_bytes(dtype_); }

  // The elements, row-major. CAIRN_CHECKs the dtype. The span is valid while any handle to the
  // buffer lives, so it must not outlive a temporary Tensor.
  template <typename T>
  std::span<const T> values() const;
  // The same to write to: only for the maker, before the tensor is handed on.
  template <typename T>
  std::span<T> mutable_values();
  // The same without a type, for what copies bytes. owner() keeps them: code that uses raw()
  // beyond this handle's life must hold it.
  const std::byte* raw() const { return data_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }
  std::byte* mutable_raw() { return const_cast<std::byte*>(data_); }
  // The strings, row-major. CAIRN_CHECKs that they are strings.
  std::span<const std::string> string_values() const;
  template <typename T>
  T item() const;  // the only element; InvalidArgument if there are more or none

  // The same elements under another shape, which has as many. Shares the buffer.
  // A traced reshape becomes this: no bytes move.
  Tensor reshaped(Shape shape) const;
  // The half-open range [begin, end) of axis 0. Shares the buffer; strings are copied.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  // A copy of the elements in a buffer of its own; strings, which never change, stay shared.
  Tensor clone() const;
  // The type and the first `most` values, for messages: "float32[3]{1, 2, 3}".
  std::string to_string(int most = 8) const;

 private:
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  const std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<const std::vector<std::string>> strings_;
};

// bfloat16 and float16 are storage formats: values are converted where they are loaded and stored,
// rounded to nearest, ties to even. A NaN stays a NaN; a value too large for float16 becomes
// infinity.
//   Source  IEEE 754-2019, binary16; for bfloat16 see core/tensor/bfloat16.h.
std::uint16_t to_bfloat16(float value);
float from_bfloat16(std::uint16_t bits);
std::uint16_t to_float16(float value);
float from_float16(std::uint16_t bits);

// ---- templates ----

template <typename T>
std::span<const T> Tensor::values() const {
  CAIRN_CHECK(dtype_ == DTypeOf<T>::value, "want ", dtype_name(DTypeOf<T>::value),
              ", the tensor is ", type().to_string());
  return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(elements())};
}

template <typename T>
std::span<T> Tensor::mutable_values() {
  auto all = std::as_const(*this).values<T>();
  return {const_cast<T*>(all.data()), all.size()};
}

template <typename T>
Tensor Tensor::of(Shape shape, std::span<const T> values) {
  Tensor made(DTypeOf<T>::value, std::move(shape));
  CAIRN_CHECK(static_cast<std::size_t>(made.elements()) == values.size(), values.size(),
              " values for ", made.type().to_string());
  std::copy(values.begin(), values.end(), made.mutable_values<T>().begin());
  return made;
}

template <typename T>
Tensor Tensor::scalar(T value) {
  return of<T>(Shape{}, std::span<const T>(&value, 1));
}

// A string is not an item: Tensor::string_values() has it.
template <typename T>
T Tensor::item() const {
  if (!defined() || elements() != 1)
    throw InvalidArgumentError(
        str("item() wants a single element, the tensor is ", type().to_string()));
  return values<T>()[0];
}

}  // namespace cairn
