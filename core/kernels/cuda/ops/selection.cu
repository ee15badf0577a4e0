// The largest elements of rows, and elements that each row picks by ids of its own. Nothing is
// added by atomics: sums over equal ids run in the order in which they occur, as on the CPU.
#include "core/base/error.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"
#include "core/kernels/order_key.h"
#include "core/kernels/picks.h"

namespace cairn::cuda {
namespace {

// An element in the order of top_k: by key downwards, of equal keys by place upwards.
struct Ranked {
  std::uint64_t key;
  std::int64_t place;

  CAIRN_DEVICE bool before(std::uint64_t other_key, std::int64_t other_place) const {
    return key > other_key || (key == other_key && place < other_place);
  }
};

// The first element of the row behind `last` in the order. The largest key is found first, and then
// the lowest of the places that have it.
template <typename T>
CAIRN_DEVICE Ranked next_of(const Group& group, const T* x, std::int64_t n, const Ranked& last) {
  Ranked found{0, n};
  for (std::int64_t i = group.rank(); i < n; i += group.size()) {
    const std::uint64_t key = order_key(x[i]);
    if (last.before(key, i) && (found.place == n || key > found.key)) found = {key, i};
  }
  const std::uint64_t key = group.combine(
      found.key, [] CAIRN_KERNEL_BODY(std::uint64_t a, std::uint64_t b) { return b > a ? b : a; });
  const std::int64_t place =
      group.combine(found.key == key ? found.place : n,
                    [] CAIRN_KERNEL_BODY(std::int64_t a, std::int64_t b) { return b < a ? b : a; });
  return {key, place};
}

// A group walks its row once per element that is wanted: k is small where this is used.
template <typename T>
KernelRun top_k(Queue& queue, std::int64_t rows, std::int64_t n, std::int64_t k) {
  return [=, &queue](const KernelCall& call) {
    const T* const all = input_of<T>(call, 0);
    T* const values = output_of<T>(call, 0);
    std::int64_t* const ids = output_of<std::int64_t>(call, 1);
    for_each_group(queue, rows, n, [=] CAIRN_KERNEL_BODY(const Group& group, std::int64_t r) {
      const T* const x = all + r * n;
      Ranked last{~std::uint64_t{0}, -1};
      for (std::int64_t i = 0; i < k; ++i) {
        last = next_of(group, x, n, last);
        if (group.rank() != 0) continue;
        ids[r * k + i] = last.place;
        values[r * k + i] = x[last.place];
      }
    });
  };
}

KernelRun prepare_top_k(Queue& queue, const KernelTypes& types) {
  const Shape& shape = types.inputs[0].shape;
  const std::int64_t k = types.attributes.get<std::int64_t>("k");
  const Along a = along_axis(shape, shape.rank() - 1);
  switch (types.inputs[0].dtype) {
    case DType::kInt32: return top_k<std::int32_t>(queue, a.outer, a.n, k);
    case DType::kInt64: return top_k<std::int64_t>(queue, a.outer, a.n, k);
    default: return top_k<float>(queue, a.outer, a.n, k);
  }
}

template <typename Id, typename Word>
KernelRun gather_along(Queue& queue, Along picks, std::int64_t bound,
                       std::shared_ptr<const FaultSite> fault) {
  return [=, &queue](const KernelCall& call) {
    const Word* const x = input_of<Word>(call, 0);
    const Id* const ids = input_of<Id>(call, 1);
    Word* const y = output_of<Word>(call);
    const Divisor inner{picks.inner}, row{picks.n * picks.inner};
    for_each(queue, picks.outer * picks.n * picks.inner,
             [=, site = *fault] CAIRN_KERNEL_BODY(std::int64_t at) {
               const std::int64_t o = row.divide(at), j = inner.remainder(at), id = ids[at];
               const bool inside = id >= 0 && id < bound;
               y[at] = inside ? x[(o * bound + id) * inner.by + j] : Word{};
               if (!inside) site.report(at, id);
             });
  };
}

template <typename Id>
KernelRun prepare_gather_along_by(Queue& queue, const KernelTypes& types) {
  const std::int64_t axis = types.attributes.get<std::int64_t>("axis");
  const Along picks = along_axis(types.inputs[1].shape, axis);
  const std::int64_t bound = types.inputs[0].shape[static_cast<int>(axis)];
  auto fault = id_fault(queue, "gather_along", types, bound);
  switch (dtype_bytes(types.inputs[0].dtype)) {
    case 1: return gather_along<Id, std::uint8_t>(queue, picks, bound, fault);
    case 2: return gather_along<Id, std::uint16_t>(queue, picks, bound, fault);
    case 4: return gather_along<Id, std::uint32_t>(queue, picks, bound, fault);
    default: return gather_along<Id, std::uint64_t>(queue, picks, bound, fault);
  }
}
KernelRun prepare_gather_along(Queue& queue, const KernelTypes& types) {
  return types.inputs[1].dtype == DType::kInt32
             ? prepare_gather_along_by<std::int32_t>(queue, types)
             : prepare_gather_along_by<std::int64_t>(queue, types);
}

// A thread adds all that was picked out of a column.
template <typename Id>
KernelRun gather_along_grad(Queue& queue, Along picks, std::int64_t bound,
                            std::shared_ptr<const FaultSite> fault) {
  return [=, &queue](const KernelCall& call) {
    const float* const dy = input_of<float>(call, 0);
    const Id* const ids = input_of<Id>(call, 1);
    float* const sums = output_of<float>(call);
    queue.driver().fill_zero(
        queue.stream(), call.outputs[0],
        static_cast<std::size_t>(picks.outer * bound * picks.inner) * sizeof(float));
    const Divisor inner{picks.inner};
    const std::int64_t n = picks.n;
    for_each(queue, picks.outer * picks.inner,
             [=, site = *fault] CAIRN_KERNEL_BODY(std::int64_t column) {
               const std::int64_t o = inner.divide(column), j = column - o * inner.by;
               for (std::int64_t i = 0; i < n; ++i) {
                 const std::int64_t at = (o * n + i) * inner.by + j, id = ids[at];
                 if (id >= 0 && id < bound)
                   sums[(o * bound + id) * inner.by + j] += dy[at];
                 else
                   site.report(at, id);
               }
             });
  };
}

KernelRun prepare_gather_along_grad(Queue& queue, const KernelTypes& types) {
  const std::int64_t axis = types.attributes.get<std::int64_t>("axis");
  const Along picks = along_axis(types.inputs[1].shape, axis);
  const std::int64_t bound = types.outputs[0].shape[static_cast<int>(axis)];
  auto fault = id_fault(queue, "gather_along_grad", types, bound);
  return types.inputs[1].dtype == DType::kInt32
             ? gather_along_grad<std::int32_t>(queue, picks, bound, std::move(fault))
             : gather_along_grad<std::int64_t>(queue, picks, bound, std::move(fault));
}

constexpr Kernel kSelectionKernels[] = {
    {"top_k", prepare_top_k},
    {"gather_along", prepare_gather_along},
    {"gather_along_grad", prepare_gather_along_grad},
};

}  // namespace

std::span<const Kernel> selection_kernels() { return kSelectionKernels; }

}  // namespace cairn::cuda
