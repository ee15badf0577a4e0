// Sums, means, products and extremes over axes, and argmax. Orders of addition are fixed, so equal
// inputs give equal bits.
//
// Any set of axes becomes a few passes, each over the middle axis of a three-dimensional view; only
// the last axis (inner = 1) is a loop of its own, since there the elements to be added lie
// together.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "core/base/clones.h"
#include "core/base/error.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/folds.h"
#include "core/kernels/reduction_passes.h"

namespace cairn {
namespace {

using Pass = ReductionPass;

constexpr std::int64_t kLanes = 16;    // partial results side by side, so that the loop vectorises
constexpr std::int64_t kChunk = 4096;  // sums of so many elements are added up in double

// Sixteen sums side by side, because the compiler may not reorder the additions of one. The lanes
// are also why rounding errors stay small: each adds a sixteenth of the chunk, and chunks are added
// in double, so the error does not grow with the length of a row.
CAIRN_INLINE float sum_chunk(const float* x, std::int64_t n) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += x[i + l];
  float sum = 0;
  for (; i < n; ++i) sum += x[i];
  for (float lane : lanes) sum += lane;
  return sum;
}

CAIRN_CLONES void sum_rows_f(const Pass& pass, const float* x, float* y) {
  for (std::int64_t o = 0; o < pass.outer; ++o) {
    const float* row = x + o * pass.n;
    double sum = 0;
    for (std::int64_t i = 0; i < pass.n; i += kChunk)
      sum += sum_chunk(row + i, std::min(kChunk, pass.n - i));
    y[o] = static_cast<float>(sum);
  }
}

// Row after row is added to the result, element by element: vector code without a reordering, and
// memory is read in order.
CAIRN_CLONES void sum_columns_f(const Pass& pass, const float* x, float* y) {
  std::memset(y, 0, static_cast<std::size_t>(pass.outer * pass.inner) * sizeof(float));
  for (std::int64_t o = 0; o < pass.outer; ++o)
    for (std::int64_t i = 0; i < pass.n; ++i) {
      const float* __restrict from = x + (o * pass.n + i) * pass.inner;
      float* __restrict to = y + o * pass.inner;
      for (std::int64_t j = 0; j < pass.inner; ++j) to[j] += from[j];
    }
}

using fold::Max;
using fold::Min;
using fold::Product;
using fold::Sum;

template <typename T, template <typename> class Op>
void reduce_pass(const Pass& pass, const T* x, T* y) {
  if constexpr (std::is_same_v<Op<T>, Sum<float>>) {
    if (pass.inner == 1) return sum_rows_f(pass, x, y);
    return sum_columns_f(pass, x, y);
  }
  std::fill_n(y, pass.outer * pass.inner, Op<T>::kStart);
  for (std::int64_t o = 0; o < pass.outer; ++o)
    for (std::int64_t i = 0; i < pass.n; ++i)
      for (std::int64_t j = 0; j < pass.inner; ++j) {
        T& to = y[o * pass.inner + j];
        to = Op<T>::apply(to, x[(o * pass.n + i) * pass.inner + j]);
      }
}

template <typename T, template <typename> class Op>
KernelRun run_passes(std::vector<Pass> passes, std::int64_t elements, float scale) {
  auto scratch = std::make_shared<std::vector<T>>();
  if (passes.size() > 1)
    scratch->resize(static_cast<std::size_t>(2 * passes[0].outer * passes[0].inner));
  return [passes = std::move(passes), elements, scale, scratch](const KernelCall& call) {
    const T* from = input_of<T>(call, 0);
    T* out = output_of<T>(call);
    if (passes.empty()) std::copy_n(from, elements, out);
    for (std::size_t i = 0; i < passes.size(); ++i) {
      // Intermediate results shrink; two halves of the scratch take turns.
      T* to = i + 1 == passes.size() ? out : scratch->data() + (i % 2) * (scratch->size() / 2);
      reduce_pass<T, Op>(passes[i], from, to);
      from = to;
    }
    if constexpr (std::is_same_v<T, float>)
      if (scale != 1)
        for (std::int64_t i = 0; i < elements; ++i) out[i] *= scale;
  };
}

template <template <typename> class Op>
KernelRun run_typed(DType dtype, std::vector<Pass> passes, std::int64_t elements, float scale = 1) {
  switch (dtype) {
    case DType::kInt32: return run_passes<std::int32_t, Op>(std::move(passes), elements, scale);
    case DType::kInt64: return run_passes<std::int64_t, Op>(std::move(passes), elements, scale);
    default: return run_passes<float, Op>(std::move(passes), elements, scale);
  }
}

std::vector<bool> reduced_axes(const KernelTypes& types) {
  return reduced_axes(types.inputs[0].shape, types.attributes);
}

template <template <typename> class Op>
KernelRun prepare(const KernelTypes& types) {
  return run_typed<Op>(types.inputs[0].dtype, passes_of(types.inputs[0].shape, reduced_axes(types)),
                       types.outputs[0].shape.elements());
}

KernelRun prepare_mean(const KernelTypes& types) {
  std::int64_t out = types.outputs[0].shape.elements(), in = types.inputs[0].shape.elements();
  // The mean of nothing is NaN, as in the reference: 0 times infinity.
  float scale = in == 0 ? std::numeric_limits<float>::infinity()
                        : static_cast<float>(out) / static_cast<float>(in);
  return run_typed<Sum>(DType::kFloat32, passes_of(types.inputs[0].shape, reduced_axes(types)), out,
                        scale);
}

// The gradient of broadcasting.
KernelRun prepare_sum_to_like(const KernelTypes& types) {
  const Shape &from = types.inputs[0].shape, &to = types.outputs[0].shape;
  return run_typed<Sum>(types.inputs[0].dtype, passes_of(from, stretched_axes(from, to)),
                        to.elements());
}

// For each element, the place of its product among the results: a walk through strides, which are 0
// along the axes that are reduced.
class Places {
 public:
  Places(const Shape& shape, const std::vector<bool>& reduced)
      : places_(static_cast<std::size_t>(shape.elements())) {
    std::vector<std::int64_t> strides(static_cast<std::size_t>(shape.rank()));
    for (int axis = shape.rank(); axis-- > 0;) {
      auto a = static_cast<std::size_t>(axis);
      strides[a] = reduced[a] ? 0 : results_;
      if (!reduced[a]) results_ *= shape[axis];
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
      std::int64_t rest = static_cast<std::int64_t>(i);
      for (int axis = shape.rank(); axis-- > 0;) {
        places_[i] += rest % shape[axis] * strides[static_cast<std::size_t>(axis)];
        rest /= shape[axis];
      }
    }
  }
  std::size_t of(std::size_t element) const { return static_cast<std::size_t>(places_[element]); }
  std::size_t elements() const { return places_.size(); }
  std::int64_t results() const { return results_; }

 private:
  std::vector<std::int64_t> places_;
  std::int64_t results_ = 1;
};

// The product of the factors before an element times that of those behind it, so that nothing is
// divided by and zeros need no special case. Forward, the running product of each result is noted
// before its element is multiplied in; backward, the running product begins with dy.
KernelRun prepare_prod_grad(const KernelTypes& types) {
  KernelTypes forward{types.inputs.subspan(1), types.outputs, types.attributes};
  Places places(types.inputs[1].shape, reduced_axes(forward));
  auto running = std::make_shared<std::vector<float>>(static_cast<std::size_t>(places.results()));
  return [places = std::move(places), running](const KernelCall& call) {
    const float *dy = input_of<float>(call, 0), *x = input_of<float>(call, 1);
    float* dx = output_of<float>(call);
    std::fill(running->begin(), running->end(), 1.0f);
    for (std::size_t i = 0; i < places.elements(); ++i) {
      float& product = (*running)[places.of(i)];
      dx[i] = product;
      product *= x[i];
    }
    std::copy_n(dy, running->size(), running->begin());
    for (std::size_t i = places.elements(); i-- > 0;) {
      float& product = (*running)[places.of(i)];
      dx[i] *= product;
      product *= x[i];
    }
  };
}

// The first of several largest elements. A NaN is never larger, so it wins only where it comes
// first.
template <typename T>
KernelRun argmax(Pass pass) {
  return [pass](const KernelCall& call) {
    const T* x = input_of<T>(call, 0);
    for (std::int64_t o = 0; o < pass.outer; ++o)
      for (std::int64_t j = 0; j < pass.inner; ++j) {
        const T* column = x + o * pass.n * pass.inner + j;
        std::int64_t best = 0;
        for (std::int64_t i = 1; i < pass.n; ++i)
          if (column[i * pass.inner] > column[best * pass.inner]) best = i;
        output_of<std::int64_t>(call)[o * pass.inner + j] = best;
      }
  };
}

KernelRun prepare_argmax(const KernelTypes& types) {
  const Shape& shape = types.inputs[0].shape;
  int axis = static_cast<int>(types.attributes.get<std::int64_t>("axis"));
  Pass pass{1, shape[axis], 1};
  if (pass.n == 0)
    throw InvalidArgumentError("there is no largest element along an axis of size 0");
  for (int i = 0; i < shape.rank(); ++i)
    (i < axis ? pass.outer : pass.inner) *= i == axis ? 1 : shape[i];
  switch (types.inputs[0].dtype) {
    case DType::kInt32: return argmax<std::int32_t>(pass);
    case DType::kInt64: return argmax<std::int64_t>(pass);
    default: return argmax<float>(pass);
  }
}

constexpr CpuKernel kReductionKernels[] = {
    {"reduce_sum", prepare<Sum>},         {"reduce_mean", prepare_mean},
    {"reduce_max", prepare<Max>},         {"reduce_min", prepare<Min>},
    {"reduce_prod", prepare<Product>},    {"reduce_prod_grad", prepare_prod_grad},
    {"sum_to_like", prepare_sum_to_like}, {"argmax", prepare_argmax},
};

}  // namespace

std::span<const CpuKernel> reduction_kernels() { return kReductionKernels; }

}  // namespace cairn
