// Walking over rows and slots: what the update rules of CUDA devices share.
//
// A rule is a struct with its arithmetic for one parameter and the slots beside it:
//
//   static void step(T& p, T& s0, T& s1, T& s2, T g, bool named, const RuleRates& r);
//
// Slots from kSlots on are not the row's and must not be used. `named` is false for a row that a
// table rule touches although no gradient came; g is then 0. One function serves both, so that a
// row ends in the same bits whether its gradient of zero was sent or left out.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "core/graph/rules/rule_def.h"
#include "core/graph/update_rule.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"

namespace cairn::cuda {

// `count` rows of a block: those named, in the order of their names, or all of them in row order.
struct RowWalk {
  std::byte* base;
  std::int64_t stride, slot_offset, dim, count;
  const std::int64_t* numbers;  // null: row i is row i. Negative: nothing is changed for it
  // By row, 1 + where its gradient stands in `values`; 0: none came. Null: gradient i is row i's.
  const std::uint32_t* places;
  const std::byte* values;
  const RuleRates* rates;  // may be null for assignments

  CAIRN_DEVICE std::int64_t row(std::int64_t i) const {
    return numbers != nullptr ? numbers[i] : i;
  }
  // Negative: the row has no gradient.
  CAIRN_DEVICE std::int64_t place(std::int64_t i) const {
    return places != nullptr ? static_cast<std::int64_t>(places[i]) - 1 : i;
  }
};

// Enqueues the rule's arithmetic for the rows of a walk. Of several, each is one row, all of which
// have their gradients in order; they take as few launches as hold them.
using WalkRows = void (*)(Queue& queue, std::span<const RowWalk> walks);

// A kernel over rows, and the kind that it is the loop of (RuleDef::loop). What a constant of the
// rule decides is chosen when the rule is prepared.
struct RuleWalk {
  RuleKind loop;
  WalkRows (*choose)(const RuleConstants& constants);
};
// One part of the table per file; the assignments and SGD stand in rules.cu.
std::span<const RuleWalk> adaptive_walks();
std::span<const RuleWalk> moments_walks();

// Neighbouring elements of a row, loaded and stored as one.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Neighbours {
  T at[kWidth];
};

// kWidth parameters from `p` on. `g` null: no gradient came.
template <typename Rule, int kWidth>
CAIRN_DEVICE void change(typename Rule::Number* p, std::int64_t slot_offset,
                         const typename Rule::Number* g, const RuleRates& rates) {
  using Part = Neighbours<typename Rule::Number, kWidth>;
  Part part[4] = {}, gradient = {};
  CAIRN_UNROLL
  for (int k = 0; k <= Rule::kSlots; ++k)
    part[k] = *reinterpret_cast<const Part*>(p + k * slot_offset);
  if (g != nullptr) gradient = *reinterpret_cast<const Part*>(g);
  CAIRN_UNROLL
  for (int e = 0; e < kWidth; ++e)
    Rule::step(part[0].at[e], part[1].at[e], part[2].at[e], part[3].at[e], gradient.at[e],
               g != nullptr, rates);
  CAIRN_UNROLL
  for (int k = 0; k <= Rule::kSlots; ++k) *reinterpret_cast<Part*>(p + k * slot_offset) = part[k];
}

// One thread per kWidth neighbouring elements of a row; what is left at a row's end, one by one.
template <typename Rule, int kWidth>
void walk_parts(Queue& queue, const RowWalk& walk) {
  using T = typename Rule::Number;
  const Divisor parts{(walk.dim + kWidth - 1) / kWidth};
  for_each(queue, walk.count * parts.by, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const std::int64_t at = parts.divide(i), j = (i - at * parts.by) * kWidth;
    const std::int64_t row = walk.row(at), place = walk.place(at);
    if (row < 0) return;
    T* const p = reinterpret_cast<T*>(walk.base) + row * walk.stride + j;
    const T* const g =
        place < 0 ? nullptr : reinterpret_cast<const T*>(walk.values) + place * walk.dim + j;
    const RuleRates rates = walk.rates != nullptr ? *walk.rates : RuleRates{};
    if (kWidth == 1 || j + kWidth <= walk.dim) {
      change<Rule, kWidth>(p, walk.slot_offset, g, rates);
    } else {
      for (std::int64_t e = 0; e < walk.dim - j; ++e)
        change<Rule, 1>(p + e, walk.slot_offset, g == nullptr ? g : g + e, rates);
    }
  });
}

// Whether every part of kWidth elements that begins at a multiple of kWidth in its row lies where
// it can be loaded as one.
template <typename Rule, int kWidth>
bool in_parts(const RowWalk& walk) {
  using Part = Neighbours<typename Rule::Number, kWidth>;
  const auto aligned = [](const std::byte* at) {
    return reinterpret_cast<std::uintptr_t>(at) % alignof(Part) == 0;
  };
  const bool one_row = walk.count == 1 && walk.numbers == nullptr && walk.places == nullptr;
  return aligned(walk.base) && aligned(walk.values) &&
         (Rule::kSlots == 0 || walk.slot_offset % kWidth == 0) &&
         (one_row || (walk.dim % kWidth == 0 && walk.stride % kWidth == 0));
}

// Rows of one launch.
struct RowsTogether {
  static constexpr int kMax = 32;
  struct Row {
    std::int64_t first;  // part of the launch
    std::int64_t dim, slot_offset;
    std::byte* base;
    const std::byte* values;
    const RuleRates* rates;
  };
  Row rows[kMax];
  int count = 0;

  // The row that the part belongs to.
  CAIRN_DEVICE const Row& of(std::int64_t part) const {
    int low = 0, high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (rows[middle].first <= part ? low : high) = middle;
    }
    return rows[low];
  }
};

// As walk_parts(), of up to RowsTogether::kMax walks of one row each.
template <typename Rule, int kWidth>
void walk_together(Queue& queue, std::span<const RowWalk> walks) {
  using T = typename Rule::Number;
  RowsTogether all;
  std::int64_t parts = 0;
  for (const RowWalk& walk : walks) {
    all.rows[all.count++] = {parts, walk.dim, walk.slot_offset, walk.base, walk.values, walk.rates};
    parts += (walk.dim + kWidth - 1) / kWidth;
  }
  for_each(queue, parts, [=] CAIRN_KERNEL_BODY(std::int64_t part) {
    const RowsTogether::Row& row = all.of(part);
    const std::int64_t j = (part - row.first) * kWidth;
    T* const p = reinterpret_cast<T*>(row.base) + j;
    const T* const g = reinterpret_cast<const T*>(row.values) + j;
    const RuleRates rates = row.rates != nullptr ? *row.rates : RuleRates{};
    if (kWidth == 1 || j + kWidth <= row.dim) {
      change<Rule, kWidth>(p, row.slot_offset, g, rates);
    } else {
      for (std::int64_t e = 0; e < row.dim - j; ++e)
        change<Rule, 1>(p + e, row.slot_offset, g + e, rates);
    }
  });
}

template <typename Rule>
void walk_rows(Queue& queue, std::span<const RowWalk> walks) {
  constexpr bool kVectors = sizeof(typename Rule::Number) == 4;
  if (walks.size() == 1) {
    if constexpr (kVectors) {
      if (in_parts<Rule, 4>(walks[0])) return walk_parts<Rule, 4>(queue, walks[0]);
    }
    return walk_parts<Rule, 1>(queue, walks[0]);
  }
  for (; !walks.empty();
       walks = walks.subspan(std::min<std::size_t>(walks.size(), RowsTogether::kMax))) {
    const auto some = walks.first(std::min<std::size_t>(walks.size(), RowsTogether::kMax));
    if constexpr (kVectors) {
      if (std::ranges::all_of(some, in_parts<Rule, 4>)) {
        walk_together<Rule, 4>(queue, some);
        continue;
      }
    }
    walk_together<Rule, 1>(queue, some);
  }
}

}  // namespace cairn::cuda
