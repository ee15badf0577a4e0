// VocabularyTable: from the texts of a vocabulary to their places in it.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "data/hash.h"

namespace cairn {

// Open addressing, at most half full, with the hash beside the place so that a miss rarely looks at
// text. Thread: any.
class VocabularyTable {
 public:
  explicit VocabularyTable(const std::vector<std::string>& values)
      : values_(values), slots_(std::bit_ceil(values.size() * 2 + 1)) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      std::uint64_t hash = quick_hash(values_[i]);
      std::size_t at = hash & (slots_.size() - 1);
      while (slots_[at].place >= 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {hash, static_cast<std::int64_t>(i)};
    }
  }

  // -1: not in the vocabulary.
  std::int64_t find(std::string_view text) const {
    std::uint64_t hash = quick_hash(text);
    for (std::size_t at = hash & (slots_.size() - 1); slots_[at].place >= 0;
         at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].hash == hash && values_[static_cast<std::size_t>(slots_[at].place)] == text)
        return slots_[at].place;
    return -1;
  }
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::int64_t place = -1;
  };
  template <typename Word>
  static Word word_at(const char* at) {
    Word word;
    std::memcpy(&word, at, sizeof(word));
    return word;
  }
  // Eight bytes at once; never leaves this process, so it may depend on the machine.
  static std::uint64_t quick_hash(std::string_view text) {
    std::uint64_t hash = text.size();
    const char* at = text.data();
    std::size_t left = text.size();
    for (; left > 8; left -= 8, at += 8)
      hash = mix_bits((hash ^ word_at<std::uint64_t>(at)) * 0x9E3779B97F4A7C15ull);
    std::uint64_t last = 0;
    if (left == 8)
      last = word_at<std::uint64_t>(at);
    else if (left >= 4)
      last = word_at<std::uint32_t>(at) | std::uint64_t{word_at<std::uint32_t>(at + left - 4)}
                                              << 32;
    else
      for (std::size_t i = 0; i < left; ++i) last = last << 8 | static_cast<unsigned char>(at[i]);
    return mix_bits((hash ^ last) * 0x9E3779B97F4A7C15ull);
  }

  std::vector<std::string> values_;
  std::vector<Slot> slots_;
};

}  // namespace cairn
