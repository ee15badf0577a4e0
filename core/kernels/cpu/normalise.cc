// Layer and batch normalisation by oneDNN, on the value as a table: rows by the last axis. Layer
// normalisation has a mean and a variance per row, batch normalisation one per column. Both kinds
// are one template, since oneDNN's two sets of types differ in little else.
//   Sources  Ba, Kiros, Hinton, "Layer normalization", arXiv:1607.06450; Ioffe, Szegedy, "Batch
//            normalization", ICML 2015.
#include <cstring>
#include <memory>

#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/cpu/onednn.h"

namespace cairn {
namespace {

using dnnl::memory;
const auto kScaleAndShift =
    dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;

// Needed by both kinds: the forms of the table, of a vector beside its last axis, and of the
// statistics.
struct Normalisation {
  memory::desc x, vector, statistic;
  float epsilon;
};

memory::desc flat(std::int64_t n) { return {{n}, memory::data_type::f32, memory::format_tag::a}; }

struct Layer {
  using Forward = dnnl::layer_normalization_forward;
  using Backward = dnnl::layer_normalization_backward;
  static Normalisation problem(std::int64_t rows, std::int64_t n, float epsilon) {
    return {
        {{rows, n}, memory::data_type::f32, memory::format_tag::ab}, flat(n), flat(rows), epsilon};
  }
  static Forward::primitive_desc forward(const Normalisation& p) {
    return {{dnnl::prop_kind::forward_training, p.x, p.statistic, p.epsilon, kScaleAndShift},
            onednn::own_scratch(),
            onednn::engine()};
  }
  static Backward::primitive_desc backward(const Normalisation& p) {
    return {{dnnl::prop_kind::backward, p.x, p.x, p.statistic, p.epsilon, kScaleAndShift},
            onednn::own_scratch(),
            onednn::engine(),
            forward(p)};
  }
};

// oneDNN normalises the channels of images, so that a row becomes an image of one pixel.
struct Batch {
  using Forward = dnnl::batch_normalization_forward;
  using Backward = dnnl::batch_normalization_backward;
  static Normalisation problem(std::int64_t rows, std::int64_t n, float epsilon) {
    return {onednn::images(Shape{rows, 1, 1, n}), flat(n), flat(n), epsilon};
  }
  static Forward::primitive_desc forward(const Normalisation& p) {
    return {{dnnl::prop_kind::forward_training, p.x, p.epsilon, kScaleAndShift},
            onednn::own_scratch(),
            onednn::engine()};
  }
  static Backward::primitive_desc backward(const Normalisation& p) {
    return {{dnnl::prop_kind::backward, p.x, p.x, p.epsilon, kScaleAndShift},
            onednn::own_scratch(),
            onednn::engine(),
            forward(p)};
  }
};

// A run of `Pass`, a primitive of `Kind` over x; `set` gives it the call's memory.
template <typename Kind, typename Pass, typename Set>
KernelRun prepare_pass(const KernelTypes& types, const Shape& x,
                       typename Pass::primitive_desc (*describe)(const Normalisation&), Set set) {
  if (x.elements() == 0) return onednn::zeros(types);
  return onednn::guarded("normalisation", [&]() -> KernelRun {
    const std::int64_t n = x[x.rank() - 1];
    const Normalisation p = Kind::problem(
        x.elements() / n, n, static_cast<float>(types.attributes.template get<double>("epsilon")));
    auto desc = describe(p);
    auto made = std::make_shared<onednn::Primitive>(Pass(desc), desc.scratchpad_desc());
    return [p, made, set](const KernelCall& call) {
      set(*made, p, call);
      made->run("normalisation");
    };
  });
}

// x, gamma, beta -> y, mean, variance.
template <typename Kind>
KernelRun prepare(const KernelTypes& types) {
  return prepare_pass<Kind, typename Kind::Forward>(
      types, types.inputs[0].shape, Kind::forward,
      [](onednn::Primitive& made, const Normalisation& p, const KernelCall& call) {
        made.set(DNNL_ARG_SRC, p.x, call.inputs[0]);
        made.set(DNNL_ARG_SCALE, p.vector, call.inputs[1]);
        made.set(DNNL_ARG_SHIFT, p.vector, call.inputs[2]);
        made.set(DNNL_ARG_DST, p.x, call.outputs[0]);
        made.set(DNNL_ARG_MEAN, p.statistic, call.outputs[1]);
        made.set(DNNL_ARG_VARIANCE, p.statistic, call.outputs[2]);
      });
}

// dy, x, gamma, mean, variance -> dx, dgamma, dbeta.
template <typename Kind>
KernelRun prepare_gradient(const KernelTypes& types) {
  return prepare_pass<Kind, typename Kind::Backward>(
      types, types.inputs[1].shape, Kind::backward,
      [](onednn::Primitive& made, const Normalisation& p, const KernelCall& call) {
        made.set(DNNL_ARG_DIFF_DST, p.x, call.inputs[0]);
        made.set(DNNL_ARG_SRC, p.x, call.inputs[1]);
        made.set(DNNL_ARG_SCALE, p.vector, call.inputs[2]);
        // oneDNN 2.6 demands one, and does not look at it
        made.set(DNNL_ARG_SHIFT, p.vector, call.inputs[2]);
        made.set(DNNL_ARG_MEAN, p.statistic, call.inputs[3]);
        made.set(DNNL_ARG_VARIANCE, p.statistic, call.inputs[4]);
        made.set(DNNL_ARG_DIFF_SRC, p.x, call.outputs[0]);
        made.set(DNNL_ARG_DIFF_SCALE, p.vector, call.outputs[1]);
        made.set(DNNL_ARG_DIFF_SHIFT, p.vector, call.outputs[2]);
      });
}

constexpr CpuKernel kNormaliseKernels[] = {
    {"layer_norm", prepare<Layer>},
    {"layer_norm_grad", prepare_gradient<Layer>},
    {"batch_norm", prepare<Batch>},
    {"batch_norm_grad", prepare_gradient<Batch>},
};

}  // namespace

std::span<const CpuKernel> normalise_kernels() { return kNormaliseKernels; }

}  // namespace cairn
