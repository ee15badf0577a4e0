#include "core/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

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

using State = std::array<std::uint32_t, 8>;

// The names of the standard: section 6.2.2.
void take_block(State& state, const unsigned char* block) {
  using std::rotr;
  std::array<std::uint32_t, 64> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t near = w[t - 2], far = w[t - 15];
    w[t] = (rotr(near, 17) ^ rotr(near, 19) ^ near >> 10) + w[t - 7] +
           (rotr(far, 7) ^ rotr(far, 18) ^ far >> 3) + w[t - 16];
  }
  auto [a, b, c, d, e, f, g, h] = state;
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
  const State add{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += add[i];
}

#if defined(__x86_64__)
bool processor_has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSE4_1) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}

// The instructions take the state as two registers, of a, b, e, f and of c, d, g, h (the first in
// the highest word), and do four rounds at once. `w` holds the sixteen words that are needed next.
__attribute__((target("sha,sse4.1"))) void take_blocks_by_instructions(State& state,
                                                                       const unsigned char* blocks,
                                                                       std::size_t count) {
  const auto at = [](auto* words) { return reinterpret_cast<const __m128i*>(words); };
  const __m128i swapped = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(at(&state[0])), 0xb1);
  const __m128i fehg = _mm_shuffle_epi32(_mm_loadu_si128(at(&state[4])), 0xb1);
  __m128i abef = _mm_unpacklo_epi64(fehg, badc), cdgh = _mm_unpackhi_epi64(fehg, badc);
  for (; count > 0; --count, blocks += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (std::size_t i = 0; i < 4; ++i)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(at(blocks + 16 * i)), swapped);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i) {
      const __m128i added = _mm_add_epi32(w[i % 4], _mm_loadu_si128(at(&kRound[4 * i])));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
      if (i >= 12) continue;
      const __m128i far = w[(i + 1) % 4], seven = w[(i + 2) % 4], near = w[(i + 3) % 4];
      w[i % 4] = _mm_sha256msg2_epu32(
          _mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], far), _mm_alignr_epi8(near, seven, 4)),
          near);
    }
    abef = _mm_add_epi32(abef, abef_before), cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const auto words_of = [](__m128i of) {
    std::array<std::uint32_t, 4> words;
    std::memcpy(words.data(), &of, sizeof of);
    return words;
  };
  const auto [f, e, b, a] = words_of(abef);
  const auto [h, g, d, c] = words_of(cdgh);
  state = {a, b, c, d, e, f, g, h};
}
#else
bool processor_has_instructions() { return false; }
#endif

}  // namespace

Sha256::Sha256(Means means)
    : has_instructions_(means == Means::kBest && processor_has_instructions()), state_(kStart) {}

void Sha256::take_blocks(const unsigned char* blocks, std::size_t count) {
#if defined(__x86_64__)
  if (has_instructions_) return take_blocks_by_instructions(state_, blocks, count);
#endif
  for (; count > 0; --count, blocks += 64) take_block(state_, blocks);
}

void Sha256::update(std::string_view bytes) {
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  while (left > 0) {
    const std::size_t held = bytes_ % 64;
    if (held == 0 && left >= 64) {  // whole blocks are taken from where they lie
      const std::size_t whole = left / 64 * 64;
      take_blocks(at, whole / 64);
      at += whole, left -= whole, bytes_ += whole;
      continue;
    }
    const std::size_t taken = std::min(left, 64 - held);
    std::memcpy(waiting_.data() + held, at, taken);
    at += taken, left -= taken, bytes_ += taken;
    if (bytes_ % 64 == 0) take_blocks(waiting_.data(), 1);
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
