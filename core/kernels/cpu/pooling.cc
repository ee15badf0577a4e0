// Pooling by oneDNN. The gradient of max pooling searches for the places of the largest elements
// once more: nothing is kept from the forward pass, whose only output is y.
#include <cstring>
#include <memory>

#include "core/graph/ops/window.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/cpu/onednn.h"

namespace cairn {
namespace {

using dnnl::memory;
using Pair = std::vector<std::int64_t>;
constexpr auto kMax = dnnl::algorithm::pooling_max;
// As the reference: padding counts neither in the sum nor in the number of elements.
constexpr auto kAverage = dnnl::algorithm::pooling_avg_exclude_padding;

struct PoolingProblem {
  memory::desc x, y;
  memory::dims window, strides, before, after;
};

PoolingProblem problem_of(const Shape& x, const Shape& y, const Attributes& attributes) {
  PoolingProblem made{onednn::images(x),
                      onednn::images(y),
                      attributes.get<Pair>("window"),
                      attributes.get<Pair>("strides"),
                      {},
                      {}};
  Padding padding =
      attributes.get<std::string>("padding") == "SAME" ? Padding::kSame : Padding::kValid;
  for (std::size_t i : {0, 1}) {
    Slide slides = slide(x[static_cast<int>(i) + 1], {made.window[i], made.strides[i]}, padding);
    made.before.push_back(slides.before);
    made.after.push_back(slides.after);
  }
  return made;
}

// `purpose` forward_inference keeps no table of the largest elements' places; forward_training
// makes the one that the gradient reads.
dnnl::pooling_forward::primitive_desc forward_desc(const PoolingProblem& p, dnnl::algorithm kind,
                                                   dnnl::prop_kind purpose) {
  dnnl::pooling_forward::desc desc(purpose, kind, p.x, p.y, p.strides, p.window, p.before, p.after);
  return {desc, onednn::own_scratch(), onednn::engine()};
}

class Pooling {
 public:
  Pooling(const PoolingProblem& p, dnnl::algorithm kind)
      : Pooling(p, forward_desc(p, kind, dnnl::prop_kind::forward_inference)) {}
  void run(const void* x, const void* y) {
    primitive_.set(DNNL_ARG_SRC, problem_.x, x);
    primitive_.set(DNNL_ARG_DST, problem_.y, y);
    primitive_.run("pooling");
  }

 private:
  Pooling(const PoolingProblem& p, const dnnl::pooling_forward::primitive_desc& desc)
      : problem_(p), primitive_(dnnl::pooling_forward(desc), desc.scratchpad_desc()) {}
  PoolingProblem problem_;
  onednn::Primitive primitive_;
};

class PoolingGradient {
 public:
  PoolingGradient(const PoolingProblem& p, dnnl::algorithm kind)
      : PoolingGradient(p, kind, forward_desc(p, kind, dnnl::prop_kind::forward_training)) {}

  // dx from dy. `x`, which only max pooling reads, is searched into a workspace that both
  // primitives share.
  void run(const void* dy, const void* x, const void* dx) {
    if (search_) {
      forward_.set(DNNL_ARG_SRC, problem_.x, x);
      forward_.run("pooling");
    }
    backward_.set(DNNL_ARG_DIFF_DST, problem_.y, dy);
    backward_.set(DNNL_ARG_DIFF_SRC, problem_.x, dx);
    backward_.run("pooling");
  }

 private:
  PoolingGradient(const PoolingProblem& p, dnnl::algorithm kind,
                  const dnnl::pooling_forward::primitive_desc& forward)
      : PoolingGradient(
            p, kind, forward,
            {dnnl::pooling_backward::desc(kind, p.x, p.y, p.strides, p.window, p.before, p.after),
             onednn::own_scratch(), onednn::engine(), forward}) {}
  PoolingGradient(const PoolingProblem& p, dnnl::algorithm kind,
                  const dnnl::pooling_forward::primitive_desc& forward,
                  const dnnl::pooling_backward::primitive_desc& backward)
      : problem_(p),
        search_(kind == kMax),
        forward_(dnnl::pooling_forward(forward), forward.scratchpad_desc()),
        backward_(dnnl::pooling_backward(backward), backward.scratchpad_desc()) {
    if (!search_) return;
    memory places(forward.workspace_desc(), onednn::engine());
    forward_.set(DNNL_ARG_WORKSPACE, places);
    backward_.set(DNNL_ARG_WORKSPACE, places);
    forward_.set(DNNL_ARG_DST, memory(p.y, onednn::engine()));
  }
  PoolingProblem problem_;
  bool search_;
  onednn::Primitive forward_, backward_;
};

KernelRun nothing_but_zeros(const TensorType& type) {
  std::size_t bytes = static_cast<std::size_t>(type.shape.elements()) * sizeof(float);
  return [bytes](const KernelCall& call) { std::memset(call.outputs[0], 0, bytes); };
}

template <dnnl::algorithm kKind>
KernelRun prepare(const KernelTypes& types) {
  if (types.outputs[0].shape.elements() == 0) return nothing_but_zeros(types.outputs[0]);
  return onednn::guarded("pooling", [&]() -> KernelRun {
    auto made = std::make_shared<Pooling>(
        problem_of(types.inputs[0].shape, types.outputs[0].shape, types.attributes), kKind);
    return [made](const KernelCall& call) { made->run(call.inputs[0], call.outputs[0]); };
  });
}

template <dnnl::algorithm kKind>
KernelRun prepare_grad(const KernelTypes& types) {
  if (types.inputs[0].shape.elements() == 0) return nothing_but_zeros(types.outputs[0]);
  return onednn::guarded("pooling", [&]() -> KernelRun {
    auto made = std::make_shared<PoolingGradient>(
        problem_of(types.outputs[0].shape, types.inputs[0].shape, types.attributes), kKind);
    return [made](const KernelCall& call) {
      made->run(call.inputs[0], call.inputs[1], call.outputs[0]);
    };
  });
}

constexpr CpuKernel kPoolingKernels[] = {
    {"max_pool2d", prepare<kMax>},
    {"avg_pool2d", prepare<kAverage>},
    {"max_pool2d_grad", prepare_grad<kMax>},
    {"avg_pool2d_grad", prepare_grad<kAverage>},
};

}  // namespace

std::span<const CpuKernel> pooling_kernels() { return kPoolingKernels; }

}  // namespace cairn
