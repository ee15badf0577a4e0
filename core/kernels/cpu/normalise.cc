// Layer and batch normalisation. Loops of our own: oneDNN's fall back to plain reference code where the channels are no multiple of a
// vector, and these are bound by memory in any case. Sums over rows are made in double: a variance is what is left of large numbers.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/kernels/cpu/clones.h"
#include "core/kernels/kernel.h"

namespace cairn {
namespace {

struct Table {
  std::int64_t rows, n;
  float epsilon;
};

constexpr std::int64_t kLanes = 8;

// Sum of f(i) for i < n, in lanes, so that the loop vectorises.
template <typename F>
CAIRN_INLINE float sum_over(std::int64_t n, F f) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += f(i + l);
  float sum = 0;
  for (; i < n; ++i) sum += f(i);
  for (float lane : lanes) sum += lane;
  return sum;
}

struct Forward {
  const float *x, *gamma, *beta;
  float *y, *mean, *variance;
};
struct Backward {
  const float *dy, *x, *gamma, *mean, *variance;
  float *dx, *dgamma, *dbeta;
};
// What a run keeps of each column.
struct Sums {
  std::vector<double> a, b;
  std::vector<float> inverse;
};

CAIRN_CLONES void layer_norm(const Table& t, Forward f) {
  float scale = 1.0f / static_cast<float>(t.n);
  for (std::int64_t r = 0; r < t.rows; ++r, f.x += t.n, f.y += t.n) {
    const float* x = f.x;
    float mean = sum_over(t.n, [x](std::int64_t i) { return x[i]; }) * scale;
    float variance = sum_over(t.n, [x, mean](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); }) * scale;
    float inverse = 1.0f / std::sqrt(variance + t.epsilon);
    for (std::int64_t i = 0; i < t.n; ++i) f.y[i] = (x[i] - mean) * inverse * f.gamma[i] + f.beta[i];
    f.mean[r] = mean;
    f.variance[r] = variance;
  }
}

CAIRN_CLONES void layer_norm_grad(const Table& t, Backward b, Sums& sums) {
  double *dgamma = sums.a.data(), *dbeta = sums.b.data();
  float scale = 1.0f / static_cast<float>(t.n);
  for (std::int64_t r = 0; r < t.rows; ++r, b.x += t.n, b.dy += t.n, b.dx += t.n) {
    const float *x = b.x, *dy = b.dy, *gamma = b.gamma;
    float mean = b.mean[r], inverse = 1.0f / std::sqrt(b.variance[r] + t.epsilon);
    float sum = sum_over(t.n, [=](std::int64_t i) { return dy[i] * gamma[i]; }) * scale;
    float product = sum_over(t.n, [=](std::int64_t i) { return dy[i] * gamma[i] * ((x[i] - mean) * inverse); }) * scale;
    for (std::int64_t i = 0; i < t.n; ++i) {
      float normal = (x[i] - mean) * inverse;
      b.dx[i] = inverse * (dy[i] * gamma[i] - sum - normal * product);
      dgamma[i] += dy[i] * normal;
      dbeta[i] += dy[i];
    }
  }
}

CAIRN_CLONES void column_moments(const Table& t, const Forward& f, double* sums, double* squares) {
  double scale = t.rows == 0 ? 0 : 1.0 / static_cast<double>(t.rows);
  for (std::int64_t r = 0; r < t.rows; ++r)
    for (std::int64_t c = 0; c < t.n; ++c) sums[c] += f.x[r * t.n + c];
  for (std::int64_t c = 0; c < t.n; ++c) sums[c] *= scale;
  for (std::int64_t r = 0; r < t.rows; ++r)
    for (std::int64_t c = 0; c < t.n; ++c) {
      double d = f.x[r * t.n + c] - sums[c];
      squares[c] += d * d;
    }
  for (std::int64_t c = 0; c < t.n; ++c) {
    f.mean[c] = static_cast<float>(sums[c]);
    f.variance[c] = static_cast<float>(squares[c] * scale);
  }
}

// One over each column's deviation.
void inverses(const Table& t, const float* variance, float* inverse) {
  for (std::int64_t c = 0; c < t.n; ++c) inverse[c] = static_cast<float>(1.0 / std::sqrt(static_cast<double>(variance[c]) + t.epsilon));
}

CAIRN_CLONES void batch_norm(const Table& t, const Forward& f, const float* inverse) {
  for (std::int64_t r = 0; r < t.rows; ++r)
    for (std::int64_t c = 0; c < t.n; ++c)
      f.y[r * t.n + c] = (f.x[r * t.n + c] - f.mean[c]) * inverse[c] * f.gamma[c] + f.beta[c];
}

CAIRN_CLONES void batch_norm_grad(const Table& t, Backward b, Sums& sums) {
  double *dgamma = sums.a.data(), *dbeta = sums.b.data();
  float* inverse = sums.inverse.data();
  inverses(t, b.variance, inverse);
  for (std::int64_t r = 0; r < t.rows; ++r)
    for (std::int64_t c = 0; c < t.n; ++c) {
      dgamma[c] += b.dy[r * t.n + c] * ((b.x[r * t.n + c] - b.mean[c]) * inverse[c]);
      dbeta[c] += b.dy[r * t.n + c];
    }
  float scale = t.rows == 0 ? 0 : 1.0f / static_cast<float>(t.rows);
  for (std::int64_t r = 0; r < t.rows; ++r)
    for (std::int64_t c = 0; c < t.n; ++c) {
      float normal = (b.x[r * t.n + c] - b.mean[c]) * inverse[c];
      float rest = static_cast<float>(dbeta[c]) + normal * static_cast<float>(dgamma[c]);
      b.dx[r * t.n + c] = b.gamma[c] * inverse[c] * (b.dy[r * t.n + c] - rest * scale);
    }
}

Table table_of(const KernelTypes& types, const Shape& x) {
  std::int64_t n = x[x.rank() - 1], rows = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) rows *= x[i];
  return {rows, n, static_cast<float>(types.attributes.get<double>("epsilon"))};
}

Forward forward_of(const KernelCall& call) {
  return {input_of<float>(call, 0), input_of<float>(call, 1), input_of<float>(call, 2),
          output_of<float>(call, 0), output_of<float>(call, 1), output_of<float>(call, 2)};
}
Backward backward_of(const KernelCall& call) {
  return {input_of<float>(call, 0), input_of<float>(call, 1), input_of<float>(call, 2), input_of<float>(call, 3),
          input_of<float>(call, 4), output_of<float>(call, 0), output_of<float>(call, 1), output_of<float>(call, 2)};
}

std::shared_ptr<Sums> sums_of(std::int64_t n) {
  auto size = static_cast<std::size_t>(n);
  return std::make_shared<Sums>(Sums{std::vector<double>(size), std::vector<double>(size), std::vector<float>(size)});
}
void clear(Sums& sums) {
  std::fill(sums.a.begin(), sums.a.end(), 0.0);
  std::fill(sums.b.begin(), sums.b.end(), 0.0);
}

KernelRun prepare_layer_norm(const KernelTypes& types) {
  return [t = table_of(types, types.inputs[0].shape)](const KernelCall& call) { layer_norm(t, forward_of(call)); };
}

KernelRun prepare_batch_norm(const KernelTypes& types) {
  Table t = table_of(types, types.inputs[0].shape);
  return [t, sums = sums_of(t.n)](const KernelCall& call) {
    clear(*sums);
    Forward f = forward_of(call);
    column_moments(t, f, sums->a.data(), sums->b.data());
    inverses(t, f.variance, sums->inverse.data());
    batch_norm(t, f, sums->inverse.data());
  };
}

KernelRun prepare_gradient(const KernelTypes& types, void (*gradient)(const Table&, Backward, Sums&)) {
  Table t = table_of(types, types.inputs[1].shape);
  return [t, gradient, sums = sums_of(t.n)](const KernelCall& call) {
    clear(*sums);
    Backward b = backward_of(call);
    gradient(t, b, *sums);
    for (std::size_t i = 0; i < sums->a.size(); ++i) {
      b.dgamma[i] = static_cast<float>(sums->a[i]);
      b.dbeta[i] = static_cast<float>(sums->b[i]);
    }
  };
}

KernelRun prepare_layer_norm_grad(const KernelTypes& types) { return prepare_gradient(types, layer_norm_grad); }
KernelRun prepare_batch_norm_grad(const KernelTypes& types) { return prepare_gradient(types, batch_norm_grad); }

constexpr Kernel kKernels[] = {
    {"layer_norm", prepare_layer_norm},
    {"layer_norm_grad", prepare_layer_norm_grad},
    {"batch_norm", prepare_batch_norm},
    {"batch_norm_grad", prepare_batch_norm_grad},
};

}  // namespace

std::span<const Kernel> normalise_kernels() { return kKernels; }

}  // namespace cairn
