// Pooling and its gradients. As the reference has it, padding counts neither in the sum of an
// average nor in its number of elements; of several largest elements the first receives the
// gradient.
#include <algorithm>

#include "core/graph/ops/window.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"

namespace cairn::cuda {
namespace {

using Pair = std::vector<std::int64_t>;

struct Axis {
  std::int64_t x, y, window, stride, before;

  // The part of the window at `position` that lies in the image.
  CAIRN_DEVICE std::int64_t begin(std::int64_t position) const {
    const std::int64_t first = position * stride - before;
    return first > 0 ? first : 0;
  }
  CAIRN_DEVICE std::int64_t end(std::int64_t position) const {
    const std::int64_t last = position * stride - before + window;
    return last < x ? last : x;
  }
  // The positions whose windows hold `at`: [first_over(at), last_over(at)].
  CAIRN_DEVICE std::int64_t first_over(std::int64_t at) const {
    const std::int64_t from = at + before - window + 1;
    return from <= 0 ? 0 : (from + stride - 1) / stride;
  }
  CAIRN_DEVICE std::int64_t last_over(std::int64_t at) const {
    const std::int64_t last = (at + before) / stride;
    return last < y ? last : y - 1;
  }
};

struct Problem {
  std::int64_t batch, channels;
  Axis rows, columns;
};

Problem problem_of(const Shape& x, const Shape& y, const Attributes& attributes) {
  const Pair &window = attributes.get<Pair>("window"), &strides = attributes.get<Pair>("strides");
  const Padding padding =
      attributes.get<std::string>("padding") == "SAME" ? Padding::kSame : Padding::kValid;
  const auto axis = [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    return Axis{x[i + 1], y[i + 1], window[at], strides[at],
                slide(x[i + 1], {window[at], strides[at]}, padding).before};
  };
  return {x[0], x[3], axis(0), axis(1)};
}

// Element `at` of images of these sizes.
struct Place {
  std::int64_t image, row, column, channel;
};
CAIRN_DEVICE Place place_of(std::int64_t at, std::int64_t rows, std::int64_t columns,
                            std::int64_t channels) {
  const std::int64_t pixel = Divisor{channels}.divide(at);
  const std::int64_t line = Divisor{columns}.divide(pixel);
  const std::int64_t image = Divisor{rows}.divide(line);
  return {image, line - image * rows, pixel - line * columns, at - pixel * channels};
}

// f(offset of the element) for each element of the window of y's element `at`.
template <typename F>
CAIRN_DEVICE void for_window(const Problem& p, const Place& at, F f) {
  for (std::int64_t i = p.rows.begin(at.row); i < p.rows.end(at.row); ++i)
    for (std::int64_t j = p.columns.begin(at.column); j < p.columns.end(at.column); ++j)
      f(((at.image * p.rows.x + i) * p.columns.x + j) * p.channels + at.channel);
}

// The offset of the first of the largest elements.
CAIRN_DEVICE std::int64_t largest(const Problem& p, const Place& at, const float* x) {
  std::int64_t best = -1;
  for_window(p, at, [&](std::int64_t i) {
    if (best < 0 || x[i] > x[best]) best = i;
  });
  return best;
}

KernelRun prepare_max(Queue& queue, const KernelTypes& types) {
  const Problem p = problem_of(types.inputs[0].shape, types.outputs[0].shape, types.attributes);
  return [&queue, p, n = types.outputs[0].shape.elements()](const KernelCall& call) {
    const float* const x = input_of<float>(call, 0);
    float* const y = output_of<float>(call);
    for_each(queue, n, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
      const Place at = place_of(i, p.rows.y, p.columns.y, p.channels);
      y[i] = x[largest(p, at, x)];
    });
  };
}

KernelRun prepare_average(Queue& queue, const KernelTypes& types) {
  const Problem p = problem_of(types.inputs[0].shape, types.outputs[0].shape, types.attributes);
  return [&queue, p, n = types.outputs[0].shape.elements()](const KernelCall& call) {
    const float* const x = input_of<float>(call, 0);
    float* const y = output_of<float>(call);
    for_each(queue, n, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
      float sum = 0, count = 0;
      for_window(p, place_of(i, p.rows.y, p.columns.y, p.channels), [&](std::int64_t at) {
        sum += x[at];
        count += 1;
      });
      y[i] = sum / count;
    });
  };
}

// dx[i] = the sum of share(place in y, dy there) over the windows that hold element i of x, so that
// nothing is added by several threads.
template <typename Share>
void gather_gradient(Queue& queue, const Problem& p, std::int64_t n, float* dx, Share share) {
  for_each(queue, n, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const Place at = place_of(i, p.rows.x, p.columns.x, p.channels);
    float sum = 0;
    for (std::int64_t r = p.rows.first_over(at.row); r <= p.rows.last_over(at.row); ++r)
      for (std::int64_t c = p.columns.first_over(at.column); c <= p.columns.last_over(at.column);
           ++c)
        sum += share(p, Place{at.image, r, c, at.channel}, i);
    dx[i] = sum;
  });
}

CAIRN_DEVICE std::int64_t offset_in_y(const Problem& p, const Place& at) {
  return ((at.image * p.rows.y + at.row) * p.columns.y + at.column) * p.channels + at.channel;
}

struct MaxShare {
  const float *dy, *x;
  CAIRN_DEVICE float operator()(const Problem& p, const Place& window, std::int64_t element) const {
    return largest(p, window, x) == element ? dy[offset_in_y(p, window)] : 0.0f;
  }
};

struct AverageShare {
  const float* dy;
  CAIRN_DEVICE float operator()(const Problem& p, const Place& window, std::int64_t) const {
    const std::int64_t count = (p.rows.end(window.row) - p.rows.begin(window.row)) *
                               (p.columns.end(window.column) - p.columns.begin(window.column));
    return dy[offset_in_y(p, window)] / static_cast<float>(count);
  }
};

KernelRun prepare_max_grad(Queue& queue, const KernelTypes& types) {
  const Problem p = problem_of(types.outputs[0].shape, types.inputs[0].shape, types.attributes);
  return [&queue, p, n = types.outputs[0].shape.elements()](const KernelCall& call) {
    gather_gradient(queue, p, n, output_of<float>(call),
                    MaxShare{input_of<float>(call, 0), input_of<float>(call, 1)});
  };
}

KernelRun prepare_average_grad(Queue& queue, const KernelTypes& types) {
  const Problem p = problem_of(types.outputs[0].shape, types.inputs[0].shape, types.attributes);
  return [&queue, p, n = types.outputs[0].shape.elements()](const KernelCall& call) {
    gather_gradient(queue, p, n, output_of<float>(call), AverageShare{input_of<float>(call, 0)});
  };
}

constexpr Kernel kPoolingKernels[] = {
    {"max_pool2d", prepare_max},
    {"avg_pool2d", prepare_average},
    {"max_pool2d_grad", prepare_max_grad},
    {"avg_pool2d_grad", prepare_average_grad},
};

}  // namespace

std::span<const Kernel> pooling_kernels() { return kPoolingKernels; }

}  // namespace cairn::cuda
