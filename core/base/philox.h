// The arithmetic of core/base/random.h's numbers by counter, for code that computes them elsewhere
// than on the calling thread: constexpr, so that a GPU's compiler takes it as well. See
// core/base/random.h for sources and promises.
#pragma once
#include <cstdint>

#include "core/base/random.h"

namespace cairn::counter_random {

// Philox's multipliers, and the increments of its keys (the fractions of the golden ratio and of
// the square root of 3, in 32 bits): Salmon et al., 2011, and their Random123 library.
inline constexpr std::uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
inline constexpr std::uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;

// One step of splitmix64: mix_bits() behind an increment, so that 0 does not stay 0.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

constexpr RandomBits philox(std::uint64_t key, std::uint64_t counter_low,
                            std::uint64_t counter_high) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  RandomBits c{
      static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
      static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{kMultiplier0} * c[0],
                        p1 = std::uint64_t{kMultiplier1} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return c;
}

constexpr std::uint64_t random_key(std::uint64_t seed, std::uint64_t number) {
  return mix(mix(seed) ^ number);
}

}  // namespace cairn::counter_random
