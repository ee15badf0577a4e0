#include "storage/base64.h"

#include <cstdint>

#include "core/base/error.h"

namespace cairn::storage {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

// Three bytes are four digits; a last group of one or two bytes is two or three digits and padding.
std::string to_base64(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t taken = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (j < taken ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j)
      out.push_back(j <= taken ? kDigits[group >> (18 - 6 * j) & 63] : '=');
  }
  return out;
}

// Padding is taken only at the very end. Bits of the last digit that no byte needs are ignored, as
// RFC 4648 allows.
std::string from_base64(std::string_view text) {
  if (text.size() % 4 != 0) throw InvalidArgumentError("base64 text comes in groups of 4");
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::size_t digits = 4;
    while (digits > 2 && i + 4 == text.size() && text[i + digits - 1] == '=') --digits;
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const std::size_t digit = j < digits ? kDigits.find(text[i + j]) : 0;
      if (digit == std::string_view::npos)
        throw InvalidArgumentError(str("'", text[i + j], "' is not a base64 digit"));
      group = group << 6 | static_cast<std::uint32_t>(digit);
    }
    for (std::size_t j = 0; j + 1 < digits; ++j)
      out.push_back(static_cast<char>(group >> (16 - 8 * j)));
  }
  return out;
}

}  // namespace cairn::storage
