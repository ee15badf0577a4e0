// Values: element types, shapes, and Tensor, a value in host memory.
//
// A Tensor is a handle to an immutable-by-convention, 64-byte aligned buffer; copies share it.
// The maker of a buffer may write to it until it hands the Tensor on. Thread-safe as a
// std::shared_ptr is: handles may be copied across threads, the elements may be read by many and
// written by nobody after hand-over.
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
};
inline constexpr int kDTypeCount = 8;

std::size_t dtype_bytes(DType dtype);  // bytes an element; 0 for kString
std::string_view dtype_name(DType dtype);
DType parse_dtype(std::string_view name);  // InvalidArgument: no such dtype

template <typename T>
struct DTypeOf;
// clang-format off
template <> struct DTypeOf<float> { static constexpr DType value = DType::kFloat32; };
template <> struct DTypeOf<std::int32_t> { static constexpr DType value = DType::kInt32; };
template <> struct DTypeOf<std::int64_t> { static constexpr DType value = DType::kInt64; };
template <> struct DTypeOf<bool> { static constexpr DType value = DType::kBool; };
template <> struct DTypeOf<std::uint8_t> { static constexpr DType value = DType::kUint8; };
// clang-format on

// Dimensions, outermost first. Any dimension may be kUnknown in a traced type; a value's dimensions
// are all known.
class Shape {
 public:
  static constexpr std::int64_t kUnknown = -1;

  Shape() = default;  // a scalar
  Shape(std::initializer_list<std::int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<std::int64_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  bool known() const;                 // no dimension is kUnknown
  std::int64_t elements() const;      // the product; CAIRN_CHECKs that it is known
  std::int64_t row_elements() const;  // the product of all but the first dimension
  Shape with_dim(int axis, std::int64_t size) const;
  Shape without_front() const;                // drops axis 0
  Shape with_front(std::int64_t size) const;  // adds an axis 0
  // True when `value` may stand where this (traced) shape is declared.
  bool admits(const Shape& value) const;
  std::string to_string() const;  // "[?, 16]"
  bool operator==(const Shape&) const = default;

 private:
  std::int64_t elements_from(std::size_t axis) const;
  std::vector<std::int64_t> dims_;
};

// The type of a traced value.
struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
  std::string to_string() const;  // "float32[?, 16]"
};

class Tensor {
 public:
  Tensor() = default;  // no value: defined() is false
  // Uninitialised memory, 64-byte aligned. ResourceExhausted: not enough memory.
  Tensor(DType dtype, Shape shape);
  // Memory that somebody else owns and keeps unchanged while `owner` lives; 8-byte alignment
  // suffices.
  static Tensor borrowed(DType dtype, Shape shape, const void* data,
                         std::shared_ptr<const void> owner);
  static Tensor zeros(DType dtype, Shape shape);
  template <typename T>
  static Tensor of(Shape shape, std::span<const T> values);
  template <typename T>
  static Tensor scalar(T value);
  // Strings: one for each element, row-major.
  static Tensor strings(Shape shape, std::vector<std::string> values);
  static Tensor strings(Shape shape, std::shared_ptr<const std::vector<std::string>> values);

  bool defined() const { return data_ != nullptr || strings_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  TensorType type() const { return {dtype_, shape_}; }
  std::int64_t elements() const { return shape_.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * dtype_bytes(dtype_); }

  template <typename T>
  std::span<const T> values() const;  // CAIRN_CHECKs the dtype
  template <typename T>
  std::span<T> mutable_values();  // only for the maker, before the tensor is handed on
  const std::byte* raw() const { return data_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }  // keeps what raw() points to
  std::byte* mutable_raw() { return const_cast<std::byte*>(data_); }
  std::span<const std::string> string_values() const;
  template <typename T>
  T item() const;  // the only element; InvalidArgument otherwise

  // shares the buffer; the same number of elements
  Tensor reshaped(Shape shape) const;
  // shares the buffer; a half-open range of axis 0
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  Tensor clone() const;
  // type and the first values, for messages
  std::string to_string(int most = 8) const;

 private:
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  const std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<const std::vector<std::string>> strings_;
};

// bfloat16 and float16 are storage formats; these convert at their edges (round to nearest even).
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

template <typename T>
T Tensor::item() const {
  if (!defined() || elements() != 1)
    throw InvalidArgumentError(
        str("item() wants a single element, the tensor is ", type().to_string()));
  return values<T>()[0];
}

}  // namespace cairn
