// BestList: the k best of the scores that it is shown, in a heap whose top is the worst of them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cairn::serving {

struct ScoredPlace {
  float score = 0;
  std::int64_t place = 0;
};

// Whether `a` comes before `b`: by its score, and of equal scores by its place.
inline bool is_better(const ScoredPlace& a, const ScoredPlace& b) {
  return a.score > b.score || (a.score == b.score && a.place < b.place);
}

class BestList {
 public:
  explicit BestList(std::size_t most) : most_(most) { heap_.reserve(most); }

  bool full() const { return heap_.size() == most_; }
  // The worst score of a full list. If places come in ascending order, only higher ones enter.
  float threshold() const { return heap_.front().score; }
  void add(ScoredPlace one) {
    if (full()) {
      if (!is_better(one, heap_.front())) return;
      std::ranges::pop_heap(heap_, is_better);
      heap_.back() = one;
    } else {
      heap_.push_back(one);
    }
    std::ranges::push_heap(heap_, is_better);
  }
  // The list from its best; none is left.
  std::vector<ScoredPlace> take() {
    std::ranges::sort(heap_, is_better);
    return std::exchange(heap_, {});
  }

 private:
  std::size_t most_;
  std::vector<ScoredPlace> heap_;
};

}  // namespace cairn::serving
