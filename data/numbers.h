// Text to numbers. Each returns false where the text is anything but one number of its type.
#pragma once
#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>

namespace cairn {

// Decimal, with an optional sign.
template <typename T>
bool parse_integer(std::string_view text, T& out) {
  const char* at = text.data();
  const char* end = at + text.size();
  bool negative = at != end && *at == '-';
  if (negative || (at != end && *at == '+')) ++at;
  if (at == end || end - at > 19) return false;
  std::uint64_t value = 0;  // 19 digits always fit
  for (; at != end; ++at) {
    unsigned digit = static_cast<unsigned char>(*at) - '0';
    if (digit > 9) return false;
    value = value * 10 + digit;
  }
  auto most = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  if (negative && std::numeric_limits<T>::min() == 0)
    most = 0;
  else if (negative)
    ++most;
  if (value > most) return false;
  out = negative ? static_cast<T>(~value + 1) : static_cast<T>(value);
  return true;
}

// Finite or not ("nan", "inf" are read); a plain short integer takes a fast path.
inline bool parse_float(std::string_view text, float& out) {
  std::int32_t whole = 0;
  if (text.size() < 8 && parse_integer(text, whole) && !(whole == 0 && text.front() == '-')) {
    // below 2^24: exact
    out = static_cast<float>(whole);
    return true;
  }
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

inline bool parse_bool(std::string_view text, bool& out) {
  out = text == "1" || text == "true" || text == "True" || text == "TRUE";
  return out || text == "0" || text == "false" || text == "False" || text == "FALSE";
}

}  // namespace cairn
