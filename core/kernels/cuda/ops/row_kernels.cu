#include "core/kernels/cuda/ops/row_kernels.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/rows/cached_rows.h"
#include "core/kernels/cuda/rows/rules.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"
#include "core/kernels/cuda/runtime/ordered_ids.h"

namespace cairn::cuda {
namespace {

std::shared_ptr<const FaultSite> row_fault(Queue& queue, std::string_view what,
                                           const TensorType& table, const TensorType& ids) {
  return queue.add_fault([what, table, ids](std::int64_t position, std::int64_t id) {
    return id_text(what, table, ids, position, id);
  });
}

std::size_t bytes_of(const TensorType& type) {
  return static_cast<std::size_t>(type.shape.elements()) * dtype_bytes(type.dtype);
}

template <typename T>
using Modular = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                            std::type_identity<T>>::type;

// Combines two values for one row.
template <typename T>
CAIRN_DEVICE T joined(EqualIds how, T a, T b) {
  switch (how) {
    case EqualIds::kSum:
      return static_cast<T>(static_cast<Modular<T>>(a) + static_cast<Modular<T>>(b));
    case EqualIds::kProduct:
      return static_cast<T>(static_cast<Modular<T>>(a) * static_cast<Modular<T>>(b));
    case EqualIds::kMin: return b < a ? b : a;
    case EqualIds::kMax: return b > a ? b : a;
    case EqualIds::kLast: break;
  }
  return b;
}

// rows[i] = what the values of the ids that are equal to the i-th in order come to, in the order in
// which they occur; numbers[i] = that id, or -1 where an equal one stands before or the id is out
// of range.
template <typename T>
void join_equal_ids(Queue& queue, EqualIds how, const OrderedIds& order, std::int64_t dim,
                    const std::byte* values, std::int64_t stride, std::int64_t* numbers,
                    std::byte* rows) {
  const std::uint64_t* const ids = order.ids();
  const std::int32_t* const positions = order.positions();
  const auto bound = static_cast<std::uint64_t>(order.bound());
  const std::int64_t n = order.count();
  const T* const from = reinterpret_cast<const T*>(values);
  T* const to = reinterpret_cast<T*>(rows);
  const Divisor width{dim};
  for_each(queue, n * dim, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const std::int64_t first = width.divide(i), j = i - first * width.by;
    const std::uint64_t id = ids[first];
    const bool head = id != bound && (first == 0 || ids[first - 1] != id);
    if (j == 0) numbers[first] = head ? static_cast<std::int64_t>(id) : -1;
    if (!head) return;
    T made = from[positions[first] * stride + j];
    for (std::int64_t k = first + 1; k < n && ids[k] == id; ++k)
      made = joined(how, made, from[positions[k] * stride + j]);
    to[i] = made;
  });
}

void join_equal_ids(Queue& queue, DType dtype, EqualIds how, const OrderedIds& order,
                    std::int64_t dim, const std::byte* values, std::int64_t stride,
                    std::int64_t* numbers, std::byte* rows) {
  switch (dtype) {
    case DType::kFloat32:
      return join_equal_ids<float>(queue, how, order, dim, values, stride, numbers, rows);
    case DType::kInt32:
      return join_equal_ids<std::int32_t>(queue, how, order, dim, values, stride, numbers, rows);
    case DType::kInt64:
      return join_equal_ids<std::int64_t>(queue, how, order, dim, values, stride, numbers, rows);
    default: break;
  }
  switch (dtype_bytes(dtype)) {
    case 1:
      return join_equal_ids<std::uint8_t>(queue, how, order, dim, values, stride, numbers, rows);
    case 2:
      return join_equal_ids<std::uint16_t>(queue, how, order, dim, values, stride, numbers, rows);
    default:
      return join_equal_ids<std::uint64_t>(queue, how, order, dim, values, stride, numbers, rows);
  }
}

bool can_join(DType dtype, EqualIds how) {
  return how == EqualIds::kLast || dtype == DType::kFloat32 || dtype == DType::kInt32 ||
         dtype == DType::kInt64;
}

bool is_of_one_rule(std::span<const RowKernels::UpdateOf> set, const RowKernels::UpdateOf& one) {
  return set[0].rule == one.rule && set[0].table.dtype == one.table.dtype;
}

class CudaRowKernels final : public RowKernels {
 public:
  explicit CudaRowKernels(Queue& queue) : queue_(queue) {}

  Gathers prepare_gathers(std::span<const GatherOf> all) override {
    return cuda::prepare_gathers(queue_, all);
  }

  void fill_zero(std::byte* rows, std::size_t bytes) override {
    queue_.driver().fill_zero(queue_.stream(), rows, bytes);
    queue_.written(rows, bytes);
  }
  void finish_updates() override { queue_.join(); }
  std::unique_ptr<CachedRows> cache_rows(const RowBlock& home,
                                         const CacheOptions& options) override {
    return make_cached_rows(queue_, home, options);
  }
  Update prepare_update(const UpdateRule& rule, const TensorType& table,
                        const TensorType* ids) override {
    if (ids == nullptr)
      return noted([run = prepare_rule(queue_, rule, table.dtype)](const UpdateRun& one) {
        run(one.block, one.rates, nullptr, one.block.rows, one.values);
      });
    const UpdateOf one{rule, table, *ids};
    if (!fuses(one)) return noted(aside(prepare_joined(rule, table, *ids)));
    return noted(aside([run = prepare_fused_updates(queue_, {&one, 1})](const UpdateRun& update) {
      run({&update, 1});
    }));
  }

  // Dense ones of one rule make a set, and so do those by ids that can be fused; in a set each has
  // its place. The others by ids run beside them.
  Updates prepare_updates(std::span<const UpdateOf> all) override {
    struct Set {
      std::vector<UpdateOf> members;
      std::vector<std::size_t> places;
      Updates run;
      std::vector<UpdateRun> runs;
    };
    struct Prepared {
      std::vector<Set> sets, dense;
      std::vector<std::pair<std::size_t, Update>> alone;
    };
    const auto add = [&](std::vector<Set>& sets, std::size_t i, const auto& may_join) {
      auto set =
          std::ranges::find_if(sets, [&](const Set& one) { return may_join(one.members, all[i]); });
      if (set == sets.end()) set = sets.emplace(set);
      set->members.push_back(all[i]);
      set->places.push_back(i);
    };
    auto made = std::make_shared<Prepared>();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].ids)
        add(made->dense, i, is_of_one_rule);
      else if (fuses(all[i]))
        add(made->sets, i, fuse_together);
      else
        made->alone.emplace_back(i, prepare_update(all[i].rule, all[i].table, &*all[i].ids));
    }
    for (Set& set : made->sets) set.run = prepare_fused_updates(queue_, set.members);
    for (Set& set : made->dense)
      set.run = prepare_dense(queue_, set.members[0].rule, set.members[0].table.dtype);
    return [this, made](std::span<const UpdateRun> runs) {
      const auto run = [&](Set& set) {
        set.runs.clear();
        for (std::size_t place : set.places) set.runs.push_back(runs[place]);
        set.run(set.runs);
      };
      for (const auto& [place, update] : made->alone) update(runs[place]);
      for (Set& set : made->sets) {
        const Queue::Side side(queue_);
        run(set);
      }
      for (Set& set : made->dense) run(set);
      for (const UpdateRun& run : runs) queue_.written(run.block.base, range_of(run.block).bytes);
    };
  }

 private:
  // By ids, an update is many short launches, which leave most of the device idle.
  Update aside(Update update) {
    return [this, update = std::move(update)](const UpdateRun& one) {
      const Queue::Side side(queue_);
      update(one);
    };
  }

  Update noted(Update update) {
    return [this, update = std::move(update)](const UpdateRun& one) {
      update(one);
      queue_.written(one.block.base, range_of(one.block).bytes);
    };
  }

  // Values of equal ids are joined into scratch first.
  Update prepare_joined(const UpdateRule& rule, const TensorType& table, const TensorType& ids) {
    const EqualIds how = equal_ids(rule.kind);
    if (!can_join(table.dtype, how))
      throw UnimplementedError(str("a sparse update of rows of ", dtype_name(table.dtype)));
    const std::int64_t n = ids.shape.elements(), dim = table.shape.row_elements();
    auto order = std::make_shared<OrderedIds>(queue_, n, table.shape[0]);
    auto numbers = queue_.memory(static_cast<std::size_t>(n) * sizeof(std::int64_t));
    const std::size_t row_bytes = static_cast<std::size_t>(n * dim) * dtype_bytes(table.dtype);
    auto rows = queue_.memory(row_bytes);
    auto fault = row_fault(queue_, "update_variable", table, ids);
    return [this, how, n, dim, ids, order, numbers, rows, row_bytes, fault,
            narrow = ids.dtype == DType::kInt32, dtype = table.dtype,
            run = prepare_rule(queue_, rule, table.dtype, table.shape[0])](const UpdateRun& one) {
      // Within other rows, only the first row's values are sure to be there.
      const bool packed = one.values_stride == dim;
      announce(queue_,
               {{one.ids, bytes_of(ids)},
                {one.values, packed  ? row_bytes
                             : n > 0 ? row_bytes / static_cast<std::size_t>(n)
                                     : 0}},
               {{numbers->data(), static_cast<std::size_t>(n) * sizeof(std::int64_t)},
                {rows->data(), row_bytes}});
      constexpr auto kFault = OrderedIds::Negative::kFault;
      if (narrow)
        order->sort(reinterpret_cast<const std::int32_t*>(one.ids), kFault, *fault);
      else
        order->sort(reinterpret_cast<const std::int64_t*>(one.ids), kFault, *fault);
      join_equal_ids(queue_, dtype, how, *order, dim, one.values, one.values_stride,
                     numbers->as<std::int64_t>(), rows->data());
      run(one.block, one.rates, numbers->as<std::int64_t>(), n, rows->data());
    };
  }

  Queue& queue_;
};

}  // namespace

std::string id_text(std::string_view what, const TensorType& table, const TensorType& ids,
                    std::int64_t position, std::int64_t id) {
  const TensorType types[] = {table, ids};
  return fault_text(
      what, types,
      str("id ", id, " at position ", position, " is outside [0, ", table.shape[0], ")"));
}

Range range_of(const RowBlock& block) {
  if (block.rows == 0) return {};
  return {block.base, static_cast<std::size_t>((block.rows - 1) * block.row_stride + block.dim) *
                          dtype_bytes(block.dtype)};
}

void announce(Queue& queue, const std::vector<Range>& reads, const std::vector<Range>& writes) {
  if (queue.driver().watches()) queue.driver().announce(queue.stream(), reads, writes);
}

std::unique_ptr<RowKernels> make_row_kernels(Queue& queue) {
  return std::make_unique<CudaRowKernels>(queue);
}

}  // namespace cairn::cuda
