// Text to numbers, for the cells of files: no locale, no leading or trailing blanks (the reader has
// trimmed them), no allocation. Each returns false where the text is anything but exactly one
// number of its type, and `out` is then undefined.
//   Thread  any.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace cairn {

// A whole number in decimal digits with an optional sign, in the range of T. Nothing else is read:
// no hexadecimal, no exponent, no separators of thousands.
template <typename T>
bool parse_integer(std::string_view text, T& out) {
  const char* at = text.data();
  const char* end = at + text.size();
  bool negative = at != end && *at == '-';
  if (negative || (at != end && *at == '+')) ++at;
  if (at == end) return false;
  if (end - at > 19) [[unlikely]] {
    while (end - at > 19 && *at == '0') ++at;
    if (end - at > 19) return false;
  }
  // Digits are gathered unsigned and without a test for overflow: 19 of them fit into 64 bits.
  std::uint64_t value = 0;
  for (; at != end; ++at) {
    unsigned digit = static_cast<unsigned char>(*at) - '0';
    if (digit > 9) return false;
    value = value * 10 + digit;
  }
  // The magnitude is compared before the sign is applied, because the lowest integer's does not fit
  // into T.
  auto most = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  if (negative && std::numeric_limits<T>::min() == 0)
    most = 0;
  else if (negative)
    ++most;
  if (value > most) return false;
  out = negative ? static_cast<T>(~value + 1) : static_cast<T>(value);
  return true;
}

// Whether a decimal number that is out of a type's range is too small for it, and not too large:
// its first digit that is not 0 stands behind the point, exponent included.
inline bool is_too_small(std::string_view number) {
  constexpr std::int64_t kExponentMax = std::int64_t{1} << 40;  // beyond any text in memory
  const std::size_t mark = number.find_first_of("eE");
  const std::string_view digits = number.substr(0, mark);
  const std::size_t first = digits.find_first_of("123456789");
  const std::size_t point = std::min(digits.find('.'), digits.size());
  if (first == digits.npos) return true;
  std::int64_t place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  if (mark == number.npos) return place <= 0;
  std::string_view exponent = number.substr(mark + 1);
  const bool negative = exponent.starts_with('-');
  if (negative || exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int64_t value = 0;
  for (const char c : exponent) value = std::min(kExponentMax, value * 10 + (c - '0'));
  return place + (negative ? -value : value) <= 0;
}

// Reads a finite float or double, correctly rounded, as std::from_chars does, but allows a leading
// "+". A number so small that it rounds to 0 is 0. Short plain integers, the most common case, take
// a fast path; "-0" does not, because it would lose its sign.
//   Errors  false also where the number is beyond the type's range, infinite or not a number.
template <typename Real>
bool parse_real(std::string_view text, Real& out) {
  std::int32_t whole = 0;
  if (text.size() < 8 && parse_integer(text, whole) && !(whole == 0 && text.front() == '-')) {
    // below 2^24: exact
    out = static_cast<Real>(whole);
    return true;
  }
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return false;
  }
  // from_chars takes no plus sign. It is not std::strtof, which obeys the locale.
  const char* const last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, out);
  if (error == std::errc{}) return end == last && std::isfinite(out);
  if (error != std::errc::result_out_of_range || end != last || !is_too_small(text)) return false;
  out = text.front() == '-' ? Real{-0.0} : Real{0};
  return true;
}
inline bool parse_float(std::string_view text, float& out) { return parse_real(text, out); }

// 1 or 0, or true or false in the three usual spellings: "true", "True", "TRUE". "yes" and "t" are
// refused; a column of such texts is a string column, or a label with `positive` texts.
inline bool parse_bool(std::string_view text, bool& out) {
  out = text == "1" || text == "true" || text == "True" || text == "TRUE";
  return out || text == "0" || text == "false" || text == "False" || text == "FALSE";
}

}  // namespace cairn
