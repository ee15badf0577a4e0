#include <dnnl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cpu/gemm.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/cpu/onednn.h"
#include "core/tensor/bfloat16.h"

namespace cairn {
namespace {

KernelRun prepare_matmul(const KernelTypes& types) {
  const Shape &a = types.inputs[0].shape, &c = types.outputs[0].shape;
  Gemm shape{c[0],
             c[1],
             0,
             types.attributes.get<bool>("transpose_a"),
             types.attributes.get<bool>("transpose_b"),
             types.rows_alike};
  shape.k = a[shape.transpose_a ? 0 : 1];
  return [product = plan_product(shape, types.products)](const KernelCall& call) {
    product(input_of<float>(call, 0), input_of<float>(call, 1), output_of<float>(call));
  };
}

// One planned product serves all pairs of a batch, one after another.
KernelRun prepare_batch_matmul(const KernelTypes& types) {
  const Shape &a = types.inputs[0].shape, &c = types.outputs[0].shape;
  Gemm shape{c[1],
             c[2],
             0,
             types.attributes.get<bool>("transpose_a"),
             types.attributes.get<bool>("transpose_b"),
             types.rows_alike};
  shape.k = a[shape.transpose_a ? 1 : 2];
  return
      [shape, batch = c[0], product = plan_product(shape, types.products)](const KernelCall& call) {
        for (std::int64_t i = 0; i < batch; ++i)
          product(input_of<float>(call, 0) + i * shape.m * shape.k,
                  input_of<float>(call, 1) + i * shape.k * shape.n,
                  output_of<float>(call) + i * shape.m * shape.n);
      };
}

// A product whose operands are rounded to bfloat16 at each run, into buffers that the plan keeps;
// oneDNN sums the products in float32. Transposition costs nothing here: the strides of the
// description express it.
class NarrowProduct {
 public:
  NarrowProduct(const Gemm& s, dnnl::matmul::primitive_desc plan, const dnnl::memory::desc& a,
                const dnnl::memory::desc& b)
      : primitive_(dnnl::matmul(plan), plan.scratchpad_desc()),
        c_form_(plan.dst_desc()),
        a_(static_cast<std::size_t>(s.m * s.k)),
        b_(static_cast<std::size_t>(s.k * s.n)) {
    primitive_.set(DNNL_ARG_SRC, a, a_.data());
    primitive_.set(DNNL_ARG_WEIGHTS, b, b_.data());
  }
  void run(const float* a, const float* b, float* c) {
    narrow_to_bfloat16(a, a_.size(), reinterpret_cast<std::byte*>(a_.data()));
    narrow_to_bfloat16(b, b_.size(), reinterpret_cast<std::byte*>(b_.data()));
    primitive_.set(DNNL_ARG_DST, c_form_, c);
    primitive_.run("a matrix product in bfloat16");
  }

  // Null where the processor has no such instructions.
  static std::shared_ptr<NarrowProduct> plan(const Gemm& s) {
    using Type = dnnl::memory::data_type;
    if (!onednn::has_bfloat16()) return nullptr;
    const dnnl::memory::desc a(
        {s.m, s.k}, Type::bf16,
        s.transpose_a ? dnnl::memory::dims{1, s.m} : dnnl::memory::dims{s.k, 1});
    const dnnl::memory::desc b(
        {s.k, s.n}, Type::bf16,
        s.transpose_b ? dnnl::memory::dims{1, s.k} : dnnl::memory::dims{s.n, 1});
    const dnnl::memory::desc c({s.m, s.n}, Type::f32, dnnl::memory::dims{s.n, 1});
    return onednn::guarded("a matrix product in bfloat16", [&] {
      const dnnl::matmul::primitive_desc plan(dnnl::matmul::desc(a, b, c), onednn::own_scratch(),
                                              onednn::engine());
      return std::make_shared<NarrowProduct>(s, plan, a, b);
    });
  }

 private:
  onednn::Primitive primitive_;
  dnnl::memory::desc c_form_;
  std::vector<std::uint16_t> a_, b_;
};

// The same product on a processor without such instructions: operands rounded to bfloat16 and kept
// as float32. It makes a model trained with bfloat16 comparable between machines; it is not faster.
Product rounded_product(const Gemm& s) {
  struct Rounded {
    std::vector<float> a, b;
  };
  auto rounded = std::make_shared<Rounded>();
  rounded->a.resize(static_cast<std::size_t>(s.m * s.k));
  rounded->b.resize(static_cast<std::size_t>(s.k * s.n));
  return [s, rounded](const float* a, const float* b, float* c) {
    round_to_bfloat16(a, rounded->a.size(), rounded->a.data());
    round_to_bfloat16(b, rounded->b.size(), rounded->b.data());
    gemm(s, rounded->a.data(), rounded->b.data(), c);
  };
}

// Products whose sums are no longer than this have their buffer on the stack (oneDNN 2.6: up to
// 84), where signals do no harm. To hold them costs 0.4 us: as much as the smallest products.
constexpr std::int64_t kSumOnTheStack = 64;

void multiply(const Gemm& s, const float* a, const float* b, float* c) {
  const dnnl_status_t status =
      dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, 1.0f, a,
                 s.transpose_a ? s.m : s.k, b, s.transpose_b ? s.k : s.n, 0.0f, c, s.n);
  if (status == dnnl_out_of_memory) throw ResourceExhaustedError("no memory for a matrix product");
  CAIRN_CHECK(status == dnnl_success, "oneDNN refused a product of ", s.m, " x ", s.k, " and ", s.k,
              " x ", s.n, ": ", status);
}

// ---- the same bits for a row, however many rows there are ----

// oneDNN has kernels of their own for a single row, for few rows, and for what is left at the end
// of the matrix, and these sum a row's products in other orders. A product is therefore cut into
// such numbers of rows as are computed alike; rows of zeros fill the last ones up.
struct RowCut {
  std::int64_t most;      // rows in a piece
  std::int64_t multiple;  // of which a piece has a multiple
  std::int64_t least;
};

// As measured of oneDNN 2.6 for each set of instructions (tests/core/row_bits_test.cc).
RowCut row_cut(const Gemm& s) {
  static const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  if (isa == dnnl_cpu_isa_avx2 || isa == dnnl_cpu_isa_avx2_vnni) return {48, 6, 6};
  return {s.m, 1, s.transpose_b ? 16 : 2};
}

void multiply_filled_up(const Gemm& s, std::int64_t rows, const float* a, const float* b,
                        float* c) {
  thread_local std::vector<float> inputs, outputs;
  Gemm filled = s;
  filled.m = rows;
  inputs.assign(static_cast<std::size_t>(rows * s.k), 0.0f);
  outputs.resize(static_cast<std::size_t>(rows * s.n));
  std::copy_n(a, s.m * s.k, inputs.begin());
  multiply(filled, inputs.data(), b, outputs.data());
  std::copy_n(outputs.begin(), s.m * s.n, c);
}

void multiply_alike(const Gemm& s, const float* a, const float* b, float* c) {
  const RowCut cut = row_cut(s);
  for (std::int64_t row = 0; row < s.m; row += cut.most) {
    Gemm piece = s;
    piece.m = std::min(cut.most, s.m - row);
    const std::int64_t rows =
        std::max(cut.least, (piece.m + cut.multiple - 1) / cut.multiple * cut.multiple);
    if (rows == piece.m)
      multiply(piece, a + row * s.k, b, c + row * s.n);
    else
      multiply_filled_up(piece, rows, a + row * s.k, b, c + row * s.n);
  }
}

constexpr CpuKernel kMatmulKernels[] = {{"matmul", prepare_matmul},
                                        {"batch_matmul", prepare_batch_matmul}};

}  // namespace

Product plan_product(const Gemm& shape, Arithmetic arithmetic) {
  if (!rounds_to_bfloat16(arithmetic) || shape.m * shape.n * shape.k == 0)
    return [shape](const float* a, const float* b, float* c) { gemm(shape, a, b, c); };
  if (auto narrow = NarrowProduct::plan(shape))
    return [narrow](const float* a, const float* b, float* c) { narrow->run(a, b, c); };
  return rounded_product(shape);
}

void gemm(const Gemm& s, const float* a, const float* b, float* c) {
  if (s.m == 0 || s.n == 0) return;
  // An empty sum is 0, whatever c held.
  if (s.k == 0) {
    std::fill_n(c, s.m * s.n, 0.0f);
    return;
  }
  onednn::stay_on_this_thread();
  std::optional<onednn::HeldSignals> held;
  if (s.k > kSumOnTheStack) held.emplace();
  if (s.rows_alike && !s.transpose_a)
    multiply_alike(s, a, b, c);
  else
    multiply(s, a, b, c);
}

std::span<const CpuKernel> matmul_kernels() { return kMatmulKernels; }

}  // namespace cairn
