// The update rules' door on CUDA devices, and the rules that have no slots.
#include "core/kernels/cuda/rows/rules.h"

#include <limits>
#include <type_traits>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/rows/rule_walk.h"

namespace cairn::cuda {
namespace {

struct Sgd {
  using Number = float;
  static constexpr int kSlots = 0;
  CAIRN_DEVICE static void step(float& p, float&, float&, float&, float g, bool,
                                const RuleRates& r) {
    p -= r.rate * g;
  }
};

// Sums and products of integers wrap around: computed unsigned, where overflow is defined.
template <typename T>
struct Wrapped {
  using Type = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                           std::type_identity<T>>::type;
};
template <typename T>
struct Add {
  using U = typename Wrapped<T>::Type;
  CAIRN_DEVICE static T of(T p, T g) {
    return static_cast<T>(static_cast<U>(p) + static_cast<U>(g));
  }
};
template <typename T>
struct Subtract {
  using U = typename Wrapped<T>::Type;
  CAIRN_DEVICE static T of(T p, T g) {
    return static_cast<T>(static_cast<U>(p) - static_cast<U>(g));
  }
};
template <typename T>
struct Multiply {
  using U = typename Wrapped<T>::Type;
  CAIRN_DEVICE static T of(T p, T g) {
    return static_cast<T>(static_cast<U>(p) * static_cast<U>(g));
  }
};
struct Divide {
  CAIRN_DEVICE static float of(float p, float g) { return p / g; }
};
template <typename T>
struct Lower {
  CAIRN_DEVICE static T of(T p, T g) { return g < p ? g : p; }
};
template <typename T>
struct Higher {
  CAIRN_DEVICE static T of(T p, T g) { return g > p ? g : p; }
};
template <typename T>
struct Replace {
  CAIRN_DEVICE static T of(T, T g) { return g; }
};

template <typename T, typename Change>
struct Assignment {
  using Number = T;
  static constexpr int kSlots = 0;
  CAIRN_DEVICE static void step(T& p, T&, T&, T&, T g, bool, const RuleRates&) {
    p = Change::of(p, g);
  }
};

template <typename T>
WalkRows assignment(RuleKind loop) {
  switch (loop) {
    case RuleKind::kAssignAdd: return walk_rows<Assignment<T, Add<T>>>;
    case RuleKind::kAssignSub: return walk_rows<Assignment<T, Subtract<T>>>;
    case RuleKind::kAssignMul: return walk_rows<Assignment<T, Multiply<T>>>;
    case RuleKind::kAssignMin: return walk_rows<Assignment<T, Lower<T>>>;
    case RuleKind::kAssignMax: return walk_rows<Assignment<T, Higher<T>>>;
    default: break;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (loop == RuleKind::kAssignDiv) return walk_rows<Assignment<float, Divide>>;
  }
  CAIRN_CHECK(false, "loop ", static_cast<int>(loop), " is no assignment of such numbers");
}

// By the width of an element alone.
WalkRows replacement(DType dtype) {
  switch (dtype_bytes(dtype)) {
    case 1: return walk_rows<Assignment<std::uint8_t, Replace<std::uint8_t>>>;
    case 2: return walk_rows<Assignment<std::uint16_t, Replace<std::uint16_t>>>;
    case 4: return walk_rows<Assignment<std::uint32_t, Replace<std::uint32_t>>>;
    case 8: return walk_rows<Assignment<std::uint64_t, Replace<std::uint64_t>>>;
    default: CAIRN_CHECK(false, "elements of ", dtype_name(dtype), " lie in no device's memory");
  }
}

WalkRows assignment(RuleKind loop, DType dtype) {
  if (loop == RuleKind::kAssign) return replacement(dtype);
  switch (dtype) {
    case DType::kInt32: return assignment<std::int32_t>(loop);
    case DType::kInt64: return assignment<std::int64_t>(loop);
    case DType::kUint8: return assignment<std::uint8_t>(loop);
    default: return assignment<float>(loop);
  }
}

WalkRows kernel_of(const UpdateRule& rule, DType dtype) {
  if (is_assignment(rule.kind)) return assignment(rule.kind, dtype);
  const RuleKind loop = rule_def(rule.kind).loop;
  if (loop == RuleKind::kSgd) return walk_rows<Sgd>;
  for (const std::span<const RuleWalk> part : {adaptive_walks(), moments_walks()})
    for (const RuleWalk& one : part)
      if (one.loop == loop) return one.choose(RuleConstants(rule));
  CAIRN_CHECK(false, "rule ", rule_name(rule.kind), " has no loop on devices");
}

// RowWalk::places. Their lambdas become kernels, so they may not stand in a private member.
void mark_places(Queue& queue, const std::int64_t* numbers, std::int64_t count,
                 std::uint32_t* places) {
  for_each(queue, count, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    if (numbers[i] >= 0) places[numbers[i]] = static_cast<std::uint32_t>(i + 1);
  });
}
void clear_places(Queue& queue, const std::int64_t* numbers, std::int64_t count,
                  std::uint32_t* places) {
  for_each(queue, count, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    if (numbers[i] >= 0) places[numbers[i]] = 0;
  });
}

// One prepared rule.
class Update {
 public:
  Update(Queue& queue, const UpdateRule& rule, DType dtype, std::int64_t rows)
      : queue_(queue),
        kind_(rule.kind),
        slots_(static_cast<std::int64_t>(rule_slots(rule).size())),
        width_(static_cast<std::int64_t>(dtype_bytes(dtype))),
        walk_rows_(kernel_of(rule, dtype)) {
    if (is_table_rule(kind_)) grow(rows);
  }

  void run(const RowBlock& block, const RuleRates* rates, const std::int64_t* numbers,
           std::int64_t count, const std::byte* values) {
    CAIRN_CHECK(numbers != nullptr || count == 0 || count == block.rows, count,
                " rows without numbers are not the block's ", block.rows);
    if (block.rows == 0 || block.dim == 0) return;
    announce(block, rates, numbers, count, values);
    const bool dense = numbers == nullptr && count == block.rows;
    RowWalk walk = walk_of(block, rates, numbers, count, values);
    if (dense) {
      if (one_plane(block)) join_rows(walk);
      walk_rows_(queue_, {&walk, 1});
    } else if (is_table_rule(kind_)) {
      walk_block(block, walk);
    } else {
      walk_rows_(queue_, {&walk, 1});
    }
  }

  // Runs several updates, each of all rows of its block; no two have the same block.
  void run_all(std::span<const RowKernels::UpdateRun> updates) {
    std::vector<RowWalk> planes;
    for (const RowKernels::UpdateRun& one : updates) {
      const RowBlock& block = one.block;
      if (block.rows == 0 || block.dim == 0) continue;
      if (!one_plane(block)) {
        run(block, one.rates, nullptr, block.rows, one.values);
        continue;
      }
      announce(block, one.rates, nullptr, block.rows, one.values);
      planes.push_back(walk_of(block, one.rates, nullptr, block.rows, one.values));
      join_rows(planes.back());
    }
    if (!planes.empty()) walk_rows_(queue_, planes);
  }

 private:
  static RowWalk walk_of(const RowBlock& block, const RuleRates* rates, const std::int64_t* numbers,
                         std::int64_t count, const std::byte* values) {
    return {block.base, block.row_stride, block.slot_offset, block.dim,
            count,      numbers,          nullptr,           values,
            rates};
  }
  void grow(std::int64_t rows) {
    const std::size_t bytes = static_cast<std::size_t>(rows) * sizeof(std::uint32_t);
    places_ = queue_.memory(bytes);
    queue_.driver().fill_zero(queue_.stream(), places_->data(), bytes);
    rows_ = rows;
  }

  // All rows in row order, those not named with a gradient of zero. Between runs all places are 0.
  void walk_block(const RowBlock& block, RowWalk walk) {
    if (walk.count >= std::numeric_limits<std::uint32_t>::max())
      throw UnimplementedError(str(walk.count, " rows in one update on a GPU; at most 2^32 - 2"));
    if (block.rows > rows_) grow(block.rows);
    const std::int64_t count = walk.count;
    const std::int64_t* const numbers = walk.numbers;
    std::uint32_t* const places = places_->as<std::uint32_t>();
    mark_places(queue_, numbers, count, places);
    walk.count = block.rows;
    walk.numbers = nullptr;
    walk.places = places;
    walk_rows_(queue_, {&walk, 1});
    clear_places(queue_, numbers, count, places);
  }

  // Without gaps between rows, and with each slot in a plane of its own, all rows are one long row.
  // A rule with one number per row needs to know where rows begin.
  bool one_plane(const RowBlock& block) const {
    return block.row_stride == block.dim && !rule_def(kind_).one_number_per_row &&
           (slots_ == 0 || block.slot_offset >= block.rows * block.dim);
  }
  static void join_rows(RowWalk& walk) {
    walk.dim *= walk.count;
    walk.stride = walk.dim;
    walk.count = 1;
  }

  // If the driver watches, announces the memory that the update reads and writes: of each slot, all
  // from its first row to its last.
  void announce(const RowBlock& block, const RuleRates* rates, const std::int64_t* numbers,
                std::int64_t count, const std::byte* values) {
    if (!queue_.driver().watches()) return;
    std::vector<Range> writes;
    for (std::int64_t k = 0; k <= slots_; ++k) {
      const std::int64_t dim = k == 0 ? block.dim : slot_width(kind_, block.dim);
      writes.push_back(range(block.base + k * block.slot_offset * width_,
                             (block.rows - 1) * block.row_stride + dim, width_));
    }
    std::vector<Range> reads{range(values, count * block.dim, width_)};
    if (kind_ != RuleKind::kAssign) reads.insert(reads.end(), writes.begin(), writes.end());
    if (numbers != nullptr) reads.push_back(range(numbers, count, sizeof *numbers));
    if (!is_assignment(kind_)) reads.push_back(range(rates, 1, sizeof *rates));
    queue_.driver().announce(queue_.stream(), reads, writes);
  }
  static Range range(const void* begin, std::int64_t count, std::int64_t width) {
    return {static_cast<const std::byte*>(begin), static_cast<std::size_t>(count * width)};
  }

  Queue& queue_;
  RuleKind kind_;
  std::int64_t slots_, width_;
  WalkRows walk_rows_;
  std::shared_ptr<Memory> places_;  // of table rules: RowWalk::places for blocks of up to rows_
  std::int64_t rows_ = 0;
};

}  // namespace

RuleRun prepare_rule(Queue& queue, const UpdateRule& rule, DType dtype, std::int64_t rows) {
  verify_rule_dtype(rule.kind, dtype);
  if (rule.kind == RuleKind::kCustom) return prepare_custom_rule(queue, rule);
  return [update = std::make_shared<Update>(queue, rule, dtype, rows)](
             const RowBlock& block, const RuleRates* rates, const std::int64_t* numbers,
             std::int64_t count,
             const std::byte* values) { update->run(block, rates, numbers, count, values); };
}

DenseRun prepare_dense(Queue& queue, const UpdateRule& rule, DType dtype) {
  verify_rule_dtype(rule.kind, dtype);
  if (rule.kind != RuleKind::kCustom)
    return [update = std::make_shared<Update>(queue, rule, dtype, 0)](
               std::span<const RowKernels::UpdateRun> all) { update->run_all(all); };
  return [run = prepare_custom_rule(queue, rule)](std::span<const RowKernels::UpdateRun> all) {
    for (const RowKernels::UpdateRun& one : all)
      run(one.block, one.rates, nullptr, one.block.rows, one.values);
  };
}

}  // namespace cairn::cuda
