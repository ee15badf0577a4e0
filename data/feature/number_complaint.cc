#include "data/feature/number_complaint.h"

#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "data/feature/numbers.h"
#include "data/feature/printable.h"

namespace cairn {
namespace {

template <typename T>
bool is_integer(std::string_view text) {
  T value;
  return parse_integer(text, value);
}

template <typename Real>
NumberFault real_fault(std::string_view text) {
  Real value;
  if (parse_real(text, value)) return NumberFault::kNone;
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (end != last || error == std::errc::invalid_argument) return NumberFault::kNoNumber;
  return error == std::errc{} ? NumberFault::kNotFinite : NumberFault::kOutOfRange;
}

NumberFault integer_fault(std::string_view text) {
  double value;
  const bool is_real = parse_real(text, value);
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (!text.empty() && text.find_first_not_of("0123456789") == text.npos)
    return NumberFault::kOutOfRange;
  return is_real ? NumberFault::kNotWhole : NumberFault::kNoNumber;
}

}  // namespace

NumberFault number_fault(std::string_view text, DType dtype) {
  bool flag;
  switch (dtype) {
    case DType::kFloat32: return real_fault<float>(text);
    case DType::kFloat64: return real_fault<double>(text);
    case DType::kInt32:
      return is_integer<std::int32_t>(text) ? NumberFault::kNone : integer_fault(text);
    case DType::kInt64:
      return is_integer<std::int64_t>(text) ? NumberFault::kNone : integer_fault(text);
    case DType::kUint8:
      return is_integer<std::uint8_t>(text) ? NumberFault::kNone : integer_fault(text);
    case DType::kBool: return parse_bool(text, flag) ? NumberFault::kNone : NumberFault::kNoNumber;
    case DType::kString: return NumberFault::kNone;
    default: return NumberFault::kNoNumber;
  }
}

std::string number_complaint(std::string_view text, DType dtype) {
  const std::string shown = str("\"", printable(text), "\" is not ");
  switch (number_fault(text, dtype)) {
    case NumberFault::kNotFinite: return shown + "a finite number";
    case NumberFault::kOutOfRange:
      return str(shown, "of type ", dtype_name(dtype), ", whose range ends before it");
    default: return str(shown, "of type ", dtype_name(dtype));
  }
}

DType dtype_with_fractions(std::string_view text) {
  double wide = 0;
  float narrow = 0;
  const bool fits = parse_real(text, wide) && parse_real(text, narrow) &&
                    std::fabs(static_cast<double>(narrow) - wide) <= std::fabs(wide) * 1e-7;
  const bool exact = static_cast<double>(narrow) == wide || std::trunc(wide) != wide;
  return fits && exact ? DType::kFloat32 : DType::kFloat64;
}

}  // namespace cairn
