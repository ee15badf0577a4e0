// Decodes UTF-8 strictly, as RFC 3629 defines it: no overlong forms, no surrogates, nothing above
// U+10FFFF.
#include "data/feature/printable.h"

#include <cstdint>

namespace cairn {
namespace {

// The code point of the character that `text` begins with, and its length; 0: it begins with none.
std::size_t character_bytes(std::string_view text, std::uint32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xF0 && first < 0xF8 ? 4
                             : first >= 0xE0                 ? 3
                                                             : 2;
  if (length > text.size() || first >= 0xF8 || (first >= 0x80 && first < 0xC0)) return 0;
  code = length == 1 ? first : first & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  // less in so many bytes is an overlong form
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return code < kLeast[length] || code > 0x10FFFF || surrogate ? 0 : length;
}

// Control characters, including those of the second set (C1), which some terminals obey, and the
// marks that turn the direction of writing and could make a message read differently.
bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

void append_escaped(std::string& out, std::string_view bytes) {
  for (unsigned char byte : bytes) {
    out += "\\x";
    out += "0123456789ABCDEF"[byte >> 4];
    out += "0123456789ABCDEF"[byte & 15];
  }
}

}  // namespace

std::string printable(std::string_view bytes, std::size_t most) {
  std::string out;
  std::size_t at = 0;
  while (at < bytes.size() && at < most) {
    std::uint32_t code = 0;
    const std::size_t length = character_bytes(bytes.substr(at), code);
    const std::string_view character = bytes.substr(at, length == 0 ? 1 : length);
    if (length == 0 || is_control(code))
      append_escaped(out, character);
    else
      out += character;
    at += character.size();
  }
  return at < bytes.size() ? out + "..." : out;
}

}  // namespace cairn
