#include "core/tensor/tensor.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace cairn {
namespace {

struct DTypeInfo {
  std::string_view name;
  std::size_t bytes;
};
// In the order of DType's numbers, which index it.
constexpr std::array<DTypeInfo, kDTypeCount> kDTypes = {{{"float32", 4},
                                                         {"int32", 4},
                                                         {"int64", 8},
                                                         {"bool", 1},
                                                         {"uint8", 1},
                                                         {"bfloat16", 2},
                                                         {"float16", 2},
                                                         {"string", 0},
                                                         {"float64", 8}}};

std::shared_ptr<const void> allocate(std::size_t bytes) {
  // 64 bytes more than asked for: an empty tensor has an address too, and vector code may read the
  // last vector whole. std::aligned_alloc wants a multiple of the alignment.
  void* memory = std::aligned_alloc(64, (bytes + 64 + 63) / 64 * 64);
  if (memory == nullptr)
    throw ResourceExhaustedError(str("no memory for a tensor of ", bytes, " bytes"));
  return {memory, [](const void* p) { std::free(const_cast<void*>(p)); }};
}

template <typename T>
void print_values(std::ostringstream& out, const Tensor& tensor, int most) {
  auto all = tensor.values<T>();
  for (std::size_t i = 0; i < all.size() && i < static_cast<std::size_t>(most); ++i)
    out << (i ? ", " : "") << +all[i];  // + makes a number of a byte, which would print as a letter
  if (all.size() > static_cast<std::size_t>(most)) out << ", ...";
}

}  // namespace

std::size_t dtype_bytes(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)].bytes; }
std::string_view dtype_name(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)].name; }

DType parse_dtype(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kDTypes[static_cast<std::size_t>(i)].name == name) return static_cast<DType>(i);
  throw InvalidArgumentError(
      str("no dtype \"", name,
          "\": one of float32, int32, int64, bool, uint8, bfloat16, float16, string, float64 "
          "is wanted"));
}

bool Shape::known() const {
  for (auto d : dims_)
    if (d == kUnknown) return false;
  return true;
}

std::int64_t Shape::elements_from(std::size_t axis) const {
  std::int64_t n = 1;
  for (; axis < dims_.size(); ++axis) {
    CAIRN_CHECK(dims_[axis] >= 0, "the shape ", to_string(), " is not known");
    n *= dims_[axis];
  }
  return n;
}

std::int64_t Shape::elements() const { return elements_from(0); }
std::int64_t Shape::row_elements() const { return elements_from(1); }

Shape Shape::with_dim(int axis, std::int64_t size) const {
  Shape made = *this;
  made.dims_.at(static_cast<std::size_t>(axis)) = size;
  return made;
}

Shape Shape::without_front() const {
  CAIRN_CHECK(rank() > 0, "a scalar has no axis 0");
  return Shape(std::vector<std::int64_t>(dims_.begin() + 1, dims_.end()));
}

Shape Shape::with_front(std::int64_t size) const {
  std::vector<std::int64_t> dims{size};
  dims.insert(dims.end(), dims_.begin(), dims_.end());
  return Shape(std::move(dims));
}

// One way only: a value without a known size does not exist, so kUnknown in `value` fits kUnknown
// alone.
bool Shape::admits(const Shape& value) const {
  if (value.rank() != rank()) return false;
  for (int i = 0; i < rank(); ++i)
    if ((*this)[i] != kUnknown && (*this)[i] != value[i]) return false;
  return true;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank(); ++i) {
    if (i) text += ", ";
    text += (*this)[i] == kUnknown ? "?" : std::to_string((*this)[i]);
  }
  return text + "]";
}

std::string TensorType::to_string() const {
  return std::string(dtype_name(dtype)) + shape.to_string();
}

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  CAIRN_CHECK(dtype != DType::kString, "strings are made by Tensor::strings");
  owner_ = allocate(bytes());
  data_ = static_cast<const std::byte*>(owner_.get());
}

// Nothing is checked here: only the caller knows how many bytes `data` has.
Tensor Tensor::borrowed(DType dtype, Shape shape, const void* data,
                        std::shared_ptr<const void> owner) {
  Tensor made;
  made.dtype_ = dtype;
  made.shape_ = std::move(shape);
  made.data_ = static_cast<const std::byte*>(data);
  made.owner_ = std::move(owner);
  return made;
}

Tensor Tensor::zeros(DType dtype, Shape shape) {
  Tensor made(dtype, std::move(shape));
  std::memset(made.mutable_raw(), 0, made.bytes());
  return made;
}

Tensor Tensor::strings(Shape shape, std::vector<std::string> values) {
  return strings(std::move(shape),
                 std::make_shared<const std::vector<std::string>>(std::move(values)));
}

Tensor Tensor::strings(Shape shape, std::shared_ptr<const std::vector<std::string>> values) {
  CAIRN_CHECK(static_cast<std::size_t>(shape.elements()) == values->size(), values->size(),
              " strings for ", shape.to_string());
  Tensor made;
  made.dtype_ = DType::kString;
  made.shape_ = std::move(shape);
  made.strings_ = std::move(values);
  return made;
}

std::span<const std::string> Tensor::string_values() const {
  CAIRN_CHECK(strings_ != nullptr, "the tensor is ", type().to_string());
  return *strings_;
}

Tensor Tensor::reshaped(Shape shape) const {
  CAIRN_CHECK(shape.elements() == elements(), shape_.to_string(), " has other elements than ",
              shape.to_string());
  Tensor made = *this;
  made.shape_ = std::move(shape);
  return made;
}

// Rows of axis 0 are one run of bytes, so a range of them is an address and a shape.
Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  CAIRN_CHECK(shape_.rank() > 0 && 0 <= begin && begin <= end && end <= shape_[0], "rows ", begin,
              " to ", end, " of ", shape_.to_string());
  if (dtype_ == DType::kString) {
    auto n = static_cast<std::size_t>(shape_.row_elements());
    auto all = string_values();
    return strings(
        shape_.with_dim(0, end - begin),
        std::vector<std::string>(
            all.begin() + static_cast<std::ptrdiff_t>(n * static_cast<std::size_t>(begin)),
            all.begin() + static_cast<std::ptrdiff_t>(n * static_cast<std::size_t>(end))));
  }
  Tensor made = *this;
  made.data_ += static_cast<std::size_t>(begin * shape_.row_elements()) * dtype_bytes(dtype_);
  made.shape_ = shape_.with_dim(0, end - begin);
  return made;
}

Tensor Tensor::clone() const {
  if (dtype_ == DType::kString || !defined()) return *this;
  Tensor made(dtype_, shape_);
  std::memcpy(made.mutable_raw(), raw(), bytes());
  return made;
}

std::string Tensor::to_string(int most) const {
  if (!defined()) return "undefined";
  std::ostringstream out;
  out << type().to_string() << "{";
  switch (dtype_) {
    case DType::kFloat32: print_values<float>(out, *this, most); break;
    case DType::kFloat64: print_values<double>(out, *this, most); break;
    case DType::kInt32: print_values<std::int32_t>(out, *this, most); break;
    case DType::kInt64: print_values<std::int64_t>(out, *this, most); break;
    case DType::kBool: print_values<bool>(out, *this, most); break;
    case DType::kUint8: print_values<std::uint8_t>(out, *this, most); break;
    default: out << "..."; break;
  }
  out << "}";
  return out.str();
}

std::uint16_t to_bfloat16(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  // keep a NaN a NaN
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// The compiler's own conversion rounds to nearest, ties to even.
#if defined(__FLT16_MAX__)
std::uint16_t to_float16(float value) {
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}
float from_float16(std::uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
#else
// clang 14 lacks _Float16 for x86-64, so the fields of IEEE 754's binary16 are handled by hand: a
// sign, 5 bits of exponent with a bias of 15, 10 of fraction. Exponent 0 is denormal, 31 is
// infinity or NaN.
float from_float16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                     : exponent == 0
                         ? std::ldexp(static_cast<float>(fraction), -24)
                         : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return std::copysign(size, (bits & 0x8000) != 0 ? -1.0f : 1.0f);
}
std::uint16_t to_float16(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float size = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (size >= 65520.0f) return sign | 0x7c00;  // half way from 65504, the largest, to 65536
  const int exponent = std::max(-14, size > 0 ? std::ilogb(size) : -14);
  // Fractions are added to the exponent's bits and not set beside them: when a fraction rounds up
  // to 1024, the carry makes the exponent one larger, which is right.
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return static_cast<std::uint16_t>(sign | (((exponent + 14) << 10) + steps));
}
#endif

}  // namespace cairn
