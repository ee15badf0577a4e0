#include "core/base/random.h"

#include <cmath>
#include <numbers>

#include "core/base/philox.h"

namespace cairn {

RandomBits philox(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high) {
  return counter_random::philox(key, counter_low, counter_high);
}

std::uint64_t random_key(std::uint64_t seed, std::uint64_t number) {
  return counter_random::random_key(seed, number);
}

std::uint64_t random_key(std::uint64_t seed, std::string_view name) {
  std::uint64_t key = counter_random::mix(seed ^ name.size());
  for (unsigned char c : name) key = counter_random::mix(key ^ c);
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
