// Text to numbers, for the cells of files: no locale, no leading or trailing blanks (the reader has
// trimmed them), no allocation. Each returns false where the text is anything but exactly one
// number of its type, and `out` is then undefined.
//   Thread  any.
#pragma once
#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>

namespace cairn {

// A whole number in decimal digits with an optional sign, in the range of T. Nothing else is read:
// no hexadecimal, no exponent, no separators of thousands. A text of more than 19 digits is
// refused, even if they are leading zeros.
template <typename T>
bool parse_integer(std::string_view text, T& out) {
  const char* at = text.data();
  const char* end = at + text.size();
  bool negative = at != end && *at == '-';
  if (negative || (at != end && *at == '+')) ++at;
  if (at == end || end - at > 19) return false;
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

// Reads a float or double as std::from_chars does, correctly rounded, but allows a leading "+".
// "nan" and "inf" are numbers too. Short plain integers, the most common case, take a fast path;
// "-0" does not, because it would lose its sign.
//   Errors  false also where the number is beyond the type's range.
template <typename Real>
bool parse_real(std::string_view text, Real& out) {
  std::int32_t whole = 0;
  if (text.size() < 8 && parse_integer(text, whole) && !(whole == 0 && text.front() == '-')) {
    // below 2^24: exact
    out = static_cast<Real>(whole);
    return true;
  }
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  // from_chars takes no plus sign. It is not std::strtof, which obeys the locale.
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}
inline bool parse_float(std::string_view text, float& out) { return parse_real(text, out); }

// 1 or 0, or true or false in the three usual spellings: "true", "True", "TRUE". "yes" and "t" are
// refused; a column of such texts is a string column, or a label with `positive` texts.
inline bool parse_bool(std::string_view text, bool& out) {
  out = text == "1" || text == "true" || text == "True" || text == "TRUE";
  return out || text == "0" || text == "false" || text == "False" || text == "FALSE";
}

}  // namespace cairn
