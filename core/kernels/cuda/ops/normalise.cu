// Layer and batch normalisation on the value as a table: layer normalisation has a mean and a
// variance per row, batch normalisation one per column. A group of threads per row or column.
//   Sources  Ba, Kiros, Hinton, arXiv:1607.06450; Ioffe, Szegedy, ICML 2015.
#include <cmath>

#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/runtime/launch.h"

namespace cairn::cuda {
namespace {

struct Plus {
  CAIRN_DEVICE float operator()(float a, float b) const { return a + b; }
};

// A table seen as lines of `length` elements that are normalised together: element i of line l is
// at l * line + i * step. A line of layer normalisation is a row, of batch normalisation a column.
struct Lines {
  std::int64_t lines, length, line, step;
  float epsilon;
  bool by_row;  // whether a line is a row
  CAIRN_DEVICE std::int64_t column(std::int64_t l, std::int64_t i) const { return by_row ? i : l; }
};

Lines rows_of(const Shape& x, float epsilon) {
  const std::int64_t n = x[x.rank() - 1];
  return {x.elements() / n, n, n, 1, epsilon, true};
}
Lines columns_of(const Shape& x, float epsilon) {
  const std::int64_t n = x[x.rank() - 1];
  return {n, x.elements() / n, 1, n, epsilon, false};
}

float epsilon_of(const KernelTypes& types) {
  return static_cast<float>(types.attributes.get<double>("epsilon"));
}

KernelRun zeros(Queue& queue, const KernelTypes& types) {
  std::vector<std::size_t> bytes;
  for (const TensorType& type : types.outputs)
    bytes.push_back(static_cast<std::size_t>(type.shape.elements()) * sizeof(float));
  return [&queue, bytes](const KernelCall& call) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      queue.driver().fill_zero(queue.stream(), call.outputs[i], bytes[i]);
  };
}

// x, gamma, beta -> y, mean, variance. The variance is a second pass over the line: a difference of
// squares would cancel.
KernelRun run_forward(Queue& queue, const Lines& s) {
  return [&queue, s](const KernelCall& call) {
    const float *const x = input_of<float>(call, 0), *const gamma = input_of<float>(call, 1),
                       *const beta = input_of<float>(call, 2);
    float *const y = output_of<float>(call, 0), *const means = output_of<float>(call, 1),
                 *const variances = output_of<float>(call, 2);
    for_each_group(queue, s.lines, s.length,
                   [=] CAIRN_KERNEL_BODY(const Group& group, std::int64_t l) {
                     const float* const from = x + l * s.line;
                     const auto count = static_cast<float>(s.length);
                     float sum = 0;
                     for (std::int64_t i = group.rank(); i < s.length; i += group.size())
                       sum += from[i * s.step];
                     const float mean = group.combine(sum, Plus()) / count;
                     sum = 0;
                     for (std::int64_t i = group.rank(); i < s.length; i += group.size()) {
                       const float off = from[i * s.step] - mean;
                       sum += off * off;
                     }
                     const float variance = group.combine(sum, Plus()) / count;
                     const float scale = 1.0f / std::sqrt(variance + s.epsilon);
                     for (std::int64_t i = group.rank(); i < s.length; i += group.size()) {
                       const std::int64_t column = s.column(l, i);
                       y[l * s.line + i * s.step] =
                           (from[i * s.step] - mean) * scale * gamma[column] + beta[column];
                     }
                     if (group.rank() == 0) {
                       means[l] = mean;
                       variances[l] = variance;
                     }
                   });
  };
}

// The sums over a line that dx needs: of g = dy * gamma, and of g times the normalised x.
//   dx = scale * (g - (sum g + xhat * sum g xhat) / length)
void gradient_of_x(Queue& queue, const Lines& s, const float* dy, const float* x,
                   const float* gamma, const float* means, const float* variances, float* dx) {
  for_each_group(queue, s.lines, s.length,
                 [=] CAIRN_KERNEL_BODY(const Group& group, std::int64_t l) {
                   const float mean = means[l];
                   const float scale = 1.0f / std::sqrt(variances[l] + s.epsilon);
                   float sum = 0, product = 0;
                   for (std::int64_t i = group.rank(); i < s.length; i += group.size()) {
                     const std::int64_t at = l * s.line + i * s.step;
                     const float g = dy[at] * gamma[s.column(l, i)];
                     sum += g;
                     product += g * (x[at] - mean) * scale;
                   }
                   sum = group.combine(sum, Plus());
                   product = group.combine(product, Plus());
                   const float share = 1.0f / static_cast<float>(s.length);
                   for (std::int64_t i = group.rank(); i < s.length; i += group.size()) {
                     const std::int64_t at = l * s.line + i * s.step;
                     const float g = dy[at] * gamma[s.column(l, i)];
                     const float normal = (x[at] - mean) * scale;
                     dx[at] = scale * (g - (sum + normal * product) * share);
                   }
                 });
}

// Sums over each column, whichever way lines run.
void gradient_of_vectors(Queue& queue, const Lines& s, const float* dy, const float* x,
                         const float* means, const float* variances, float* dgamma, float* dbeta) {
  const std::int64_t n = s.by_row ? s.length : s.lines, rows = s.by_row ? s.lines : s.length;
  const float epsilon = s.epsilon;
  const bool by_row = s.by_row;
  for_each_group(queue, n, rows, [=] CAIRN_KERNEL_BODY(const Group& group, std::int64_t column) {
    float sum = 0, product = 0;
    for (std::int64_t r = group.rank(); r < rows; r += group.size()) {
      const std::int64_t at = r * n + column, line = by_row ? r : column;
      const float scale = 1.0f / std::sqrt(variances[line] + epsilon);
      sum += dy[at];
      product += dy[at] * (x[at] - means[line]) * scale;
    }
    sum = group.combine(sum, Plus());
    product = group.combine(product, Plus());
    if (group.rank() != 0) return;
    dgamma[column] = product;
    dbeta[column] = sum;
  });
}

// dy, x, gamma, mean, variance -> dx, dgamma, dbeta.
KernelRun run_backward(Queue& queue, const Lines& s) {
  return [&queue, s](const KernelCall& call) {
    const float *const dy = input_of<float>(call, 0), *const x = input_of<float>(call, 1),
                       *const gamma = input_of<float>(call, 2),
                       *const means = input_of<float>(call, 3),
                       *const variances = input_of<float>(call, 4);
    gradient_of_x(queue, s, dy, x, gamma, means, variances, output_of<float>(call, 0));
    gradient_of_vectors(queue, s, dy, x, means, variances, output_of<float>(call, 1),
                        output_of<float>(call, 2));
  };
}

template <Lines (*lines_of)(const Shape&, float), KernelRun (*run)(Queue&, const Lines&),
          std::size_t kImage>
KernelRun prepare(Queue& queue, const KernelTypes& types) {
  const Shape& x = types.inputs[kImage].shape;
  if (x.elements() == 0) return zeros(queue, types);
  return run(queue, lines_of(x, epsilon_of(types)));
}

constexpr Kernel kNormaliseKernels[] = {
    {"layer_norm", prepare<rows_of, run_forward, 0>},
    {"layer_norm_grad", prepare<rows_of, run_backward, 1>},
    {"batch_norm", prepare<columns_of, run_forward, 0>},
    {"batch_norm_grad", prepare<columns_of, run_backward, 1>},
};

}  // namespace

std::span<const Kernel> normalise_kernels() { return kNormaliseKernels; }

}  // namespace cairn::cuda
