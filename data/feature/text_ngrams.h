// The words and n-grams of a text as hashes (Ngrams in data/feature/feature_column.h).
//   Source  n-grams of characters between boundaries: Bojanowski et al., "Enriching word vectors
//           with subword information", TACL 5 (2017).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/feature/feature_column.h"
#include "data/feature/hash.h"

namespace cairn {

// Keeps its buffers from text to text.
//   Thread  one at a time.   Cost  a hash per n-gram, over its words' hashes or its characters.
class NgramHasher {
 public:
  explicit NgramHasher(const Ngrams& ngrams) : ngrams_(ngrams) {}

  // Calls visit(hash) for each n-gram of words, in the order of their last words, and then for each
  // of characters. The same n-gram twice is visited twice.
  template <typename Visit>
  void each(std::string_view text, Visit visit) {
    find_words(text);
    const std::size_t most = static_cast<std::size_t>(ngrams_.words_max);
    for (std::size_t end = 1; end <= hashes_.size(); ++end)
      for (std::size_t n = 1; n <= std::min(most, end); ++n) visit(of_words(end - n, end));
    if (ngrams_.characters_max > 0)
      for (const std::string& word : words_) each_of_characters(word, visit);
  }

 private:
  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           static_cast<unsigned char>(c) >= 0x80;
  }
  static bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

  void find_words(std::string_view text) {
    words_.clear();
    hashes_.clear();
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && is_letter(text[end])) ++end;
      if (end > at) add_word(text.substr(at, end - at));
      at = end + 1;
    }
  }
  void add_word(std::string_view word) {
    std::string& made = words_.emplace_back(word);
    if (!ngrams_.keep_case)
      for (char& c : made)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    hashes_.push_back(text_hash(made));
  }

  // One word has the hash of its text.
  std::uint64_t of_words(std::size_t begin, std::size_t end) const {
    std::uint64_t hash = hashes_[begin];
    for (std::size_t i = begin + 1; i < end; ++i) hash = cross_hash(hash, hashes_[i]);
    return hash;
  }

  // A hash of characters is crossed with a number of its own, so that "the" within "bathe" is not
  // the word "the".
  template <typename Visit>
  void each_of_characters(const std::string& word, Visit visit) {
    constexpr std::uint64_t kOfCharacters = 0x63;
    const std::string bound = "<" + word + ">";
    begins_.clear();
    for (std::size_t i = 0; i < bound.size(); ++i)
      if (begins_character(bound[i])) begins_.push_back(i);
    const std::size_t characters = begins_.size();
    begins_.push_back(bound.size());
    const auto least = static_cast<std::size_t>(ngrams_.characters_min),
               most = static_cast<std::size_t>(ngrams_.characters_max);
    for (std::size_t begin = 0; begin < characters; ++begin)
      for (std::size_t n = least; n <= std::min(most, characters - begin); ++n)
        visit(cross_hash(kOfCharacters, text_hash(std::string_view(bound).substr(
                                            begins_[begin], begins_[begin + n] - begins_[begin]))));
  }

  const Ngrams ngrams_;
  std::vector<std::string> words_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::size_t> begins_;
};

}  // namespace cairn
