// A reduction over any set of axes as a few passes, each over the middle axis of a
// three-dimensional view: what every device's kernels share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/graph/graph.h"

namespace cairn {

// Reduces the middle axis: [outer, n, inner] -> [outer, inner].
struct ReductionPass {
  std::int64_t outer, n, inner;
};

// The passes that reduce the axes marked, the last axis first, so that the largest pass, which
// reads the whole input, reads it in order. Neighbouring axes of one kind are one pass; axes of
// size 1 are none.
inline std::vector<ReductionPass> passes_of(const Shape& shape, const std::vector<bool>& reduced) {
  std::vector<std::pair<std::int64_t, bool>> runs;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool gone = reduced[static_cast<std::size_t>(axis)];
    if (shape[axis] == 1) continue;
    if (!runs.empty() && runs.back().second == gone)
      runs.back().first *= shape[axis];
    else
      runs.emplace_back(shape[axis], gone);
  }
  std::vector<ReductionPass> passes;
  std::int64_t inner = 1;
  for (std::size_t i = runs.size(); i-- > 0;) {
    if (!runs[i].second) {
      inner *= runs[i].first;
      continue;
    }
    std::int64_t outer = 1;
    for (std::size_t j = 0; j < i; ++j) outer *= runs[j].first;
    passes.push_back({outer, runs[i].first, inner});
  }
  return passes;
}

// By axis: does the attribute `axes` name it? None named means all.
inline std::vector<bool> reduced_axes(const Shape& shape, const Attributes& attributes) {
  const auto& axes = attributes.get<std::vector<std::int64_t>>("axes");
  std::vector<bool> reduced(static_cast<std::size_t>(shape.rank()), axes.empty());
  for (auto axis : axes) reduced[static_cast<std::size_t>(axis)] = true;
  return reduced;
}

// By axis of `from`: does `to` lack it, or have it stretched from 1? Shapes are aligned at their
// last axis. Sums over these axes are the gradient of broadcasting.
inline std::vector<bool> stretched_axes(const Shape& from, const Shape& to) {
  std::vector<bool> reduced;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const int own = axis - (from.rank() - to.rank());
    reduced.push_back(own < 0 || (to[own] == 1 && from[axis] != 1));
  }
  return reduced;
}

}  // namespace cairn
