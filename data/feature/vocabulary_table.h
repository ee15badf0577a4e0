// VocabularyTable: from the texts of a vocabulary to their places in it. Looked up once for every
// value of a vocabulary feature, which in a job over CSV is a large part of reading.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "data/feature/hash.h"

namespace cairn {

// Open addressing with linear probing, at most half full, with the hash beside the place so that a
// miss rarely looks at text. std::unordered_map would follow a pointer to a node for every look-up.
// The number of slots is a power of two: the low bits of the hash are the place to begin.
//   Thread  immutable; any.
//   Source  Knuth, "The Art of Computer Programming", volume 3, section 6.4, algorithm L.
class VocabularyTable {
 public:
  // `values` are distinct (check_feature()); place i is values[i].
  //   Cost  a copy of the texts, and 32 to 64 bytes per value.
  explicit VocabularyTable(const std::vector<std::string>& values)
      : values_(values), slots_(std::bit_ceil(values.size() * 2 + 1)) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      std::uint64_t hash = quick_hash(values_[i]);
      std::size_t at = hash & (slots_.size() - 1);
      while (slots_[at].place >= 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {hash, static_cast<std::int64_t>(i)};
    }
  }

  // The place of `text`; -1: it is not in the vocabulary. Probing ends at a free slot, and half of
  // the slots are free, so a miss takes few steps as well.
  //   Cost  mostly one miss of the caches: the slot. A hit has a second one, the text.
  std::int64_t find(std::string_view text) const {
    std::uint64_t hash = quick_hash(text);
    for (std::size_t at = hash & (slots_.size() - 1); slots_[at].place >= 0;
         at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].hash == hash && values_[static_cast<std::size_t>(slots_[at].place)] == text)
        return slots_[at].place;
    return -1;
  }
  // How many texts there are: the id of unknown values under Oov::kLast.
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }

 private:
  // 16 bytes, so that four lie in a cache line and a short probe stays within one or two. The hash
  // is compared before the text, which lies elsewhere in memory. place -1: free.
  struct Slot {
    std::uint64_t hash = 0;
    std::int64_t place = -1;
  };
  // A word from any address: memcpy() of a known size is one load, and unlike a cast it may be
  // unaligned.
  template <typename Word>
  static Word word_at(const char* at) {
    Word word;
    std::memcpy(&word, at, sizeof(word));
    return word;
  }
  // A hash of eight bytes at a time. It never leaves this process, so it may depend on the
  // machine's byte order, and it need not be that of data/feature/hash.h, which goes byte by byte.
  // Texts of 4 to 7 bytes are read as two overlapping words, shorter ones byte by byte; the length
  // is mixed in first, so that a text and the same text with zero bytes behind it differ.
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

  // The texts in their order; a slot holds a place in it. Copied, so that the table outlives the
  // description that it was made from.
  std::vector<std::string> values_;
  std::vector<Slot> slots_;
};

}  // namespace cairn
