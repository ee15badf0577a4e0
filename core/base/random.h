// Counter-based random numbers: the n-th number under a key is a function of (key, n) alone, so the
// same model comes out for any number of ps, workers or retries.
//
// None of these functions may ever change its result: a checkpoint does not hold rows that were
// never touched, because their initial values can be computed again from the manifest's seed.
//   Source  Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011
//           (Philox 4x32, 10 rounds).
//   Thread  any, unless a type says otherwise.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace cairn {

using RandomBits = std::array<std::uint32_t, 4>;

// One block of four words: a bijection of the counter for each key, so two counters never collide.
//   Cost  20 multiplications, no memory.
RandomBits philox(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high);

// A 64-bit key from a seed and a name or another number; equal inputs give equal keys on every
// machine. Keys are chained where there are several parts: random_key(random_key(seed, name),
// number).
std::uint64_t random_key(std::uint64_t seed, std::string_view name);
std::uint64_t random_key(std::uint64_t seed, std::uint64_t number);

// Mixes 64 bits so that every bit of the input reaches every bit of the result; a bijection with
// mix_bits(0) = 0.
//   Source  the finaliser of splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number
//           generators", OOPSLA 2014.
inline std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// A float in [0, 1): the upper 24 bits over 2^24, which is as many as a float's significand holds,
// so that 1 cannot come out by rounding.
inline float uniform_float(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// 64 random bits as a number in [0, bound); bound > 0. The bias is below bound / 2^64: not
// measurable for any bound that we draw.
inline std::uint64_t scaled_below(std::uint64_t bits, std::uint64_t bound) {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits) * bound) >> 64);
}

// Normal with mean 0 and deviation 1, from the first two words.
//   Source  Box, Muller, "A note on the generation of random normal deviates", Annals of
//           Mathematical Statistics 29 (1958).
float standard_normal(const RandomBits& bits);
// The same, redrawn while it lies beyond two deviations, each draw under a counter of its own.
float truncated_normal(std::uint64_t key, std::uint64_t element);

// A stream of numbers from one key. Thread: one.
class Random {
 public:
  explicit Random(std::uint64_t seed) : key_(seed) {}
  std::uint64_t bits();                      // 64 random bits
  std::uint64_t below(std::uint64_t bound);  // uniform in [0, bound); bound > 0
  // Uniform in [0, 1), on a grid of 2^-53.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace cairn
