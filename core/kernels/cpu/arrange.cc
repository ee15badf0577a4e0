// Kernels of cumsum, pad along an axis, and to_dense, which lays ragged rows out as a matrix.
#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/folds.h"
#include "core/kernels/picks.h"

namespace cairn {
namespace {

// Memory is read in order: the sums of all columns that lie side by side grow together. Floats are
// added in double, since the rounding of n additions in float would grow with n.
template <typename T>
KernelRun cumsum(Along a, bool exclusive, bool reverse) {
  using Total = std::conditional_t<std::is_same_v<T, float>, double, T>;
  auto totals = std::make_shared<std::vector<Total>>(static_cast<std::size_t>(a.inner));
  return [=](const KernelCall& call) {
    Total* const total = totals->data();
    for (std::int64_t o = 0; o < a.outer; ++o) {
      std::fill_n(total, a.inner, Total{0});
      for (std::int64_t i = 0; i < a.n; ++i) {
        const std::int64_t row = (o * a.n + (reverse ? a.n - 1 - i : i)) * a.inner;
        const T* x = input_of<T>(call, 0) + row;
        T* y = output_of<T>(call) + row;
        for (std::int64_t j = 0; j < a.inner; ++j) {
          const Total before = total[j];
          total[j] = fold::Sum<Total>::apply(before, static_cast<Total>(x[j]));
          y[j] = static_cast<T>(exclusive ? before : total[j]);
        }
      }
    }
  };
}

KernelRun prepare_cumsum(const KernelTypes& types) {
  const Along a = along_axis(types.inputs[0].shape, types.attributes.get<std::int64_t>("axis"));
  const bool exclusive = types.attributes.get<bool>("exclusive"),
             reverse = types.attributes.get<bool>("reverse");
  switch (types.inputs[0].dtype) {
    case DType::kInt32: return cumsum<std::int32_t>(a, exclusive, reverse);
    case DType::kInt64: return cumsum<std::int64_t>(a, exclusive, reverse);
    default: return cumsum<float>(a, exclusive, reverse);
  }
}

template <typename Word>
void fill_words(std::byte* to, std::int64_t n, const std::byte* value) {
  std::fill_n(reinterpret_cast<Word*>(to), n, *reinterpret_cast<const Word*>(value));
}
// `n` copies of the `width` bytes at `value`.
void fill_with(std::byte* to, std::int64_t n, const std::byte* value, std::size_t width) {
  switch (width) {
    case 1: return fill_words<std::uint8_t>(to, n, value);
    case 2: return fill_words<std::uint16_t>(to, n, value);
    case 4: return fill_words<std::uint32_t>(to, n, value);
    default: return fill_words<std::uint64_t>(to, n, value);
  }
}

// Negative paddings move the part that is copied, and nothing is filled on their side.
KernelRun prepare_pad(const KernelTypes& types) {
  const std::int64_t axis = types.attributes.get<std::int64_t>("axis"),
                     before = types.attributes.get<std::int64_t>("before");
  const Along from = along_axis(types.inputs[0].shape, axis),
              to = along_axis(types.outputs[0].shape, axis);
  const std::int64_t begin = std::clamp<std::int64_t>(before, 0, to.n),
                     end = std::clamp<std::int64_t>(before + from.n, begin, to.n);
  const std::size_t width = dtype_bytes(types.inputs[0].dtype);
  return [=](const KernelCall& call) {
    const auto run = static_cast<std::size_t>(from.inner) * width;
    std::byte* out = call.outputs[0];
    for (std::int64_t o = 0; o < to.outer; ++o) {
      fill_with(out, begin * to.inner, call.inputs[1], width);
      out += static_cast<std::size_t>(begin) * run;
      if (end > begin)
        std::memcpy(out,
                    call.inputs[0] + static_cast<std::size_t>(o * from.n + begin - before) * run,
                    static_cast<std::size_t>(end - begin) * run);
      out += static_cast<std::size_t>(end - begin) * run;
      fill_with(out, (to.n - end) * to.inner, call.inputs[1], width);
      out += static_cast<std::size_t>(to.n - end) * run;
    }
  };
}

KernelRun prepare_to_dense(const KernelTypes& types) {
  const DenseRows d = dense_rows_of(types.outputs[0].shape, types.inputs[0].shape);
  const std::size_t width = dtype_bytes(types.inputs[0].dtype);
  return [=](const KernelCall& call) {
    const std::int64_t* splits = input_of<std::int64_t>(call, 1);
    check_splits(splits, d.examples, d.rows);
    const auto run = static_cast<std::size_t>(d.inner) * width;
    std::byte* out = call.outputs[0];
    for (std::int64_t e = 0; e < d.examples; ++e) {
      const std::int64_t taken = std::min(splits[e + 1] - splits[e], d.columns);
      if (taken > 0)
        std::memcpy(out, call.inputs[0] + static_cast<std::size_t>(splits[e]) * run,
                    static_cast<std::size_t>(taken) * run);
      out += static_cast<std::size_t>(taken) * run;
      fill_with(out, (d.columns - taken) * d.inner, call.inputs[2], width);
      out += static_cast<std::size_t>(d.columns - taken) * run;
    }
  };
}

KernelRun prepare_to_dense_grad(const KernelTypes& types) {
  const DenseRows d = dense_rows_of(types.inputs[0].shape, types.outputs[0].shape);
  return [=](const KernelCall& call) {
    const std::int64_t* splits = input_of<std::int64_t>(call, 1);
    check_splits(splits, d.examples, d.rows);
    const float* dy = input_of<float>(call, 0);
    float* out = output_of<float>(call);
    for (std::int64_t e = 0; e < d.examples; ++e, dy += d.columns * d.inner) {
      const std::int64_t count = splits[e + 1] - splits[e], taken = std::min(count, d.columns);
      std::copy_n(dy, taken * d.inner, out);
      std::fill_n(out + taken * d.inner, (count - taken) * d.inner, 0.0f);
      out += count * d.inner;
    }
  };
}

constexpr CpuKernel kArrangeKernels[] = {
    {"cumsum", prepare_cumsum},
    {"pad", prepare_pad},
    {"to_dense", prepare_to_dense},
    {"to_dense_grad", prepare_to_dense_grad},
};

}  // namespace

std::span<const CpuKernel> arrange_kernels() { return kArrangeKernels; }

}  // namespace cairn
