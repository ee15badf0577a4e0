// Convolution, forward, and the gradients of image and filter: direct sums, one thread or one group
// of threads per result. Correct for every stride, dilation and padding, and far slower than a
// library's.
#include "core/graph/window.h"
#include "core/kernels/cuda/index.h"
#include "core/kernels/cuda/kernel_table.h"
#include "core/kernels/cuda/launch.h"

namespace cairn::cuda {
namespace {

using Pair = std::vector<std::int64_t>;

// Images [batch, rows, columns, channels], a filter [rows, columns, in, out].
struct Problem {
  std::int64_t batch, x_rows, x_columns, in, y_rows, y_columns, out, window_rows, window_columns;
  std::int64_t row_stride, column_stride, row_dilation, column_dilation, row_before, column_before;
};

Problem problem_of(const Shape& x, const Shape& filter, const Shape& y,
                   const Attributes& attributes) {
  const Pair &strides = attributes.get<Pair>("strides"),
             &dilations = attributes.get<Pair>("dilations");
  const Padding padding =
      attributes.get<std::string>("padding") == "SAME" ? Padding::kSame : Padding::kValid;
  const Slide rows = slide(x[1], {filter[0], strides[0], dilations[0]}, padding),
              columns = slide(x[2], {filter[1], strides[1], dilations[1]}, padding);
  return {x[0],       x[1],         x[2],         x[3],        y[1],
          y[2],       y[3],         filter[0],    filter[1],   strides[0],
          strides[1], dilations[0], dilations[1], rows.before, columns.before};
}

KernelRun prepare_conv(Queue& queue, const KernelTypes& types) {
  const Problem p = problem_of(types.inputs[0].shape, types.inputs[1].shape, types.outputs[0].shape,
                               types.attributes);
  return [&queue, p](const KernelCall& call) {
    const float *const x = input_of<float>(call, 0), *const filter = input_of<float>(call, 1);
    float* const y = output_of<float>(call);
    for_each(
        queue, p.batch * p.y_rows * p.y_columns * p.out, [=] CAIRN_KERNEL_BODY(std::int64_t at) {
          std::int64_t rest = Divisor{p.out}.divide(at);
          const std::int64_t c = at - rest * p.out;
          const std::int64_t left = Divisor{p.y_columns}.divide(rest);
          const std::int64_t column = rest - left * p.y_columns;
          const std::int64_t b = Divisor{p.y_rows}.divide(left), row = left - b * p.y_rows;
          float sum = 0;
          for (std::int64_t i = 0; i < p.window_rows; ++i) {
            const std::int64_t xr = row * p.row_stride + i * p.row_dilation - p.row_before;
            if (xr < 0 || xr >= p.x_rows) continue;
            for (std::int64_t j = 0; j < p.window_columns; ++j) {
              const std::int64_t xc =
                  column * p.column_stride + j * p.column_dilation - p.column_before;
              if (xc < 0 || xc >= p.x_columns) continue;
              const float* const pixel = x + ((b * p.x_rows + xr) * p.x_columns + xc) * p.in;
              const float* const weights = filter + (i * p.window_columns + j) * p.in * p.out + c;
              for (std::int64_t k = 0; k < p.in; ++k) sum += pixel[k] * weights[k * p.out];
            }
          }
          y[at] = sum;
        });
  };
}

// The result row that window row `i` reaches from image row `x`; -1: none.
CAIRN_DEVICE std::int64_t reached(std::int64_t x, std::int64_t i, std::int64_t before,
                                  std::int64_t dilation, std::int64_t stride, std::int64_t count) {
  const std::int64_t from = x + before - i * dilation;
  if (from < 0) return -1;
  const std::int64_t y = Divisor{stride}.divide(from);
  return y * stride == from && y < count ? y : -1;
}

KernelRun prepare_grad_input(Queue& queue, const KernelTypes& types) {
  const Problem p = problem_of(types.outputs[0].shape, types.inputs[1].shape, types.inputs[0].shape,
                               types.attributes);
  return [&queue, p](const KernelCall& call) {
    const float *const dy = input_of<float>(call, 0), *const filter = input_of<float>(call, 1);
    float* const dx = output_of<float>(call);
    for_each(
        queue, p.batch * p.x_rows * p.x_columns * p.in, [=] CAIRN_KERNEL_BODY(std::int64_t at) {
          const std::int64_t rest = Divisor{p.in}.divide(at), k = at - rest * p.in;
          const std::int64_t left = Divisor{p.x_columns}.divide(rest);
          const std::int64_t column = rest - left * p.x_columns;
          const std::int64_t b = Divisor{p.x_rows}.divide(left), row = left - b * p.x_rows;
          float sum = 0;
          for (std::int64_t i = 0; i < p.window_rows; ++i) {
            const std::int64_t yr =
                reached(row, i, p.row_before, p.row_dilation, p.row_stride, p.y_rows);
            if (yr < 0) continue;
            for (std::int64_t j = 0; j < p.window_columns; ++j) {
              const std::int64_t yc = reached(column, j, p.column_before, p.column_dilation,
                                              p.column_stride, p.y_columns);
              if (yc < 0) continue;
              const float* const from = dy + ((b * p.y_rows + yr) * p.y_columns + yc) * p.out;
              const float* const weights = filter + ((i * p.window_columns + j) * p.in + k) * p.out;
              for (std::int64_t c = 0; c < p.out; ++c) sum += from[c] * weights[c];
            }
          }
          dx[at] = sum;
        });
  };
}

// A group per weight: it walks all positions of all images.
KernelRun prepare_grad_filter(Queue& queue, const KernelTypes& types) {
  const Problem p = problem_of(types.inputs[1].shape, types.outputs[0].shape, types.inputs[0].shape,
                               types.attributes);
  return [&queue, p](const KernelCall& call) {
    const float *const dy = input_of<float>(call, 0), *const x = input_of<float>(call, 1);
    float* const made = output_of<float>(call);
    const std::int64_t positions = p.batch * p.y_rows * p.y_columns;
    for_each_group(
        queue, p.window_rows * p.window_columns * p.in * p.out, positions,
        [=] CAIRN_KERNEL_BODY(const Group& group, std::int64_t at) {
          const std::int64_t rest = at / p.out, c = at - rest * p.out;
          const std::int64_t tap = rest / p.in, k = rest - tap * p.in;
          const std::int64_t i = tap / p.window_columns, j = tap - i * p.window_columns;
          float sum = 0;
          for (std::int64_t n = group.rank(); n < positions; n += group.size()) {
            const std::int64_t left = Divisor{p.y_columns}.divide(n);
            const std::int64_t column = n - left * p.y_columns;
            const std::int64_t b = Divisor{p.y_rows}.divide(left), row = left - b * p.y_rows;
            const std::int64_t xr = row * p.row_stride + i * p.row_dilation - p.row_before;
            const std::int64_t xc =
                column * p.column_stride + j * p.column_dilation - p.column_before;
            if (xr < 0 || xr >= p.x_rows || xc < 0 || xc >= p.x_columns) continue;
            sum += x[((b * p.x_rows + xr) * p.x_columns + xc) * p.in + k] * dy[n * p.out + c];
          }
          sum = group.combine(sum, [] CAIRN_KERNEL_BODY(float a, float b) { return a + b; });
          if (group.rank() == 0) made[at] = sum;
        });
  };
}

constexpr Kernel kConvolutionKernels[] = {
    {"conv2d", prepare_conv},
    {"conv2d_grad_input", prepare_grad_input},
    {"conv2d_grad_filter", prepare_grad_filter},
};

}  // namespace

std::span<const Kernel> convolution_kernels() { return kConvolutionKernels; }

}  // namespace cairn::cuda
