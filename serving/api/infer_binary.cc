#include "serving/api/infer_binary.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace cairn::serving {
namespace {

static_assert(std::endian::native == std::endian::little, "the protocol's bytes are little-endian");

constexpr std::size_t kLengthBytes = 4;  // before each string
constexpr std::size_t kBorrowedAlignment = 8;

// The string that `rest` begins with, which is taken off; false: it does not fit.
bool take_string(std::string_view& rest, std::string_view& out) {
  std::uint32_t length = 0;
  if (rest.size() < kLengthBytes) return false;
  std::memcpy(&length, rest.data(), kLengthBytes);
  if (rest.size() - kLengthBytes < length) return false;
  out = rest.substr(kLengthBytes, length);
  rest.remove_prefix(kLengthBytes + length);
  return true;
}

Tensor read_strings(const std::string& name, const Shape& shape, std::string_view bytes,
                    DecodeBudget& budget) {
  const auto wanted = static_cast<std::size_t>(shape.elements());
  std::string_view rest = bytes, text;
  std::size_t found = 0;
  while (found < wanted && take_string(rest, text)) ++found;
  if (found < wanted)
    throw InvalidArgumentError(str("input \"", name, "\": the shape ", shape.to_string(), " has ",
                                   wanted, " strings, and the ", bytes.size(), " bytes hold ",
                                   found, " whole ones; string ", found, " begins at byte ",
                                   bytes.size() - rest.size(), " of the tensor"));
  if (!rest.empty())
    throw InvalidArgumentError(str("input \"", name, "\": ", rest.size(), " of ", bytes.size(),
                                   " bytes are left behind the ", wanted, " strings of the shape ",
                                   shape.to_string()));
  budget.bytes += wanted * sizeof(std::string) + bytes.size();
  if (budget.bytes > budget.limits.bytes_max)
    throw InvalidArgumentError(str("input \"", name, "\": the request's values take more than ",
                                   budget.limits.bytes_max, " bytes"));
  std::vector<std::string> texts;
  texts.reserve(wanted);
  for (rest = bytes; texts.size() < wanted && take_string(rest, text);) texts.emplace_back(text);
  return Tensor::strings(shape, std::move(texts));
}

template <typename T, typename Bad>
void check_each(const std::string& name, std::string_view bytes, const char* what, Bad bad) {
  const std::size_t count = bytes.size() / sizeof(T);
  std::size_t first = count;
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    if (bad(value)) {
      first = i;
      break;
    }
  }
  if (first < count)
    throw InvalidArgumentError(str("input \"", name, "\": element ", first, " ", what));
}

void check_values(const std::string& name, DType dtype, std::string_view bytes, bool allow_nan) {
  const char* const not_finite =
      "is not a finite number, and this server takes finite ones alone (start it with "
      "--allow-nan)";
  if (dtype == DType::kBool)
    return check_each<std::uint8_t>(name, bytes, "is a byte other than 0 and 1",
                                    [](std::uint8_t value) { return value > 1; });
  if (allow_nan) return;
  switch (dtype) {
    case DType::kFloat32:
      return check_each<float>(name, bytes, not_finite, [](float v) { return !std::isfinite(v); });
    case DType::kFloat64:
      return check_each<double>(name, bytes, not_finite,
                                [](double v) { return !std::isfinite(v); });
    case DType::kFloat16:
      return check_each<std::uint16_t>(name, bytes, not_finite,
                                       [](std::uint16_t v) { return (v & 0x7C00) == 0x7C00; });
    case DType::kBfloat16:
      return check_each<std::uint16_t>(name, bytes, not_finite,
                                       [](std::uint16_t v) { return (v & 0x7F80) == 0x7F80; });
    default: return;
  }
}

}  // namespace

Tensor read_binary(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes,
                   const std::shared_ptr<const void>& owner, DecodeBudget& budget) {
  budget.elements += static_cast<std::size_t>(shape.elements());
  if (budget.elements > budget.limits.elements_max)
    throw InvalidArgumentError(str("input \"", name, "\": the request has more than ",
                                   budget.limits.elements_max, " values"));
  if (dtype == DType::kString) return read_strings(name, shape, bytes, budget);
  const std::size_t wanted = static_cast<std::size_t>(shape.elements()) * dtype_bytes(dtype);
  if (bytes.size() != wanted)
    throw InvalidArgumentError(str("input \"", name, "\": ", shape.elements(), " elements of ",
                                   dtype_bytes(dtype), " bytes each are ", wanted,
                                   " bytes, and \"binary_data_size\" is ", bytes.size()));
  check_values(name, dtype, bytes, budget.limits.allow_nan);
  budget.bytes += wanted;
  if (budget.bytes > budget.limits.bytes_max)
    throw InvalidArgumentError(str("input \"", name, "\": the request's values take more than ",
                                   budget.limits.bytes_max, " bytes"));
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kBorrowedAlignment == 0)
    return Tensor::borrowed(dtype, shape, bytes.data(), owner);
  Tensor made(dtype, shape);
  if (wanted > 0) std::memcpy(made.mutable_raw(), bytes.data(), wanted);
  return made;
}

std::size_t binary_bytes(const Tensor& tensor) {
  if (tensor.dtype() != DType::kString) return tensor.bytes();
  std::size_t bytes = 0;
  for (const std::string& text : tensor.string_values()) bytes += kLengthBytes + text.size();
  return bytes;
}

void append_binary(std::string& out, const Tensor& tensor) {
  if (tensor.dtype() != DType::kString) {
    out.append(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
    return;
  }
  for (const std::string& text : tensor.string_values()) {
    const auto length = static_cast<std::uint32_t>(text.size());
    char bytes[kLengthBytes];
    std::memcpy(bytes, &length, kLengthBytes);
    out.append(bytes, kLengthBytes);
    out += text;
  }
}

}  // namespace cairn::serving
