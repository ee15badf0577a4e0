#include "serving/api/base64.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace cairn::serving {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 0xFF;

constexpr std::array<std::uint8_t, 256> digits() {
  std::array<std::uint8_t, 256> made{};
  made.fill(kNoDigit);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    made[static_cast<std::uint8_t>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  made['-'] = 62;
  made['_'] = 63;
  return made;
}
constexpr std::array<std::uint8_t, 256> kDigits = digits();

}  // namespace

bool base64_decode(std::string_view text, std::string& out) {
  out.clear();
  const bool padded = text.size() % 4 == 0;
  for (int i = 0; i < 2 && padded && text.ends_with('='); ++i) text.remove_suffix(1);
  if (text.size() % 4 == 1) return false;
  out.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const std::uint8_t digit = kDigits[static_cast<std::uint8_t>(c)];
    if (digit == kNoDigit) return false;
    bits = bits << 6 | digit;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>(bits >> held & 0xFF);
  }
  // Bits beyond the last byte are 0 in what an encoder wrote; others mean that a digit is missing.
  return (bits & ((1U << held) - 1)) == 0;
}

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    const std::size_t here = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < here ? static_cast<std::uint8_t>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      out += k <= here ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace cairn::serving
