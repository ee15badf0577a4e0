#include "core/base/random.h"

#include <cmath>
#include <numbers>

namespace cairn {
namespace {

// Philox's multipliers, and the increments of its keys (the fractions of the golden ratio and of
// the square root of 3, in 32 bits): Salmon et al., 2011, and their Random123 library.
constexpr std::uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;

// One step of splitmix64: mix_bits() behind an increment, so that 0 does not stay 0.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

RandomBits philox(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  RandomBits c{
      static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
      static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    std::uint64_t p0 = std::uint64_t{kMultiplier0} * c[0], p1 = std::uint64_t{kMultiplier1} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return c;
}

std::uint64_t random_key(std::uint64_t seed, std::uint64_t number) {
  return mix(mix(seed) ^ number);
}

std::uint64_t random_key(std::uint64_t seed, std::string_view name) {
  std::uint64_t key = mix(seed ^ name.size());
  for (unsigned char c : name) key = mix(key ^ c);
  return key;
}

std::uint64_t Random::bits() {
  RandomBits r = philox(key_, counter_++, 0);
  return r[0] | (std::uint64_t{r[1]} << 32);
}

std::uint64_t Random::below(std::uint64_t bound) { return scaled_below(bits(), bound); }

float standard_normal(const RandomBits& bits) {
  float radius = std::sqrt(-2.0f * std::log(1.0f - uniform_float(bits[0])));  // 1 - u is in (0, 1]
  return radius * std::cos(2.0f * std::numbers::pi_v<float> * uniform_float(bits[1]));
}

// One draw of 22 lies beyond two deviations, so 100 of them in a row do not happen; the bound only
// makes the loop end for certain. The attempt is the counter's high word, which nothing else uses.
float truncated_normal(std::uint64_t key, std::uint64_t element) {
  for (std::uint64_t attempt = 0; attempt < 100; ++attempt) {
    float drawn = standard_normal(philox(key, element, attempt));
    if (std::abs(drawn) <= 2.0f) return drawn;
  }
  return 0;
}

}  // namespace cairn
