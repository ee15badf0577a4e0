// Kernels of cumsum, pad along an axis, and to_dense, which lays ragged rows out as a matrix.
#include <type_traits>

#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/ops/row_splits.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"
#include "core/kernels/folds.h"
#include "core/kernels/picks.h"

namespace cairn::cuda {
namespace {

// A thread walks a column, in double as on the CPU, so that both give the same bits. Columns are
// many where this is used, and short.
template <typename T>
KernelRun cumsum(Queue& queue, Along a, bool exclusive, bool reverse) {
  return [=, &queue](const KernelCall& call) {
    using Total = std::conditional_t<std::is_same_v<T, float>, double, T>;
    const T* const x = input_of<T>(call, 0);
    T* const y = output_of<T>(call);
    const Divisor inner{a.inner};
    const std::int64_t n = a.n;
    for_each(queue, a.outer * a.inner, [=] CAIRN_KERNEL_BODY(std::int64_t column) {
      const std::int64_t o = inner.divide(column), j = column - o * inner.by;
      Total total = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t at = (o * n + (reverse ? n - 1 - i : i)) * inner.by + j;
        const Total before = total;
        total = fold::Sum<Total>::apply(total, static_cast<Total>(x[at]));
        y[at] = static_cast<T>(exclusive ? before : total);
      }
    });
  };
}

KernelRun prepare_cumsum(Queue& queue, const KernelTypes& types) {
  const Along a = along_axis(types.inputs[0].shape, types.attributes.get<std::int64_t>("axis"));
  const bool exclusive = types.attributes.get<bool>("exclusive"),
             reverse = types.attributes.get<bool>("reverse");
  switch (types.inputs[0].dtype) {
    case DType::kInt32: return cumsum<std::int32_t>(queue, a, exclusive, reverse);
    case DType::kInt64: return cumsum<std::int64_t>(queue, a, exclusive, reverse);
    default: return cumsum<float>(queue, a, exclusive, reverse);
  }
}

// Prepares an operation that only moves elements, by their width.
template <template <typename> class Move, typename... Arguments>
KernelRun by_width(DType dtype, Queue& queue, const Arguments&... arguments) {
  switch (dtype_bytes(dtype)) {
    case 1: return Move<std::uint8_t>::prepare(queue, arguments...);
    case 2: return Move<std::uint16_t>::prepare(queue, arguments...);
    case 4: return Move<std::uint32_t>::prepare(queue, arguments...);
    default: return Move<std::uint64_t>::prepare(queue, arguments...);
  }
}

// A negative `before` cuts: the source of an element is where it stood without the padding.
template <typename Word>
struct Pad {
  static KernelRun prepare(Queue& queue, Along from, Along to, std::int64_t before) {
    return [=, &queue](const KernelCall& call) {
      const Word *const x = input_of<Word>(call, 0), *const value = input_of<Word>(call, 1);
      Word* const y = output_of<Word>(call);
      const Divisor inner{to.inner}, n{to.n};
      const std::int64_t size = from.n;
      for_each(queue, to.outer * to.n * to.inner, [=] CAIRN_KERNEL_BODY(std::int64_t at) {
        const std::int64_t row = inner.divide(at), j = at - row * inner.by;
        const std::int64_t o = n.divide(row), i = row - o * n.by - before;
        y[at] = i >= 0 && i < size ? x[(o * size + i) * inner.by + j] : *value;
      });
    };
  }
};

KernelRun prepare_pad(Queue& queue, const KernelTypes& types) {
  const std::int64_t axis = types.attributes.get<std::int64_t>("axis");
  return by_width<Pad>(types.inputs[0].dtype, queue, along_axis(types.inputs[0].shape, axis),
                       along_axis(types.outputs[0].shape, axis),
                       types.attributes.get<std::int64_t>("before"));
}

template <typename Word>
struct ToDense {
  static KernelRun prepare(Queue& queue, DenseRows d, std::shared_ptr<const FaultSite> fault) {
    return [=, &queue](const KernelCall& call) {
      const Word *const rows = input_of<Word>(call, 0), *const value = input_of<Word>(call, 2);
      const std::int64_t* const splits = input_of<std::int64_t>(call, 1);
      Word* const y = output_of<Word>(call);
      const Divisor inner{d.inner}, columns{d.columns};
      const std::int64_t examples = d.examples, count = d.rows;
      for_each(queue, d.examples * d.columns * d.inner,
               [=, site = *fault] CAIRN_KERNEL_BODY(std::int64_t at) {
                 const std::int64_t place = inner.divide(at), j = at - place * inner.by;
                 const std::int64_t e = columns.divide(place), c = place - e * columns.by;
                 const RowBounds b = rows_of(examples, count, splits, e, site);
                 const bool there = c < b.end - b.begin;
                 y[at] = there ? rows[(b.begin + c) * inner.by + j] : *value;
               });
    };
  }
};

KernelRun prepare_to_dense(Queue& queue, const KernelTypes& types) {
  const DenseRows d = dense_rows_of(types.outputs[0].shape, types.inputs[0].shape);
  return by_width<ToDense>(types.inputs[0].dtype, queue, d,
                           split_fault(queue, "to_dense", types, d.rows));
}

// Rows that were cut off, or that no split names, keep their zeros.
KernelRun prepare_to_dense_grad(Queue& queue, const KernelTypes& types) {
  const DenseRows d = dense_rows_of(types.inputs[0].shape, types.outputs[0].shape);
  auto fault = split_fault(queue, "to_dense_grad", types, d.rows);
  return [&queue, d, fault](const KernelCall& call) {
    const float* const dy = input_of<float>(call, 0);
    const std::int64_t* const splits = input_of<std::int64_t>(call, 1);
    float* const out = output_of<float>(call);
    queue.driver().fill_zero(queue.stream(), call.outputs[0],
                             static_cast<std::size_t>(d.rows * d.inner) * sizeof(float));
    const Divisor inner{d.inner}, columns{d.columns};
    const std::int64_t examples = d.examples, count = d.rows;
    for_each(queue, d.examples * d.columns * d.inner,
             [=, site = *fault] CAIRN_KERNEL_BODY(std::int64_t at) {
               const std::int64_t place = inner.divide(at), j = at - place * inner.by;
               const std::int64_t e = columns.divide(place), c = place - e * columns.by;
               const RowBounds b = rows_of(examples, count, splits, e, site);
               if (c < b.end - b.begin) out[(b.begin + c) * inner.by + j] = dy[at];
             });
  };
}

constexpr Kernel kArrangeKernels[] = {
    {"cumsum", prepare_cumsum},
    {"pad", prepare_pad},
    {"to_dense", prepare_to_dense},
    {"to_dense_grad", prepare_to_dense_grad},
};

}  // namespace

std::span<const Kernel> arrange_kernels() { return kArrangeKernels; }

}  // namespace cairn::cuda
