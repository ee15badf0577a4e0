// Lookups of variables whose rows lie in the device's memory: of one, or of a set in one launch.
#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/ops/row_kernels.h"
#include "core/kernels/cuda/runtime/half.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"
#include "core/kernels/cuda/runtime/words.h"

namespace cairn::cuda {
namespace {

using GatherOf = RowKernels::GatherOf;
using GatherRun = RowKernels::GatherRun;

// More do not fit into a kernel's parameters.
constexpr int kSetMax = 48;

// One variable's lookups among a set's. Strides and widths are in words, each of its own side.
struct Lookup {
  const std::byte* base;
  const std::byte* ids;  // null: every row in order
  std::byte* to;
  std::int64_t rows, row_stride, to_stride;
  Divisor width;         // of a row
  std::int64_t first;    // word of the set
  std::int64_t lookups;  // of the set before these
};
struct Lookups {
  Lookup of[kSetMax];
  int count;
  std::int64_t words;  // of the set

  CAIRN_DEVICE const Lookup& at(std::int64_t word) const {
    int low = 0, high = count;  // it is in [low, high)
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (of[middle].first <= word ? low : high) = middle;
    }
    return of[low];
  }
};

// Copies a word unchanged.
template <typename Word>
struct Copied {
  using From = Word;
  using To = Word;
  CAIRN_DEVICE static Word of(const Word& word) { return word; }
};
// Rounds float32 to bfloat16.
struct Rounded {
  using From = float;
  using To = std::uint16_t;
  CAIRN_DEVICE static To of(float x) { return narrow_bfloat16(x); }
};
struct RoundedFour {
  struct alignas(16) From {
    float x[4];
  };
  struct alignas(8) To {
    std::uint16_t x[4];
  };
  CAIRN_DEVICE static To of(const From& from) {
    return {{narrow_bfloat16(from.x[0]), narrow_bfloat16(from.x[1]), narrow_bfloat16(from.x[2]),
             narrow_bfloat16(from.x[3])}};
  }
};

template <typename Way, typename Id>
void gather_words(Queue& queue, const Lookups& set, const FaultSite& fault) {
  using From = typename Way::From;
  using To = typename Way::To;
  for_each(queue, set.words, [=] CAIRN_KERNEL_BODY(std::int64_t word) {
    const Lookup& one = set.at(word);
    const std::int64_t in = word - one.first, place = one.width.divide(in),
                       j = in - place * one.width.by;
    const std::int64_t id =
        one.ids != nullptr ? static_cast<std::int64_t>(reinterpret_cast<const Id*>(one.ids)[place])
                           : place;
    To& to = reinterpret_cast<To*>(one.to)[place * one.to_stride + j];
    if (id >= 0 && id < one.rows) {
      to = Way::of(reinterpret_cast<const From*>(one.base)[id * one.row_stride + j]);
    } else {
      to = To{};
      if (j == 0) fault.report(one.lookups + place, id);
    }
  });
}

constexpr std::int64_t lowest_bit(std::int64_t of) { return of & -of; }

// The kind that all lookups of a set share. If a narrow row joined a set of wide ones, all would be
// copied in narrow words.
struct SetKind {
  DType table, ids, rows;
  std::int64_t word;  // elements that divide the rows, at most what a thread copies
  bool operator==(const SetKind&) const = default;
};

// Elements that one thread copies, at most.
std::int64_t word_max(DType from, DType to) {
  return from != to ? 4 : static_cast<std::int64_t>(sizeof(Word16) / dtype_bytes(from));
}

SetKind kind_of(const GatherOf& one) {
  const Shape& table = one.table.shape;
  const std::int64_t row = one.ids ? table.row_elements() : table.elements();
  return {one.table.dtype, one.ids ? one.ids->dtype : DType::kInt64, one.rows,
          lowest_bit(row | word_max(one.table.dtype, one.rows))};
}

std::int64_t count_of(const GatherOf& one) {
  if (one.ids) return one.ids->shape.elements();
  return one.table.shape.rank() > 0 ? one.table.shape[0] : 1;
}

// The elements of the widest words in which the set's rows can be read and written, at most `most`.
std::int64_t word_elements(const Lookups& set, std::size_t from, std::size_t to,
                           std::int64_t most) {
  std::int64_t places = most;
  for (int i = 0; i < set.count; ++i) {
    const Lookup& one = set.of[i];
    places |= one.width.by | one.row_stride | one.to_stride |
              static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(one.base) / from) |
              static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(one.to) / to);
  }
  return lowest_bit(places);
}

// From elements to words of so many elements.
Lookups in_words(Lookups set, std::int64_t word) {
  set.words /= word;
  for (int i = 0; i < set.count; ++i) {
    set.of[i].width.by /= word;
    set.of[i].first /= word;
    set.of[i].row_stride /= word;
    set.of[i].to_stride /= word;
  }
  return set;
}

template <typename Id>
void gather_set(Queue& queue, const SetKind& kind, const Lookups& set, const FaultSite& fault) {
  const std::size_t from = dtype_bytes(kind.table);
  const std::int64_t word = word_elements(set, from, dtype_bytes(kind.rows), kind.word);
  if (kind.table != kind.rows)
    return word == 4 ? gather_words<RoundedFour, Id>(queue, in_words(set, word), fault)
                     : gather_words<Rounded, Id>(queue, set, fault);
  with_word(word * static_cast<std::int64_t>(from), [&](auto one) {
    gather_words<Copied<decltype(one)>, Id>(queue, in_words(set, word), fault);
  });
}

// The lookups of one set, prepared.
class LookupSet {
 public:
  LookupSet(Queue& queue, const GatherOf& first) : queue_(queue), kind_(kind_of(first)) {}

  bool takes(const GatherOf& one) const {
    return kind_of(one) == kind_ && members_.size() < std::size_t{kSetMax};
  }
  void add(const GatherOf& one, std::size_t place) {
    firsts_.push_back(members_.empty() ? 0 : firsts_.back() + count_of(members_.back()));
    members_.push_back(one);
    places_.push_back(place);
  }
  void finish() {
    fault_ = queue_.add_fault(
        [all = members_, firsts = firsts_](std::int64_t position, std::int64_t id) {
          const auto after = std::ranges::upper_bound(firsts, position);
          const auto i = static_cast<std::size_t>(after - firsts.begin() - 1);
          return id_text("gather_variable", all[i].table, *all[i].ids, position - firsts[i], id);
        });
  }

  void run(std::span<const GatherRun> runs) {
    Lookups set{};
    for (std::size_t i = 0; i < members_.size(); ++i) add_to(set, i, runs[places_[i]]);
    if (set.words == 0) return;
    if (queue_.driver().watches()) tell_driver(runs);
    if (kind_.ids == DType::kInt32)
      gather_set<std::int32_t>(queue_, kind_, set, *fault_);
    else
      gather_set<std::int64_t>(queue_, kind_, set, *fault_);
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const Range range = written_by(runs[places_[i]], count_of(members_[i]));
      queue_.written(range.begin, range.bytes);
    }
  }

 private:
  // A whole variable whose rows lie one behind another is one row.
  void add_to(Lookups& set, std::size_t i, const GatherRun& run) const {
    Lookup one{run.block.base,  run.ids,         run.rows,  run.block.rows, run.block.row_stride,
               run.rows_stride, {run.block.dim}, set.words, firsts_[i]};
    std::int64_t count = count_of(members_[i]);
    if (run.ids == nullptr && one.row_stride == run.block.dim && one.to_stride == run.block.dim) {
      one.row_stride = one.to_stride = one.width.by = count * run.block.dim;
      one.rows = count = 1;
    }
    if (count * one.width.by == 0) return;
    set.of[set.count++] = one;
    set.words += count * one.width.by;
  }

  void tell_driver(std::span<const GatherRun> runs) const {
    std::vector<Range> reads, writes;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const GatherRun& one = runs[places_[i]];
      const std::int64_t count = count_of(members_[i]);
      reads.push_back(range_of(one.block));
      if (one.ids != nullptr)
        reads.push_back({one.ids, static_cast<std::size_t>(count) * dtype_bytes(kind_.ids)});
      writes.push_back(written_by(one, count));
    }
    announce(queue_, reads, writes);
  }

  // From the first row to the last; between its rows those of others may lie.
  Range written_by(const GatherRun& one, std::int64_t count) const {
    if (count == 0) return {};
    return {one.rows, static_cast<std::size_t>((count - 1) * one.rows_stride + one.block.dim) *
                          dtype_bytes(kind_.rows)};
  }

  Queue& queue_;
  const SetKind kind_;
  std::vector<GatherOf> members_;
  std::vector<std::int64_t> firsts_;  // beside members_: of the set's lookups
  std::vector<std::size_t> places_;   // likewise: among all runs
  std::shared_ptr<const FaultSite> fault_;
};

}  // namespace

RowKernels::Gathers prepare_gathers(Queue& queue, std::span<const GatherOf> all) {
  auto sets = std::make_shared<std::vector<LookupSet>>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto set = std::ranges::find_if(*sets, [&](const LookupSet& s) { return s.takes(all[i]); });
    (set != sets->end() ? *set : sets->emplace_back(queue, all[i])).add(all[i], i);
  }
  for (LookupSet& set : *sets) set.finish();
  return [sets](std::span<const GatherRun> runs) {
    for (LookupSet& set : *sets) set.run(runs);
  };
}

}  // namespace cairn::cuda
