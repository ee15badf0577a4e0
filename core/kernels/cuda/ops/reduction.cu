// Sums, means, products and extremes over axes, and argmax. The order of addition is a function of
// the shape alone, so that equal inputs give equal bits.
//
// As on the CPU, any set of axes becomes a few passes over the middle axis of a three-dimensional
// view. A pass that has few results and much to add is cut along that axis: each piece is reduced
// by threads of its own, and a second launch reduces the pieces' results.
#include <limits>

#include "core/base/error.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/runtime/half.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"
#include "core/kernels/folds.h"
#include "core/kernels/reduction_passes.h"

namespace cairn::cuda {
namespace {

using fold::Max;
using fold::Min;
using fold::Product;
using fold::Sum;

// A fold as a function object, as groups want it.
template <typename Op>
struct Folded {
  template <typename T>
  CAIRN_DEVICE T operator()(T a, T b) const {
    return Op::apply(a, b);
  }
};

// Elements per thread of a piece: fewer are not worth a launch of their own.
constexpr std::int64_t kPieceMin = 512, kColumnPieceMin = 64;
constexpr std::int64_t kThreadsWanted = 1 << 18;

// The number of pieces into which the middle axis is cut.
std::int64_t pieces_of(const ReductionPass& pass) {
  const std::int64_t results = pass.outer * pass.inner;
  const std::int64_t threads = pass.inner == 1 ? results * kBlock : results;
  const std::int64_t least = pass.inner == 1 ? kPieceMin : kColumnPieceMin;
  if (pass.n < 2 * least || threads >= kThreadsWanted) return 1;
  return std::min(pass.n / least,
                  (kThreadsWanted + threads - 1) / std::max<std::int64_t>(1, threads));
}

// Times a factor, which only float has.
template <typename T>
struct Scaled {
  float factor;
  CAIRN_DEVICE T operator()(T value) const {
    if constexpr (std::is_same_v<T, float>) return factor == 1 ? value : value * factor;
    return value;
  }
};

// A float that lies as bfloat16.
struct Narrow {
  std::uint16_t bits;
  CAIRN_DEVICE operator float() const { return widen_bfloat16(bits); }
};

// y[o, p, j] = the reduction of piece p of x[o, :, j], times `scale`.
template <typename T, typename Op, typename From>
void reduce(Queue& queue, const ReductionPass& pass, std::int64_t pieces, const From* x, T* y,
            float scale) {
  const std::int64_t n = pass.n, inner = pass.inner, length = (n + pieces - 1) / pieces;
  const Scaled<T> scaled{scale};
  if (inner == 1) {
    for_each_group(queue, pass.outer * pieces, length,
                   [=] CAIRN_KERNEL_BODY(const Group& group, std::int64_t i) {
                     const std::int64_t o = i / pieces, begin = (i - o * pieces) * length;
                     const std::int64_t end = begin + length < n ? begin + length : n;
                     T made = Op::kStart;
                     for (std::int64_t k = begin + group.rank(); k < end; k += group.size())
                       made = Op::apply(made, static_cast<T>(x[o * n + k]));
                     made = group.combine(made, Folded<Op>());
                     if (group.rank() == 0) y[i] = scaled(made);
                   });
    return;
  }
  for_each(queue, pass.outer * pieces * inner, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const std::int64_t at = i / inner, j = i - at * inner;
    const std::int64_t o = at / pieces, begin = (at - o * pieces) * length;
    const std::int64_t end = begin + length < n ? begin + length : n;
    T made = Op::kStart;
    for (std::int64_t k = begin; k < end; ++k)
      made = Op::apply(made, static_cast<T>(x[(o * n + k) * inner + j]));
    y[i] = scaled(made);
  });
}

struct Cut {
  ReductionPass pass;
  std::int64_t pieces;
};

template <typename T, typename Op, typename From = T>
KernelRun run_passes(Queue& queue, const std::vector<ReductionPass>& passes, std::int64_t elements,
                     float scale) {
  std::vector<Cut> cuts;
  std::size_t scratch_elements = 0;
  for (const ReductionPass& pass : passes) {
    const std::int64_t pieces = pieces_of(pass), results = pass.outer * pass.inner;
    cuts.push_back({pass, pieces});
    if (pieces > 1) cuts.push_back({{pass.outer, pieces, pass.inner}, 1});
    scratch_elements = std::max(scratch_elements, static_cast<std::size_t>(results * pieces));
  }
  auto scratch = queue.memory(2 * scratch_elements * sizeof(T));
  return [&queue, cuts, elements, scale, scratch, scratch_elements](const KernelCall& call) {
    const From* const given = input_of<From>(call, 0);
    T* const out = output_of<T>(call);
    if (cuts.empty())
      for_each(queue, elements, [=, scaled = Scaled<T>{scale}] CAIRN_KERNEL_BODY(std::int64_t i) {
        out[i] = scaled(static_cast<T>(given[i]));
      });
    const T* from = nullptr;
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      const bool last = i + 1 == cuts.size();
      T* const to = last ? out : scratch->as<T>() + (i % 2) * scratch_elements;
      const float factor = last ? scale : 1.0f;
      if (i == 0)
        reduce<T, Op>(queue, cuts[i].pass, cuts[i].pieces, given, to, factor);
      else
        reduce<T, Op>(queue, cuts[i].pass, cuts[i].pieces, from, to, factor);
      from = to;
    }
  };
}

template <template <typename> class Op>
KernelRun run_typed(Queue& queue, DType dtype, const std::vector<ReductionPass>& passes,
                    std::int64_t elements, float scale = 1) {
  switch (dtype) {
    case DType::kInt32:
      return run_passes<std::int32_t, Op<std::int32_t>>(queue, passes, elements, scale);
    case DType::kInt64:
      return run_passes<std::int64_t, Op<std::int64_t>>(queue, passes, elements, scale);
    default: return run_passes<float, Op<float>>(queue, passes, elements, scale);
  }
}

template <template <typename> class Op>
KernelRun prepare(Queue& queue, const KernelTypes& types) {
  const Shape& shape = types.inputs[0].shape;
  return run_typed<Op>(queue, types.inputs[0].dtype,
                       passes_of(shape, reduced_axes(shape, types.attributes)),
                       types.outputs[0].shape.elements());
}

// The mean of nothing is NaN, as in the reference: 0 times infinity.
KernelRun prepare_mean(Queue& queue, const KernelTypes& types) {
  const Shape& shape = types.inputs[0].shape;
  const std::int64_t out = types.outputs[0].shape.elements(), in = shape.elements();
  const float scale = in == 0 ? std::numeric_limits<float>::infinity()
                              : static_cast<float>(out) / static_cast<float>(in);
  return run_typed<Sum>(queue, DType::kFloat32,
                        passes_of(shape, reduced_axes(shape, types.attributes)), out, scale);
}

KernelRun prepare_sum_to_like(Queue& queue, const KernelTypes& types) {
  const Shape &from = types.inputs[0].shape, &to = types.outputs[0].shape;
  const std::vector<ReductionPass> passes = passes_of(from, stretched_axes(from, to));
  if (types.inputs[0].dtype == DType::kBfloat16)
    return run_passes<float, Sum<float>, Narrow>(queue, passes, to.elements(), 1);
  return run_typed<Sum>(queue, types.inputs[0].dtype, passes, to.elements());
}

// The gradient of a product with respect to each factor: the product of the others, so that nothing
// is divided by. One thread walks the factors of one result, forward and then backward.
KernelRun prepare_prod_grad(Queue& queue, const KernelTypes& types) {
  const Shape& shape = types.inputs[1].shape;
  const std::vector<bool> reduced = reduced_axes(shape, types.attributes);
  Strides results, factors;
  results.rank = factors.rank = 0;
  std::int64_t result_count = 1, factor_count = 1, step = shape.elements();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] > 0) step /= shape[axis];
    Strides& to = reduced[static_cast<std::size_t>(axis)] ? factors : results;
    if (to.rank == Strides::kRankMax)
      throw UnimplementedError("the gradient of a product over more than 8 axes on a GPU");
    to.dims[to.rank] = shape[axis];
    to.strides[to.rank++] = step;
    (reduced[static_cast<std::size_t>(axis)] ? factor_count : result_count) *= shape[axis];
  }
  for (Strides* one : {&results, &factors})
    if (one->rank == 0) *one = Strides{};
  return [&queue, results, factors, result_count, factor_count](const KernelCall& call) {
    const float *dy = input_of<float>(call, 0), *x = input_of<float>(call, 1);
    float* const dx = output_of<float>(call);
    for_each(queue, result_count, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
      const std::int64_t base = results.source(i);
      float running = 1;
      for (std::int64_t k = 0; k < factor_count; ++k) {
        const std::int64_t at = base + factors.source(k);
        dx[at] = running;
        running *= x[at];
      }
      running = dy[i];
      for (std::int64_t k = factor_count; k-- > 0;) {
        const std::int64_t at = base + factors.source(k);
        dx[at] *= running;
        running *= x[at];
      }
    });
  };
}

// The first of several largest elements; a NaN is never larger, so it wins only where it comes
// first.
template <typename T>
KernelRun argmax(Queue& queue, ReductionPass pass) {
  return [&queue, pass](const KernelCall& call) {
    const T* const x = input_of<T>(call, 0);
    std::int64_t* const y = output_of<std::int64_t>(call);
    const std::int64_t n = pass.n, inner = pass.inner;
    for_each_group(
        queue, pass.outer * inner, n, [=] CAIRN_KERNEL_BODY(const Group& group, std::int64_t i) {
          const std::int64_t o = i / inner, j = i - o * inner;
          const T* const column = x + o * n * inner + j;
          T largest = column[0];
          for (std::int64_t k = group.rank(); k < n; k += group.size())
            if (column[k * inner] > largest) largest = column[k * inner];
          largest =
              group.combine(largest, [] CAIRN_KERNEL_BODY(T a, T b) { return b > a ? b : a; });
          std::int64_t place = n;
          for (std::int64_t k = group.rank(); k < n && place == n; k += group.size())
            if (column[k * inner] == largest) place = k;
          place = group.combine(place, [] CAIRN_KERNEL_BODY(std::int64_t a, std::int64_t b) {
            return b < a ? b : a;
          });
          if (group.rank() == 0) y[i] = place == n ? 0 : place;
        });
  };
}

KernelRun prepare_argmax(Queue& queue, const KernelTypes& types) {
  const Shape& shape = types.inputs[0].shape;
  const int axis = static_cast<int>(types.attributes.get<std::int64_t>("axis"));
  ReductionPass pass{1, shape[axis], 1};
  if (pass.n == 0)
    throw InvalidArgumentError("there is no largest element along an axis of size 0");
  for (int i = 0; i < shape.rank(); ++i)
    (i < axis ? pass.outer : pass.inner) *= i == axis ? 1 : shape[i];
  switch (types.inputs[0].dtype) {
    case DType::kInt32: return argmax<std::int32_t>(queue, pass);
    case DType::kInt64: return argmax<std::int64_t>(queue, pass);
    default: return argmax<float>(queue, pass);
  }
}

constexpr Kernel kReductionKernels[] = {
    {"reduce_sum", prepare<Sum>},         {"reduce_mean", prepare_mean},
    {"reduce_max", prepare<Max>},         {"reduce_min", prepare<Min>},
    {"reduce_prod", prepare<Product>},    {"reduce_prod_grad", prepare_prod_grad},
    {"sum_to_like", prepare_sum_to_like}, {"argmax", prepare_argmax},
};

}  // namespace

std::span<const Kernel> reduction_kernels() { return kReductionKernels; }

}  // namespace cairn::cuda
