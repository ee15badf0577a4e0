// Slices picked by id, their gradients, and ragged rows combined. Sums over equal ids run in
// ascending order of occurrence, as on the CPU, so that they repeat bit for bit.
#include <cmath>

#include "core/base/error.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/ops/row_splits.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"
#include "core/kernels/cuda/runtime/ordered_ids.h"
#include "core/kernels/cuda/runtime/words.h"
#include "core/kernels/picks.h"

namespace cairn::cuda {
namespace {

bool narrow(const TensorType& ids) { return ids.dtype == DType::kInt32; }

template <typename Id, typename Word>
void gather_words(Queue& queue, Picks p, const Id* ids, const std::byte* from, std::byte* to,
                  const FaultSite& fault) {
  const Word* const source = reinterpret_cast<const Word*>(from);
  Word* const target = reinterpret_cast<Word*>(to);
  const Divisor inner{p.inner}, n{p.n};
  const std::int64_t bound = p.bound;
  for_each(queue, p.outer * p.n * p.inner, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const std::int64_t pick = inner.divide(i), j = i - pick * inner.by;
    const std::int64_t o = n.divide(pick), position = pick - o * n.by;
    const std::int64_t id = ids[position];
    if (id >= 0 && id < bound) {
      target[i] = source[(o * bound + id) * inner.by + j];
    } else {
      target[i] = Word{};
      if (j == 0) fault.report(position, id);
    }
  });
}

// Rows are copied in the widest words that divide them.
template <typename Id>
KernelRun gather(Queue& queue, Picks p, std::size_t width, std::shared_ptr<const FaultSite> fault) {
  const auto run = static_cast<std::uint64_t>(p.inner) * width;
  return [&queue, p, run, fault](const KernelCall& call) {
    const Id* const ids = input_of<Id>(call, 1);
    const std::int64_t word = widest_word(reinterpret_cast<std::uintptr_t>(call.inputs[0]) |
                                          reinterpret_cast<std::uintptr_t>(call.outputs[0]) | run);
    Picks words = p;
    words.inner = static_cast<std::int64_t>(run) / word;
    with_word(word, [&](auto one) {
      gather_words<Id, decltype(one)>(queue, words, ids, call.inputs[0], call.outputs[0], *fault);
    });
  };
}

KernelRun prepare_gather(Queue& queue, const KernelTypes& types) {
  const Picks p = picks_of(types.inputs[0].shape, types.inputs[1].shape,
                           static_cast<int>(types.attributes.get<std::int64_t>("axis")));
  const std::size_t width = dtype_bytes(types.inputs[0].dtype);
  auto fault = id_fault(queue, "gather", types, p.bound);
  return narrow(types.inputs[1]) ? gather<std::int32_t>(queue, p, width, std::move(fault))
                                 : gather<std::int64_t>(queue, p, width, std::move(fault));
}

// sums[o, id, j] = the sum of rows[o, i, j] over the positions i of the id. The first thread of a
// run of equal ids walks the run.
template <typename T, typename Id>
KernelRun sum_by_id(Queue& queue, Picks p, OrderedIds::Negative negative,
                    std::shared_ptr<const FaultSite> fault) {
  auto order = std::make_shared<OrderedIds>(queue, p.n, p.bound);
  const std::size_t bytes = static_cast<std::size_t>(p.outer * p.bound * p.inner) * sizeof(T);
  return [&queue, p, negative, fault, order, bytes](const KernelCall& call) {
    order->sort(input_of<Id>(call, 1), negative, *fault);
    queue.driver().fill_zero(queue.stream(), call.outputs[0], bytes);
    const T* const rows = input_of<T>(call, 0);
    T* const sums = output_of<T>(call);
    const std::uint64_t* const ids = order->ids();
    const std::int32_t* const positions = order->positions();
    const auto bound = static_cast<std::uint64_t>(p.bound);
    const Divisor inner{p.inner}, n{p.n};
    for_each(queue, p.outer * p.n * p.inner, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
      const std::int64_t pick = inner.divide(i), j = i - pick * inner.by;
      const std::int64_t o = n.divide(pick), first = pick - o * n.by;
      const std::uint64_t id = ids[first];
      if (id == bound || (first > 0 && ids[first - 1] == id)) return;
      T sum = 0;
      for (std::int64_t k = first; k < n.by && ids[k] == id; ++k)
        sum += rows[(o * n.by + positions[k]) * inner.by + j];
      sums[(o * static_cast<std::int64_t>(bound) + static_cast<std::int64_t>(id)) * inner.by + j] =
          sum;
    });
  };
}

KernelRun prepare_gather_grad(Queue& queue, const KernelTypes& types) {
  const Picks p = picks_of(types.inputs[2].shape, types.inputs[1].shape,
                           static_cast<int>(types.attributes.get<std::int64_t>("axis")));
  auto fault = id_fault(queue, "gather_grad", types, p.bound);
  constexpr auto kFault = OrderedIds::Negative::kFault;
  return narrow(types.inputs[1])
             ? sum_by_id<float, std::int32_t>(queue, p, kFault, std::move(fault))
             : sum_by_id<float, std::int64_t>(queue, p, kFault, std::move(fault));
}

// A negative id drops its row, as in the reference; one that is too large is an error.
template <typename T>
KernelRun segment_sum(Queue& queue, const KernelTypes& types) {
  const Picks p = picks_of(types.outputs[0].shape, types.inputs[1].shape, 0);
  auto fault = queue.add_fault(
      [bound = p.bound, inputs = std::vector<TensorType>(types.inputs.begin(), types.inputs.end())](
          std::int64_t position, std::int64_t id) {
        return fault_text("unsorted_segment_sum", inputs,
                          str("segment ", id, " at position ", position, " is not below ", bound));
      });
  constexpr auto kDropped = OrderedIds::Negative::kDropped;
  return narrow(types.inputs[1]) ? sum_by_id<T, std::int32_t>(queue, p, kDropped, std::move(fault))
                                 : sum_by_id<T, std::int64_t>(queue, p, kDropped, std::move(fault));
}

KernelRun prepare_segment_sum(Queue& queue, const KernelTypes& types) {
  switch (types.inputs[0].dtype) {
    case DType::kInt32: return segment_sum<std::uint32_t>(queue, types);  // wraps around
    case DType::kInt64: return segment_sum<std::uint64_t>(queue, types);
    default: return segment_sum<float>(queue, types);
  }
}

template <typename Id>
KernelRun one_hot(Queue& queue, std::int64_t n, std::int64_t depth) {
  return [&queue, n, depth](const KernelCall& call) {
    const Id* const ids = input_of<Id>(call, 0);
    float* const out = output_of<float>(call);
    const Divisor width{depth};
    for_each(queue, n * depth, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
      const std::int64_t row = width.divide(i);
      out[i] = ids[row] == i - row * width.by ? 1.0f : 0.0f;
    });
  };
}

KernelRun prepare_one_hot(Queue& queue, const KernelTypes& types) {
  const std::int64_t n = types.inputs[0].shape.elements(),
                     depth = types.attributes.get<std::int64_t>("depth");
  return narrow(types.inputs[0]) ? one_hot<std::int32_t>(queue, n, depth)
                                 : one_hot<std::int64_t>(queue, n, depth);
}

CAIRN_DEVICE float weight(std::int64_t combiner, std::int64_t count) {
  if (count == 0 || combiner == 0) return 1;
  return combiner == 1 ? 1.0f / static_cast<float>(count)
                       : 1.0f / std::sqrt(static_cast<float>(count));
}

KernelRun prepare_combine(Queue& queue, const KernelTypes& types) {
  const Shape& rows = types.inputs[0].shape;
  const Ragged r{types.outputs[0].shape[0], rows[0], rows[1],
                 types.attributes.get<std::int64_t>("combiner")};
  auto fault = split_fault(queue, "combine_rows", types, r.rows);
  return [&queue, r, fault](const KernelCall& call) {
    const float* const from = input_of<float>(call, 0);
    const std::int64_t* const splits = input_of<std::int64_t>(call, 1);
    float* const out = output_of<float>(call);
    const Divisor dim{r.dim};
    for_each(queue, r.examples * r.dim, [=, site = *fault] CAIRN_KERNEL_BODY(std::int64_t i) {
      const std::int64_t e = dim.divide(i), j = i - e * dim.by;
      const RowBounds b = rows_of(r.examples, r.rows, splits, e, site);
      float sum = 0;
      for (std::int64_t k = b.begin; k < b.end; ++k) sum += from[k * dim.by + j];
      out[i] = sum * weight(r.combiner, b.end - b.begin);
    });
  };
}

KernelRun prepare_combine_grad(Queue& queue, const KernelTypes& types) {
  const Shape& rows = types.outputs[0].shape;
  const Ragged r{types.inputs[0].shape[0], rows[0], rows[1],
                 types.attributes.get<std::int64_t>("combiner")};
  auto fault = split_fault(queue, "combine_rows_grad", types, r.rows);
  return [&queue, r, fault](const KernelCall& call) {
    const float* const dy = input_of<float>(call, 0);
    const std::int64_t* const splits = input_of<std::int64_t>(call, 1);
    float* const out = output_of<float>(call);
    const Divisor dim{r.dim};
    for_each(queue, r.examples * r.dim, [=, site = *fault] CAIRN_KERNEL_BODY(std::int64_t i) {
      const std::int64_t e = dim.divide(i), j = i - e * dim.by;
      const RowBounds b = rows_of(r.examples, r.rows, splits, e, site);
      const float scaled = dy[i] * weight(r.combiner, b.end - b.begin);
      for (std::int64_t k = b.begin; k < b.end; ++k) out[k * dim.by + j] = scaled;
    });
  };
}

constexpr Kernel kIndexingKernels[] = {
    {"gather", prepare_gather},
    {"gather_grad", prepare_gather_grad},
    {"unsorted_segment_sum", prepare_segment_sum},
    {"one_hot", prepare_one_hot},
    {"combine_rows", prepare_combine},
    {"combine_rows_grad", prepare_combine_grad},
};

}  // namespace

std::span<const Kernel> indexing_kernels() { return kIndexingKernels; }

}  // namespace cairn::cuda
