// Lookahead: how many closures of a lane overlap, between two and the pipeline's depth.
//
// One too many pulls sooner than it had to, and its rows are older by an update; one too few, and
// the lane idles until rows come. So it begins with two and decides every kTurns turns of
// computing: one more where the lane idled for more than 3 % of the time that it computed (twice as
// many where it idled longer than it computed); else, after a while of that, it tries one fewer. A
// try that fails makes the next one wait twice as long.
//   Thread  one loop's.
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/clock.h"

namespace cairn::worker {

class Lookahead {
 public:
  static constexpr std::size_t kLeast = 2;  // one computes, and the next one's rows come
  static constexpr int kTurns = 32;
  static constexpr int kPatienceMax = 64;

  explicit Lookahead(std::size_t most)
      : least_(std::min(kLeast, most)), most_(most), limit_(least_) {}

  // A turn of computing has ended. `idled`: how long the lane had nothing to do before it and yet
  // held this closure back.
  void took(Duration idled, Duration computed) {
    idled_ += idled;
    computed_ += computed;
    if (++turns_ < kTurns) return;
    decide();
    idled_ = computed_ = Duration(0);
    turns_ = 0;
  }

  std::size_t limit() const { return limit_; }

 private:
  void decide() {
    const bool trying = std::exchange(trying_, false);
    if (idled_ > computed_ / 32) {
      limit_ = std::min(limit_ + (idled_ > computed_ ? limit_ : 1), most_);
      patience_ = trying ? std::min(2 * patience_, kPatienceMax) : patience_;
      calm_ = 0;
    } else if (trying) {
      patience_ = 1;
    } else if (++calm_ >= patience_ && limit_ > least_) {
      --limit_;
      trying_ = true;
      calm_ = 0;
    }
  }

  std::size_t least_, most_, limit_;
  Duration idled_{0}, computed_{0};
  int turns_ = 0;
  int calm_ = 0, patience_ = 1;  // in decisions
  bool trying_ = false;          // with one fewer, since the last decision
};

}  // namespace cairn::worker
