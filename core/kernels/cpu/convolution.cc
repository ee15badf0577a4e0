// Convolution by oneDNN: forward, and the gradients of image and filter. Images stay as they lie,
// in NHWC; a filter is put into the order that the primitive prefers, once per run, because it is
// small and the primitive reads it many times.
#include <cstring>
#include <memory>
#include <optional>

#include "core/graph/ops/window.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/cpu/onednn.h"

namespace cairn {
namespace {

using dnnl::memory;
using Pair = std::vector<std::int64_t>;

// The forward convolution that all three belong to. oneDNN derives both gradients from its
// description.
struct Problem {
  memory::desc x, y, filter;  // the filter as it lies: [h, w, in, out]
  memory::desc free_filter;   // the same in whatever order
  memory::dims strides, dilations, before, after;
};

Problem problem_of(const Shape& x, const Shape& filter, const Shape& y,
                   const Attributes& attributes) {
  const Pair &strides = attributes.get<Pair>("strides"),
             &dilations = attributes.get<Pair>("dilations");
  Padding padding =
      attributes.get<std::string>("padding") == "SAME" ? Padding::kSame : Padding::kValid;
  memory::dims filter_dims = {filter[3], filter[2], filter[0], filter[1]};
  Problem made{onednn::images(x),
               onednn::images(y),
               {filter_dims, memory::data_type::f32, memory::format_tag::hwio},
               {filter_dims, memory::data_type::f32, memory::format_tag::any},
               strides,
               {},
               {},
               {}};
  for (std::size_t i : {0, 1}) {
    int axis = static_cast<int>(i);
    Slide slides = slide(x[axis + 1], {filter[axis], strides[i], dilations[i]}, padding);
    made.dilations.push_back(dilations[i] - 1);  // zeros between, as oneDNN counts
    made.before.push_back(slides.before);
    made.after.push_back(slides.after);
  }
  return made;
}

// forward_training, since both gradients take this description as their hint.
dnnl::convolution_forward::primitive_desc forward_desc(const Problem& p) {
  dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_training,
                                       dnnl::algorithm::convolution_direct, p.x, p.free_filter, p.y,
                                       p.strides, p.dilations, p.before, p.after);
  return {desc, onednn::own_scratch(), onednn::engine()};
}

onednn::Primitive reorder(const memory::desc& from, const memory::desc& to) {
  dnnl::reorder::primitive_desc desc(onednn::engine(), from, onednn::engine(), to,
                                     onednn::own_scratch());
  return {dnnl::reorder(desc), desc.scratchpad_desc()};
}

// A primitive with the filter among its arguments, and the reordering before it (or, for a filter's
// gradient, after it). The reordered filter is memory of its own, bound to both primitives once; if
// the primitive takes the filter as it lies, there is no reordering.
class Convolution {
 public:
  enum class Filter : std::uint8_t { kRead, kMade };
  struct Names {
    int x, filter, y;
  };

  Convolution(Problem problem, onednn::Primitive primitive, const memory::desc& filter, Filter role,
              Names names)
      : problem_(std::move(problem)), primitive_(std::move(primitive)), role_(role), names_(names) {
    if (filter == problem_.filter) return;
    memory own(filter, onednn::engine());
    primitive_.set(names_.filter, own);
    reorder_.emplace(role == Filter::kRead ? reorder(problem_.filter, filter)
                                           : reorder(filter, problem_.filter));
    reorder_->set(role == Filter::kRead ? DNNL_ARG_TO : DNNL_ARG_FROM, own);
  }

  void run(const void* x, const void* filter, const void* y) {
    primitive_.set(names_.x, problem_.x, x);
    primitive_.set(names_.y, problem_.y, y);
    if (reorder_)
      reorder_->set(role_ == Filter::kRead ? DNNL_ARG_FROM : DNNL_ARG_TO, problem_.filter, filter);
    else
      primitive_.set(names_.filter, problem_.filter, filter);
    if (reorder_ && role_ == Filter::kRead) reorder_->run("convolution");
    primitive_.run("convolution");
    if (reorder_ && role_ == Filter::kMade) reorder_->run("convolution");
  }

 private:
  Problem problem_;
  onednn::Primitive primitive_;
  Filter role_;
  Names names_;
  std::optional<onednn::Primitive> reorder_;
};

using Made = std::shared_ptr<Convolution>;

Made make_forward(const Problem& p) {
  auto desc = forward_desc(p);
  onednn::Primitive primitive(dnnl::convolution_forward(desc), desc.scratchpad_desc());
  return std::make_shared<Convolution>(
      p, std::move(primitive), desc.weights_desc(), Convolution::Filter::kRead,
      Convolution::Names{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST});
}

Made make_grad_input(const Problem& p) {
  dnnl::convolution_backward_data::desc what(dnnl::algorithm::convolution_direct, p.x,
                                             p.free_filter, p.y, p.strides, p.dilations, p.before,
                                             p.after);
  dnnl::convolution_backward_data::primitive_desc desc(what, onednn::own_scratch(),
                                                       onednn::engine(), forward_desc(p));
  onednn::Primitive primitive(dnnl::convolution_backward_data(desc), desc.scratchpad_desc());
  return std::make_shared<Convolution>(
      p, std::move(primitive), desc.weights_desc(), Convolution::Filter::kRead,
      Convolution::Names{DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST});
}

Made make_grad_filter(const Problem& p) {
  dnnl::convolution_backward_weights::desc what(dnnl::algorithm::convolution_direct, p.x,
                                                p.free_filter, p.y, p.strides, p.dilations,
                                                p.before, p.after);
  dnnl::convolution_backward_weights::primitive_desc desc(what, onednn::own_scratch(),
                                                          onednn::engine(), forward_desc(p));
  onednn::Primitive primitive(dnnl::convolution_backward_weights(desc), desc.scratchpad_desc());
  return std::make_shared<Convolution>(
      p, std::move(primitive), desc.diff_weights_desc(), Convolution::Filter::kMade,
      Convolution::Names{DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST});
}

// Sums of nothing: without images, channels or positions the result is zeros.
bool is_empty(const KernelTypes& types) {
  for (const TensorType& type : types.inputs)
    if (type.shape.elements() == 0) return true;
  return types.outputs[0].shape.elements() == 0;
}

// Which of a call's values are the three of a convolution: in a gradient one of them is the output.
struct Places {
  const Shape &x, &filter, &y;
};
using Run = void (*)(Convolution& convolution, const KernelCall& call);

KernelRun prepare(const KernelTypes& types, const Places& places, Made (*make)(const Problem&),
                  Run run) {
  if (is_empty(types)) return onednn::zeros(types);
  return onednn::guarded("convolution", [&]() -> KernelRun {
    Made made = make(problem_of(places.x, places.filter, places.y, types.attributes));
    return [made, run](const KernelCall& call) { run(*made, call); };
  });
}

KernelRun prepare_conv(const KernelTypes& types) {
  return prepare(types, {types.inputs[0].shape, types.inputs[1].shape, types.outputs[0].shape},
                 make_forward, [](Convolution& c, const KernelCall& call) {
                   c.run(call.inputs[0], call.inputs[1], call.outputs[0]);
                 });
}
KernelRun prepare_grad_input(const KernelTypes& types) {
  return prepare(types, {types.outputs[0].shape, types.inputs[1].shape, types.inputs[0].shape},
                 make_grad_input, [](Convolution& c, const KernelCall& call) {
                   c.run(call.outputs[0], call.inputs[1], call.inputs[0]);
                 });
}
KernelRun prepare_grad_filter(const KernelTypes& types) {
  return prepare(types, {types.inputs[1].shape, types.outputs[0].shape, types.inputs[0].shape},
                 make_grad_filter, [](Convolution& c, const KernelCall& call) {
                   c.run(call.inputs[1], call.outputs[0], call.inputs[0]);
                 });
}

constexpr CpuKernel kConvolutionKernels[] = {
    {"conv2d", prepare_conv},
    {"conv2d_grad_input", prepare_grad_input},
    {"conv2d_grad_filter", prepare_grad_filter},
};

}  // namespace

std::span<const CpuKernel> convolution_kernels() { return kConvolutionKernels; }

}  // namespace cairn
