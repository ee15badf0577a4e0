// Candidates are scored a block at a time, for a few queries at a time: the block's vectors stay in
// the second-level cache while all queries pass over them, and scores in the first-level cache
// between being computed and being compared with the worst of the best. Few are better than that
// once the first blocks have gone by, so most of the comparisons are vectors of sixteen that find
// none.
#include "serving/retrieval/exact_scan.h"

#include <array>
#include <cmath>

#include "core/base/clones.h"
#include "core/kernels/cpu/tile.h"

namespace cairn::serving {
namespace {

constexpr std::int64_t kBlock = 1024;  // candidates
constexpr std::int64_t kQueriesAtOnce = 4;
static_assert(kBlock % kTileColumns == 0);

struct Scores {
  alignas(64) std::array<float, kBlock * kQueriesAtOnce> values;
};

template <int kQueries>
CAIRN_INLINE void score(const float* queries, std::int64_t width, const float* panels,
                        std::int64_t count, float* scores) {
  for (std::int64_t i = 0; i < count; ++i) {
    Tile<kQueries> tile;
    tile.add({queries, width, 1}, panels + i * kTileColumns * width, kTileColumns, width);
    tile.store(scores + i * kTileColumns, kBlock);
  }
}

// The scores of `count` panels, for each query kBlock after those of the one before.
CAIRN_CLONES void score_panels(const float* queries, std::int64_t number, std::int64_t width,
                               const float* panels, std::int64_t count, float* scores) {
  switch (number) {
    case 1: return score<1>(queries, width, panels, count, scores);
    case 2: return score<2>(queries, width, panels, count, scores);
    case 3: return score<3>(queries, width, panels, count, scores);
    default: return score<4>(queries, width, panels, count, scores);
  }
}

// The first panel from `panel` on that has a score above the threshold; `count`: none has.
CAIRN_CLONES std::int64_t panel_above(const float* scores, std::int64_t panel, std::int64_t count,
                                      float threshold) {
  for (; panel < count; ++panel) {
    const float* const at = scores + panel * kTileColumns;
    int above = 0;
    for (std::int64_t i = 0; i < kTileColumns; ++i) above |= at[i] > threshold;
    if (above != 0) return panel;
  }
  return count;
}

CAIRN_CLONES float sum_of_products(const float* a, const float* b, std::size_t n) {
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Shows the list the block's scores, of which those behind the last candidate are padding.
void take_best(const float* scores, std::int64_t first, std::int64_t size,
               std::span<const std::int64_t> leave_out, BestList& best) {
  const std::int64_t panels = (size + kTileColumns - 1) / kTileColumns;
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    if (best.full()) panel = panel_above(scores, panel, panels, best.threshold());
    const std::int64_t end = std::min((panel + 1) * kTileColumns, size);
    for (std::int64_t i = panel * kTileColumns; i < end; ++i) {
      const bool enters = best.full() ? scores[i] > best.threshold() : !std::isnan(scores[i]);
      if (enters && !std::ranges::binary_search(leave_out, first + i))
        best.add({scores[i], first + i});
    }
  }
}

}  // namespace

float product_of(std::span<const float> a, std::span<const float> b) {
  return sum_of_products(a.data(), b.data(), a.size());
}

ExactScan::ExactScan(std::span<const float> vectors, std::int64_t width)
    : size_(static_cast<std::int64_t>(vectors.size()) / width), width_(width) {
  const std::int64_t panels = (size_ + kTileColumns - 1) / kTileColumns;
  panels_.resize(static_cast<std::size_t>(panels * kTileColumns * width));
  for (std::int64_t i = 0; i < size_; ++i) {
    float* const panel = panels_.data() + i / kTileColumns * kTileColumns * width;
    const float* const vector = vectors.data() + i * width;
    for (std::int64_t j = 0; j < width; ++j) panel[j * kTileColumns + i % kTileColumns] = vector[j];
  }
}

std::vector<std::vector<ScoredPlace>> ExactScan::top(
    std::span<const float> queries, std::int64_t k,
    std::span<const std::vector<std::int64_t>> leave_out) const {
  const std::int64_t number = static_cast<std::int64_t>(queries.size()) / width_;
  std::vector<BestList> best;
  for (std::int64_t q = 0; q < number; ++q)
    best.emplace_back(static_cast<std::size_t>(std::min(k, size_)));
  Scores scores;
  for (std::int64_t first = 0; first < size_ && k > 0; first += kBlock) {
    const std::int64_t size = std::min(kBlock, size_ - first);
    for (std::int64_t q = 0; q < number; q += kQueriesAtOnce) {
      const std::int64_t these = std::min(kQueriesAtOnce, number - q);
      score_panels(queries.data() + q * width_, these, width_, panels_.data() + first * width_,
                   (size + kTileColumns - 1) / kTileColumns, scores.values.data());
      for (std::int64_t i = 0; i < these; ++i) {
        const auto query = static_cast<std::size_t>(q + i);
        const std::span<const std::int64_t> out =
            leave_out.empty() ? std::span<const std::int64_t>() : leave_out[query];
        take_best(scores.values.data() + i * kBlock, first, size, out, best[query]);
      }
    }
  }
  std::vector<std::vector<ScoredPlace>> all;
  for (BestList& each : best) all.push_back(each.take());
  return all;
}

}  // namespace cairn::serving
