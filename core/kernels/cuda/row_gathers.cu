// Lookups of variables whose rows lie in the device's memory: of one, or of a set in one launch.
#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/half.h"
#include "core/kernels/cuda/index.h"
#include "core/kernels/cuda/kernel_table.h"
#include "core/kernels/cuda/launch.h"
#include "core/kernels/cuda/row_kernels.h"
#include "core/kernels/cuda/words.h"

namespace cairn::cuda {
namespace {

using GatherOf = RowKernels::GatherOf;
using GatherRun = RowKernels::GatherRun;

// More do not fit into a kernel's parameters.
constexpr int kSetMax = 48;

// One variable's lookups among a set's. Strides are in words of their own side.
struct Lookup {
  const std::byte* base;
  const std::byte* ids;  // null: every row in order
  std::byte* to;
  std::int64_t rows, row_stride, to_stride;
  std::int64_t first;  // of the set's lookups
};
struct Lookups {
  Lookup of[kSetMax];
  int count;
  std::int64_t all;    // lookups of the set
  std::int64_t width;  // of a row, in words

  CAIRN_DEVICE const Lookup& at(std::int64_t position) const {
    int low = 0, high = count;  // it is in [low, high)
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (of[middle].first <= position ? low : high) = middle;
    }
    return of[low];
  }
};

// What becomes of a word on its way.
template <typename Word>
struct Copied {
  using From = Word;
  using To = Word;
  CAIRN_DEVICE static Word of(const Word& word) { return word; }
};
// Of float32, bfloat16.
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
  const Divisor words{set.width};
  for_each(queue, set.all * set.width, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const std::int64_t position = words.divide(i), j = i - position * words.by;
    const Lookup& one = set.at(position);
    const std::int64_t place = position - one.first;
    const std::int64_t id =
        one.ids != nullptr ? static_cast<std::int64_t>(reinterpret_cast<const Id*>(one.ids)[place])
                           : place;
    To& to = reinterpret_cast<To*>(one.to)[place * one.to_stride + j];
    if (id >= 0 && id < one.rows) {
      to = Way::of(reinterpret_cast<const From*>(one.base)[id * one.row_stride + j]);
    } else {
      to = To{};
      if (j == 0) fault.report(position, id);
    }
  });
}

// What all lookups of a set have in common.
struct SetKind {
  DType table, ids, rows;
  std::int64_t dim;
  bool operator==(const SetKind&) const = default;
};

SetKind kind_of(const GatherOf& one) {
  return {one.table.dtype, one.ids.dtype, one.rows, one.table.shape.row_elements()};
}

// Strides come in elements; they leave in words of `word` elements.
Lookups in_words(Lookups set, std::int64_t dim, std::int64_t word) {
  set.width = dim / word;
  for (int i = 0; i < set.count; ++i) {
    set.of[i].row_stride /= word;
    set.of[i].to_stride /= word;
  }
  return set;
}

// The elements of the widest words in which the set's rows can be read and written, if a word may
// have up to `most` elements.
std::int64_t word_elements(const Lookups& set, std::int64_t dim, std::size_t from, std::size_t to,
                           std::int64_t most) {
  auto places = static_cast<std::uint64_t>(dim | most);
  for (int i = 0; i < set.count; ++i) {
    const Lookup& one = set.of[i];
    places |= static_cast<std::uint64_t>(one.row_stride | one.to_stride) |
              reinterpret_cast<std::uintptr_t>(one.base) / from |
              reinterpret_cast<std::uintptr_t>(one.to) / to;
  }
  return static_cast<std::int64_t>(places & (~places + 1));  // the lowest bit
}

template <typename Id>
void gather_set(Queue& queue, const SetKind& kind, const Lookups& set, const FaultSite& fault) {
  const std::size_t from = dtype_bytes(kind.table);
  if (kind.table != kind.rows) {
    if (word_elements(set, kind.dim, from, sizeof(std::uint16_t), 4) == 4)
      gather_words<RoundedFour, Id>(queue, in_words(set, kind.dim, 4), fault);
    else
      gather_words<Rounded, Id>(queue, in_words(set, kind.dim, 1), fault);
    return;
  }
  const std::int64_t most = static_cast<std::int64_t>(sizeof(Word16) / from);
  const std::int64_t word = word_elements(set, kind.dim, from, from, most);
  with_word(word * static_cast<std::int64_t>(from), [&](auto one) {
    gather_words<Copied<decltype(one)>, Id>(queue, in_words(set, kind.dim, word), fault);
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
    const std::int64_t first =
        members_.empty() ? 0 : firsts_.back() + members_.back().ids.shape.elements();
    members_.push_back(one);
    firsts_.push_back(first);
    places_.push_back(place);
  }
  void finish() {
    fault_ = queue_.add_fault(
        [all = members_, firsts = firsts_](std::int64_t position, std::int64_t id) {
          const auto after = std::ranges::upper_bound(firsts, position);
          const auto i = static_cast<std::size_t>(after - firsts.begin() - 1);
          return id_text("gather_variable", all[i].table, all[i].ids, position - firsts[i], id);
        });
  }

  void run(std::span<const GatherRun> runs) {
    Lookups set{};
    set.count = static_cast<int>(members_.size());
    set.all = firsts_.back() + members_.back().ids.shape.elements();
    if (set.all * kind_.dim == 0) return;
    std::vector<Range> reads, writes;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const GatherRun& one = runs[places_[i]];
      set.of[i] = {one.block.base,       one.ids,         one.rows,  one.block.rows,
                   one.block.row_stride, one.rows_stride, firsts_[i]};
      writes.push_back(written_by(one, members_[i].ids.shape.elements()));
    }
    if (queue_.driver().watches()) {
      for (std::size_t i = 0; i < members_.size(); ++i) {
        const TensorType& ids = members_[i].ids;
        reads.push_back(range_of(runs[places_[i]].block));
        const auto count = static_cast<std::size_t>(ids.shape.elements());
        if (const std::byte* const at = runs[places_[i]].ids)
          reads.push_back({at, count * dtype_bytes(ids.dtype)});
      }
      announce(queue_, reads, writes);
    }
    if (kind_.ids == DType::kInt32)
      gather_set<std::int32_t>(queue_, kind_, set, *fault_);
    else
      gather_set<std::int64_t>(queue_, kind_, set, *fault_);
    for (const Range& range : writes) queue_.written(range.begin, range.bytes);
  }

 private:
  // From the first row to the last; between its rows those of others may lie.
  Range written_by(const GatherRun& one, std::int64_t count) const {
    if (count == 0) return {};
    return {one.rows, static_cast<std::size_t>((count - 1) * one.rows_stride + kind_.dim) *
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

RowKernels::Gather prepare_gather(Queue& queue, const TensorType& table, const TensorType* ids) {
  // Without ids every row is looked up in order, and none is out of range.
  const TensorType every{DType::kInt64, Shape{table.shape.rank() > 0 ? table.shape[0] : 1}};
  const GatherOf one{table, ids != nullptr ? *ids : every, table.dtype};
  return [run = prepare_gathers(queue, {&one, 1}), by_ids = ids != nullptr](
             const RowBlock& block, const std::byte* at, std::byte* rows) {
    const GatherRun made{block, by_ids ? at : nullptr, rows, block.dim};
    run({&made, 1});
  };
}

}  // namespace cairn::cuda
