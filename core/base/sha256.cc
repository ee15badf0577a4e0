#include "core/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cairn {
namespace {

// The constants of SHA-256 are the first 32 bits of the fractional parts of roots of primes: the
// square roots of the first 8 are the initial state, and each round adds the cube root of one of
// the first 64. They are computed with integers, so that there is no table to mistype.
constexpr std::array<std::uint32_t, 64> first_primes() {
  std::array<std::uint32_t, 64> primes{};
  std::size_t found = 0;
  for (std::uint32_t n = 2; found < primes.size(); ++n) {
    bool prime = true;
    for (std::uint32_t d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
    if (prime) primes[found++] = n;
  }
  return primes;
}

// The largest x with x^power <= n · 2^(32 power), less its whole part: x has at most 37 bits, and
// its cube fits into 128.
constexpr std::uint32_t fraction_of_root(std::uint32_t n, int power) {
  using Wide = unsigned __int128;
  const Wide wanted = Wide{n} << (32 * power);
  Wide low = 0, high = Wide{1} << 37;
  while (high - low > 1) {
    const Wide middle = (low + high) / 2;
    const Wide raised = power == 2 ? middle * middle : middle * middle * middle;
    (raised <= wanted ? low : high) = middle;
  }
  return static_cast<std::uint32_t>(low);
}

template <std::size_t N>
constexpr std::array<std::uint32_t, N> roots(int power) {
  std::array<std::uint32_t, N> all{};
  const auto primes = first_primes();
  for (std::size_t i = 0; i < N; ++i) all[i] = fraction_of_root(primes[i], power);
  return all;
}
constexpr auto kStart = roots<8>(2);
constexpr auto kRound = roots<64>(3);
static_assert(kStart[0] == 0x6a09e667 && kRound[63] == 0xc67178f2);

std::uint32_t big_endian(const unsigned char* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
         std::uint32_t{at[3]};
}

}  // namespace

Sha256::Sha256() : state_(kStart) {}

// The names of the standard: section 6.2.2.
void Sha256::take_block(const unsigned char* block) {
  using std::rotr;
  std::array<std::uint32_t, 64> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t near = w[t - 2], far = w[t - 15];
    w[t] = (rotr(near, 17) ^ rotr(near, 19) ^ near >> 10) + w[t - 7] +
           (rotr(far, 7) ^ rotr(far, 18) ^ far >> 3) + w[t - 16];
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t one =
        h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRound[t] + w[t];
    const std::uint32_t two =
        (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const std::array<std::uint32_t, 8> add{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += add[i];
}

void Sha256::update(std::string_view bytes) {
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  while (left > 0) {
    const std::size_t held = bytes_ % 64;
    if (held == 0 && left >= 64) {  // a whole block is taken from where it lies
      take_block(at);
      at += 64, left -= 64, bytes_ += 64;
      continue;
    }
    const std::size_t taken = std::min(left, 64 - held);
    std::memcpy(waiting_.data() + held, at, taken);
    at += taken, left -= taken, bytes_ += taken;
    if (bytes_ % 64 == 0) take_block(waiting_.data());
  }
}

// A one bit, zeros, and the length in bits fill the last block.
std::string Sha256::hex() {
  const std::uint64_t bits = bytes_ * 8;
  std::string end(1, '\x80');
  end.append((119 - bytes_ % 64) % 64, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) end += static_cast<char>(bits >> shift);
  update(end);
  std::string text;
  for (const std::uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
  return text;
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

}  // namespace cairn
