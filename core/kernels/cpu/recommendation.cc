#include <cstring>
#include <memory>
#include <vector>

#include "core/kernels/cpu/clones.h"
#include "core/kernels/kernel.h"

namespace cairn {
namespace {

struct Vectors {
  std::int64_t batch, f, d;
};

// With the vectors as columns, the products of one vector with all before it come out side by side.
CAIRN_CLONES void dots(const Vectors& v, const float* x, float* columns, float* out) {
  for (std::int64_t b = 0; b < v.batch; ++b, x += v.f * v.d) {
    for (std::int64_t i = 0; i < v.f; ++i)
      for (std::int64_t k = 0; k < v.d; ++k) columns[k * v.f + i] = x[i * v.d + k];
    for (std::int64_t i = 1; i < v.f; ++i) {
      for (std::int64_t j = 0; j < i; ++j) out[j] = 0;
      for (std::int64_t k = 0; k < v.d; ++k) {
        float factor = x[i * v.d + k];
        const float* __restrict column = columns + k * v.f;
        float* __restrict to = out;
        for (std::int64_t j = 0; j < i; ++j) to[j] += factor * column[j];
      }
      out += i;
    }
  }
}

CAIRN_CLONES void dots_grad(const Vectors& v, const float* dy, const float* x, float* dx) {
  std::memset(dx, 0, static_cast<std::size_t>(v.batch * v.f * v.d) * sizeof(float));
  for (std::int64_t b = 0; b < v.batch; ++b, x += v.f * v.d, dx += v.f * v.d)
    for (std::int64_t i = 1; i < v.f; ++i)
      for (std::int64_t j = 0; j < i; ++j) {
        float factor = *dy++;
        const float *__restrict xi = x + i * v.d, *__restrict xj = x + j * v.d;
        float *__restrict di = dx + i * v.d, *__restrict dj = dx + j * v.d;
        for (std::int64_t k = 0; k < v.d; ++k) {
          di[k] += factor * xj[k];
          dj[k] += factor * xi[k];
        }
      }
}

Vectors vectors_of(const Shape& shape) { return {shape[0], shape[1], shape[2]}; }

KernelRun prepare_dots(const KernelTypes& types) {
  Vectors v = vectors_of(types.inputs[0].shape);
  auto columns = std::make_shared<std::vector<float>>(static_cast<std::size_t>(v.f * v.d));
  return [v, columns](const KernelCall& call) { dots(v, input_of<float>(call, 0), columns->data(), output_of<float>(call)); };
}

KernelRun prepare_dots_grad(const KernelTypes& types) {
  return [v = vectors_of(types.inputs[1].shape)](const KernelCall& call) {
    dots_grad(v, input_of<float>(call, 0), input_of<float>(call, 1), output_of<float>(call));
  };
}

constexpr Kernel kRecommendationKernels[] = {{"dot_interaction", prepare_dots}, {"dot_interaction_grad", prepare_dots_grad}};

}  // namespace

std::span<const Kernel> recommendation_kernels() { return kRecommendationKernels; }

}  // namespace cairn
