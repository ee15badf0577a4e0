#include <dnnl.h>

#include <algorithm>

#include "core/error.h"
#include "core/kernels/cpu/clones.h"
#include "core/kernels/cpu/gemm.h"
#include "core/kernels/cpu/onednn.h"
#include "core/kernels/kernel.h"

namespace cairn {
namespace {

KernelRun prepare_matmul(const KernelTypes& types) {
  const Shape &a = types.inputs[0].shape, &c = types.outputs[0].shape;
  Gemm shape{c[0], c[1], 0, types.attributes.get<bool>("transpose_a"), types.attributes.get<bool>("transpose_b")};
  shape.k = a[shape.transpose_a ? 0 : 1];
  return [shape](const KernelCall& call) { gemm(shape, input_of<float>(call, 0), input_of<float>(call, 1), output_of<float>(call)); };
}

KernelRun prepare_batch_matmul(const KernelTypes& types) {
  const Shape &a = types.inputs[0].shape, &c = types.outputs[0].shape;
  Gemm shape{c[1], c[2], 0, types.attributes.get<bool>("transpose_a"), types.attributes.get<bool>("transpose_b")};
  shape.k = a[shape.transpose_a ? 1 : 2];
  return [shape, batch = c[0]](const KernelCall& call) {
    for (std::int64_t i = 0; i < batch; ++i)
      gemm(shape, input_of<float>(call, 0) + i * shape.m * shape.k, input_of<float>(call, 1) + i * shape.k * shape.n,
           output_of<float>(call) + i * shape.m * shape.n);
  };
}

constexpr Kernel kMatmulKernels[] = {{"matmul", prepare_matmul}, {"batch_matmul", prepare_batch_matmul}};

}  // namespace

void gemm(const Gemm& s, const float* a, const float* b, float* c) {
  if (s.m == 0 || s.n == 0) return;
  if (s.k == 0) {
    std::fill_n(c, s.m * s.n, 0.0f);
    return;
  }
  onednn::stay_on_this_thread();
  dnnl_status_t status = dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, 1.0f, a, s.transpose_a ? s.m : s.k,
                                    b, s.transpose_b ? s.k : s.n, 0.0f, c, s.n);
  if (status == dnnl_out_of_memory) throw ResourceExhaustedError("no memory for a matrix product");
  CAIRN_CHECK(status == dnnl_success, "oneDNN refused a product of ", s.m, " x ", s.k, " and ", s.k, " x ", s.n, ": ", status);
}

CAIRN_CLONES void add_bias(float* c, const float* bias, std::int64_t m, std::int64_t n, bool relu) {
  for (std::int64_t i = 0; i < m; ++i) {
    float* row = c + i * n;
    if (bias != nullptr && relu) {
      for (std::int64_t j = 0; j < n; ++j) {
        float x = row[j] + bias[j];
        row[j] = x < 0.0f ? 0.0f : x;  // a NaN stays
      }
    } else if (bias != nullptr) {
      for (std::int64_t j = 0; j < n; ++j) row[j] += bias[j];
    } else if (relu) {
      for (std::int64_t j = 0; j < n; ++j) row[j] = row[j] < 0.0f ? 0.0f : row[j];
    }
  }
}

std::span<const Kernel> matmul_kernels() { return kMatmulKernels; }

}  // namespace cairn
