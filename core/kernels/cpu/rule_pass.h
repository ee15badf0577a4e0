// Walking over rows and slots, one element after another: what the kernels of the update rules
// share.
//
// A kernel is a CAIRN_CLONES function that hands `f(parameter, slot 0, slot 1, slot 2, gradient)`
// to one of the walks; everything is inlined into it, so that each clone vectorises its own loop
// over a row. A slot that a rule lacks aliases the parameter and must not be used.
//   Thread  the rows' owner. Nothing here allocates, except every_row() for rows that come out of
//           order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/base/clones.h"
#include "core/graph/update_rule.h"
#include "core/memory/stripes.h"

namespace cairn {

// The rows of one pass: `count` rows with numbers[i] and gradients values[i * dim ...]. `numbers`
// null: rows 0 .. count - 1 in order.
struct Pass {
  float* base;
  std::int64_t stride, slot_offset, dim, rows;  // as in RowBlock
  const std::int64_t* numbers;
  std::size_t count;
  const float* values;
  bool every_row;  // rows not named get gradient zero
};

// A loop over rows, and the kind that it is the loop of (RuleDef::loop).
struct RowPass {
  RuleKind loop;
  void (*apply)(const UpdateRule& rule, const RuleInputs& inputs, const Pass& pass);
};
// One part of the table per file; the assignments and SGD stand in apply_rule.cc.
std::span<const RowPass> adaptive_passes();
std::span<const RowPass> moments_passes();
std::span<const RowPass> custom_passes();

// How many rows ahead are fetched: rows of a few cache lines each still fit the first-level cache.
// In a table of 8 M rows, one thread updates 44 M rows per second if 12 to 16 are fetched ahead,
// and 76 M if 64 are (bench/notebook.md).
inline constexpr std::size_t kPrefetchRows = 64;

// Asks for the first line of a row and of each slot; the processor's own prefetching follows from
// there. Tables are far larger than the caches and their rows come in no order, so without this an
// update would wait for memory at each row.
template <int kSlots>
CAIRN_INLINE void prefetch(const Pass& pass, std::size_t i) {
  if (pass.numbers == nullptr || i >= pass.count) return;
  const float* row = pass.base + pass.numbers[i] * pass.stride;
  for (int k = 0; k <= kSlots; ++k) __builtin_prefetch(row + k * pass.slot_offset, 1);
}

// The inner loop: `count` elements of a row with their slots. ivdep: parameters, slots and
// gradients do not overlap, except for unused slots, which f does not touch.
template <int kSlots, typename F>
CAIRN_INLINE void elements(const Pass& pass, float* p, const float* g, std::int64_t count, F f) {
  float* s0 = p + (kSlots > 0 ? pass.slot_offset : 0);
  float* s1 = p + (kSlots > 1 ? 2 * pass.slot_offset : 0);
  float* s2 = p + (kSlots > 2 ? 3 * pass.slot_offset : 0);
#pragma GCC ivdep
  for (std::int64_t j = 0; j < count; ++j) f(p[j], s0[j], s1[j], s2[j], g[j]);
}

template <int kSlots, typename F>
CAIRN_INLINE void one_row(const Pass& pass, std::int64_t row, const float* g, F f) {
  elements<kSlots>(pass, pass.base + row * pass.stride, g, pass.dim, f);
}

// A row that is a whole variable, or a slice of one. It is walked in two stripes in turn, so that
// two streams of addresses are fetched ahead: SGD is then 1.21 to 1.25 times as fast, and rules
// with slots, which are several streams by themselves, lose nothing (bench/notebook.md).
template <int kSlots, typename F>
CAIRN_INLINE void long_row(const Pass& pass, F f) {
  constexpr std::int64_t kStripes = 2, kPiece = 32;
  const auto stripe = static_cast<std::int64_t>(
      stripe_length(static_cast<std::size_t>(pass.dim), sizeof(float), kStripes));
  for (std::int64_t at = 0; at < stripe; at += kPiece)
    for (std::int64_t s = 0; s < kStripes; ++s)
      elements<kSlots>(pass, pass.base + s * stripe + at, pass.values + s * stripe + at, kPiece, f);
  const std::int64_t done = kStripes * stripe;
  elements<kSlots>(pass, pass.base + done, pass.values + done, pass.dim - done, f);
}

// Rows without a gradient, under a table rule.
template <int kSlots, typename F>
CAIRN_INLINE void idle_rows(const Pass& pass, std::int64_t begin, std::int64_t end, F f) {
  for (std::int64_t row = begin; row < end; ++row) {
    float* p = pass.base + row * pass.stride;
    float* s0 = p + (kSlots > 0 ? pass.slot_offset : 0);
    float* s1 = p + (kSlots > 1 ? 2 * pass.slot_offset : 0);
    float* s2 = p + (kSlots > 2 ? 3 * pass.slot_offset : 0);
#pragma GCC ivdep
    for (std::int64_t j = 0; j < pass.dim; ++j) f(p[j], s0[j], s1[j], s2[j]);
  }
}

// Rows that have a gradient, in the order in which they are named.
template <int kSlots, typename F>
CAIRN_INLINE void named_rows(const Pass& pass, F f) {
  if (pass.numbers == nullptr && pass.count == 1) return long_row<kSlots>(pass, f);
  for (std::size_t i = 0; i < kPrefetchRows; ++i) prefetch<kSlots>(pass, i);
  for (std::size_t i = 0; i < pass.count; ++i) {
    prefetch<kSlots>(pass, i + kPrefetchRows);
    const std::int64_t row =
        pass.numbers != nullptr ? pass.numbers[i] : static_cast<std::int64_t>(i);
    one_row<kSlots>(pass, row, pass.values + static_cast<std::int64_t>(i) * pass.dim, f);
  }
}

// The order in which the named rows ascend; empty if they ascend as they are.
inline std::vector<std::size_t> ascending(const Pass& pass) {
  std::vector<std::size_t> order;
  if (std::is_sorted(pass.numbers, pass.numbers + pass.count)) return order;
  order.resize(pass.count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return pass.numbers[a] < pass.numbers[b]; });
  return order;
}

// Every row of the block once, in row order: f for the rows named, `idle(parameter, slot 0, slot 1,
// slot 2)` for the stretches between. One pass over memory, not one for the named rows and one for
// all.
template <int kSlots, typename F, typename Idle>
CAIRN_INLINE void every_row(const Pass& pass, F f, Idle idle) {
  const std::vector<std::size_t> order = ascending(pass);
  std::int64_t next = 0;
  for (std::size_t k = 0; k < pass.count; ++k) {
    const std::size_t i = order.empty() ? k : order[k];
    const std::int64_t row = pass.numbers[i];
    idle_rows<kSlots>(pass, next, row, idle);
    one_row<kSlots>(pass, row, pass.values + static_cast<std::int64_t>(i) * pass.dim, f);
    next = row + 1;
  }
  idle_rows<kSlots>(pass, next, pass.rows, idle);
}

// The walk that the rule's kind asks for. A dense gradient names every row, so that a table rule
// has no idle ones.
template <int kSlots, typename F, typename Idle>
CAIRN_INLINE void walk(const Pass& pass, F f, Idle idle) {
  if (pass.every_row && pass.numbers != nullptr) {
    every_row<kSlots>(pass, f, idle);
  } else {
    named_rows<kSlots>(pass, f);
  }
}

}  // namespace cairn
