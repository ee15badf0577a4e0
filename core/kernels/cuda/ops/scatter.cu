// Rows changed by id, in ascending order of occurrence, so that repeated ids give the same bits in
// every run. The input is copied first; a graph's values are immutable.
#include "core/base/error.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"
#include "core/kernels/cuda/runtime/ordered_ids.h"
#include "core/kernels/folds.h"

namespace cairn::cuda {
namespace {

struct Rows {
  std::int64_t bound, n, width;  // x [bound, width], rows [n, width]
};

template <template <typename> class Op, typename T, typename Id>
KernelRun scatter(Queue& queue, Rows r, std::shared_ptr<const FaultSite> fault) {
  auto order = std::make_shared<OrderedIds>(queue, r.n, r.bound);
  return [&queue, r, fault, order](const KernelCall& call) {
    order->sort(input_of<Id>(call, 1), OrderedIds::Negative::kFault, *fault);
    queue.driver().copy(queue.stream(), Device::Direction::kWithin, call.outputs[0], call.inputs[0],
                        static_cast<std::size_t>(r.bound * r.width) * sizeof(T));
    const T* const rows = input_of<T>(call, 2);
    T* const out = output_of<T>(call);
    const std::uint64_t* const ids = order->ids();
    const std::int32_t* const positions = order->positions();
    const auto bound = static_cast<std::uint64_t>(r.bound);
    const std::int64_t n = r.n;
    const Divisor width{r.width};
    for_each(queue, r.n * r.width, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
      const std::int64_t first = width.divide(i), j = i - first * width.by;
      const std::uint64_t id = ids[first];
      if (id == bound || (first > 0 && ids[first - 1] == id)) return;
      T* const to = out + static_cast<std::int64_t>(id) * width.by + j;
      T made = *to;
      for (std::int64_t k = first; k < n && ids[k] == id; ++k)
        made = Op<T>::apply(made, rows[positions[k] * width.by + j]);
      *to = made;
    });
  };
}

template <template <typename> class Op, typename T>
KernelRun scatter_by(Queue& queue, const KernelTypes& types) {
  const Shape& x = types.inputs[0].shape;
  const Rows r{x[0], types.inputs[1].shape[0], x.row_elements()};
  auto fault = queue.add_fault([bound = r.bound, inputs = std::vector<TensorType>(
                                                     types.inputs.begin(), types.inputs.end())](
                                   std::int64_t position, std::int64_t id) {
    return fault_text("scatter", inputs,
                      str("id ", id, " at position ", position, " is outside [0, ", bound, ")"));
  });
  return types.inputs[1].dtype == DType::kInt32
             ? scatter<Op, T, std::int32_t>(queue, r, std::move(fault))
             : scatter<Op, T, std::int64_t>(queue, r, std::move(fault));
}

template <template <typename> class Op>
KernelRun prepare(Queue& queue, const KernelTypes& types) {
  switch (types.inputs[0].dtype) {
    case DType::kInt32: return scatter_by<Op, std::int32_t>(queue, types);
    case DType::kInt64: return scatter_by<Op, std::int64_t>(queue, types);
    default: return scatter_by<Op, float>(queue, types);
  }
}

// Marks, for each distinct id, its last position. Ids are any integers here, so that they are
// sorted by all of their bits; the order among different ids does not matter.
template <typename Id>
KernelRun last_of_id(Queue& queue, std::int64_t n) {
  if (n >= std::int64_t{1} << 31)
    throw UnimplementedError(str(n, " ids in one operation on a GPU; at most 2^31 - 1"));
  constexpr int kBits = 64;
  const auto count = static_cast<std::size_t>(n);
  auto keys = queue.memory(count * sizeof(std::uint64_t));
  auto sorted_keys = queue.memory(count * sizeof(std::uint64_t));
  auto positions = queue.memory(count * sizeof(std::int32_t));
  auto sorted_positions = queue.memory(count * sizeof(std::int32_t));
  auto scratch = queue.memory(n > 0 ? queue.driver().sort_scratch(n, kBits) : 0);
  return [=, &queue](const KernelCall& call) {
    if (n == 0) return;
    const Id* const ids = input_of<Id>(call, 0);
    auto* const last = output_of<unsigned char>(call);
    auto* const key = keys->as<std::uint64_t>();
    auto* const sorted = sorted_keys->as<std::uint64_t>();
    auto* const position = positions->as<std::int32_t>();
    auto* const place = sorted_positions->as<std::int32_t>();
    for_each(queue, n, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
      key[i] = static_cast<std::uint64_t>(static_cast<std::int64_t>(ids[i]));
      position[i] = static_cast<std::int32_t>(i);
    });
    queue.driver().sort(queue.stream(), n, kBits, key, sorted, position, place, scratch->data());
    for_each(queue, n, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
      last[place[i]] = i + 1 == n || sorted[i + 1] != sorted[i] ? 1 : 0;
    });
  };
}

KernelRun prepare_last_of_id(Queue& queue, const KernelTypes& types) {
  const std::int64_t n = types.inputs[0].shape.elements();
  return types.inputs[0].dtype == DType::kInt32 ? last_of_id<std::int32_t>(queue, n)
                                                : last_of_id<std::int64_t>(queue, n);
}

constexpr Kernel kScatterKernels[] = {
    {"scatter_add", prepare<fold::Sum>},     {"scatter_sub", prepare<fold::Difference>},
    {"scatter_max", prepare<fold::Max>},     {"scatter_min", prepare<fold::Min>},
    {"scatter_update", prepare<fold::Last>}, {"is_last_of_id", prepare_last_of_id},
};

}  // namespace

std::span<const Kernel> scatter_kernels() { return kScatterKernels; }

}  // namespace cairn::cuda
