// cuBLASLt computes on column-major matrices. A row-major matrix read as column-major is its
// transpose, and (a x b)^T = b^T x a^T: so b is its first factor, a its second, and c comes out
// row-major. Its bias runs along the rows of its result, which are our columns.
#include "core/kernels/cuda/ops/cublas_products.h"

#include <array>
#include <vector>

#include "core/kernels/cuda/runtime/cuda_error.h"
#include "core/kernels/cuda/runtime/queue.h"

namespace cairn::cuda {
namespace {

void check_blas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string text = str(what, ": ", cublasLtGetStatusString(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw ResourceExhaustedError(text);
  throw InternalError(text);
}

std::string key_of(const ProductShape& s) {
  return str(s.gemm.m, ' ', s.gemm.n, ' ', s.gemm.k, ' ', s.gemm.transpose_a, ' ',
             s.gemm.transpose_b, ' ', s.batch, ' ', static_cast<int>(s.arithmetic), ' ', s.bias,
             ' ', s.relu, ' ', s.narrow_result);
}

cublasComputeType_t compute_type(const ProductShape& s) {
  return s.arithmetic == Arithmetic::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}
cudaDataType_t factor_type(const ProductShape& s) {
  return rounds_to_bfloat16(s.arithmetic) ? CUDA_R_16BF : CUDA_R_32F;
}
cudaDataType_t result_type(const ProductShape& s) {
  return s.narrow_result ? CUDA_R_16BF : CUDA_R_32F;
}

class Layout {
 public:
  // Describes a batch of matrices, each of which lies row-major as [rows, columns].
  Layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t batch) {
    check_blas(cublasLtMatrixLayoutCreate(&layout_, type, static_cast<std::uint64_t>(columns),
                                          static_cast<std::uint64_t>(rows), columns),
               "describing a matrix");
    const auto count = static_cast<std::int32_t>(batch);
    const std::int64_t stride = rows * columns;
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  template <typename T>
  void set(cublasLtMatrixLayoutAttribute_t what, T value) {
    check_blas(cublasLtMatrixLayoutSetAttribute(layout_, what, &value, sizeof value),
               "describing a batch");
  }
  cublasLtMatrixLayout_t layout_ = nullptr;
};

cublasLtEpilogue_t epilogue_of(const ProductShape& s) {
  if (s.bias) return s.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return s.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

class Operation {
 public:
  explicit Operation(const ProductShape& shape) {
    check_blas(cublasLtMatmulDescCreate(&desc_, compute_type(shape), CUDA_R_32F),
               "describing a product");
    set(CUBLASLT_MATMUL_DESC_TRANSA, shape.gemm.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, shape.gemm.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(shape));
    if (shape.bias) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, result_type(shape));
  }
  ~Operation() { cublasLtMatmulDescDestroy(desc_); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  void set_bias(const void* bias) { set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }
  cublasLtMatmulDesc_t get() const { return desc_; }

 private:
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t what, T value) {
    check_blas(cublasLtMatmulDescSetAttribute(desc_, what, &value, sizeof value),
               "describing a product");
  }
  cublasLtMatmulDesc_t desc_ = nullptr;
};

}  // namespace

class Products::Planned {
 public:
  Planned(cublasLtHandle_t handle, const ProductShape& shape, std::byte* workspace)
      : handle_(handle),
        shape_(shape),
        workspace_(workspace),
        operation_(shape),
        a_(factor_type(shape), rows_a(), columns_a(), shape.batch),
        b_(factor_type(shape), rows_b(), columns_b(), shape.batch),
        c_(result_type(shape), shape.gemm.m, shape.gemm.n, shape.batch) {}

  const ProductShape& shape() const { return shape_; }
  std::int64_t elements_a() const { return shape_.batch * shape_.gemm.m * shape_.gemm.k; }
  std::int64_t elements_b() const { return shape_.batch * shape_.gemm.k * shape_.gemm.n; }
  std::int64_t elements_c() const { return shape_.batch * shape_.gemm.m * shape_.gemm.n; }

  // The algorithms that cuBLASLt would try, best first, at least one.
  //   Errors  Unimplemented: it has none.
  std::vector<cublasLtMatmulAlgo_t> candidates() const {
    cublasLtMatmulPreference_t wishes = nullptr;
    check_blas(cublasLtMatmulPreferenceCreate(&wishes), "planning a product");
    const std::size_t bytes = kWorkspaceBytes;
    const std::uint32_t alignment = 16;
    cublasLtMatmulPreferenceSetAttribute(wishes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                         sizeof bytes);
    for (auto what :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      cublasLtMatmulPreferenceSetAttribute(wishes, what, &alignment, sizeof alignment);
    std::array<cublasLtMatmulHeuristicResult_t, 8> found{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_, operation_.get(), b_.get(), a_.get(), c_.get(), c_.get(), wishes,
        static_cast<int>(found.size()), found.data(), &count);
    cublasLtMatmulPreferenceDestroy(wishes);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check_blas(status, "planning a product");
    std::vector<cublasLtMatmulAlgo_t> made;
    for (int i = 0; i < count; ++i)
      if (found[static_cast<std::size_t>(i)].state == CUBLAS_STATUS_SUCCESS)
        made.push_back(found[static_cast<std::size_t>(i)].algo);
    if (made.empty())
      throw UnimplementedError(str("cuBLASLt has no product of [", shape_.gemm.m, ", ",
                                   shape_.gemm.k, "] and [", shape_.gemm.k, ", ", shape_.gemm.n,
                                   "]"));
    return made;
  }
  void choose(const cublasLtMatmulAlgo_t& algorithm) { algorithm_ = algorithm; }

  // Factors in the type of the arithmetic.
  void run(Stream stream, const ProductMemory& at) {
    static constexpr float kOne = 1, kZero = 0;
    if (shape_.bias) operation_.set_bias(at.bias);
    check_blas(cublasLtMatmul(handle_, operation_.get(), &kOne, at.b, b_.get(), at.a, a_.get(),
                              &kZero, at.c, c_.get(), at.c, c_.get(), &algorithm_, workspace_,
                              kWorkspaceBytes, stream),
               "a matrix product");
  }

 private:
  std::int64_t rows_a() const { return shape_.gemm.transpose_a ? shape_.gemm.k : shape_.gemm.m; }
  std::int64_t columns_a() const { return shape_.gemm.transpose_a ? shape_.gemm.m : shape_.gemm.k; }
  std::int64_t rows_b() const { return shape_.gemm.transpose_b ? shape_.gemm.n : shape_.gemm.k; }
  std::int64_t columns_b() const { return shape_.gemm.transpose_b ? shape_.gemm.k : shape_.gemm.n; }

  cublasLtHandle_t handle_;
  ProductShape shape_;
  std::byte* workspace_;
  Operation operation_;
  Layout a_, b_, c_;
  cublasLtMatmulAlgo_t algorithm_{};
};

Products::Products(Driver& driver) : driver_(driver) {
  check_blas(cublasLtCreate(&handle_), "opening cuBLASLt");
}
Products::~Products() { cublasLtDestroy(handle_); }

// Times each candidate over memory of any contents, and keeps the fastest. cuBLASLt's own first
// choice is a function of the shape, the device and the library's version, so that it repeats.
void Products::tune(Planned& planned, Stream stream) {
  const auto candidates = planned.candidates();
  planned.choose(candidates[0]);
  const bool given = candidates.size() == 1 || planned.shape().deterministic;
  if (given) return;
  const std::string key = key_of(planned.shape());
  {
    std::lock_guard hold(mutex_);
    if (const auto known = fastest_.find(key); known != fastest_.end()) {
      planned.choose(known->second);
      return;
    }
  }
  constexpr int kRuns = 3;
  const auto bytes = [](std::int64_t n) { return static_cast<std::size_t>(n) * sizeof(float); };
  Memory a(driver_, stream, bytes(planned.elements_a())),
      b(driver_, stream, bytes(planned.elements_b())),
      c(driver_, stream, bytes(planned.elements_c())),
      bias(driver_, stream, bytes(planned.shape().gemm.n));
  for (const Memory* one : {&a, &b}) {
    const std::int64_t n = one == &a ? planned.elements_a() : planned.elements_b();
    driver_.fill_zero(stream, one->data(), bytes(n));
  }
  driver_.fill_zero(stream, bias.data(), bytes(planned.shape().gemm.n));
  const ProductMemory at{a.data(), b.data(), bias.data(), c.data()};
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "an event");
  check(cudaEventCreate(&end), "an event");
  float best = -1;
  cublasLtMatmulAlgo_t fastest = candidates[0];
  for (const auto& candidate : candidates) {
    planned.choose(candidate);
    const auto run = [&] { planned.run(stream, at); };
    run();
    check(cudaEventRecord(begin, stream), "an event");
    for (int i = 0; i < kRuns; ++i) run();
    check(cudaEventRecord(end, stream), "an event");
    check(cudaEventSynchronize(end), "timing a matrix product");
    float took = 0;
    check(cudaEventElapsedTime(&took, begin, end), "timing a matrix product");
    if (best >= 0 && took >= best) continue;
    best = took;
    fastest = candidate;
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  planned.choose(fastest);
  std::lock_guard hold(mutex_);
  fastest_.emplace(key, fastest);
}

ProductRun Products::plan(const ProductShape& shape, Stream stream, std::byte* workspace) {
  const Gemm& g = shape.gemm;
  if (g.m * g.n * shape.batch == 0) return [](Stream, const ProductMemory&) {};
  const auto result = static_cast<std::size_t>(g.m * g.n * shape.batch) *
                      (shape.narrow_result ? sizeof(std::uint16_t) : sizeof(float));
  if (g.k == 0) {
    CAIRN_CHECK(!shape.bias, "a bias beside a sum of nothing");
    return
        [this, result](Stream on, const ProductMemory& at) { driver_.fill_zero(on, at.c, result); };
  }
  auto planned = std::make_shared<Planned>(handle_, shape, workspace);
  tune(*planned, stream);
  return [planned](Stream on, const ProductMemory& at) { planned->run(on, at); };
}

}  // namespace cairn::cuda
