// Convolution and pooling of images [batch, height, width, channels].
#include "core/graph/infer.h"
#include "core/graph/op_def.h"
#include "core/graph/ops.h"
#include "core/graph/ops/window.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

using infer::OpTypes;
using Arrays = std::vector<Array>;
using Pair = std::vector<std::int64_t>;

Padding padding_of(const Attributes& attributes) {
  const auto& name = attributes.get<std::string>("padding");
  if (name != "SAME" && name != "VALID")
    infer::fail("the padding \"", name, "\" is neither SAME nor VALID");
  return name == "SAME" ? Padding::kSame : Padding::kValid;
}

// Two numbers each, down and across; TensorFlow also has one for batch and channels, which must be
// 1.
const Pair& pair_of(const Attributes& attributes, std::string_view name) {
  const Pair& pair = attributes.get<Pair>(name);
  if (pair.size() != 2)
    infer::fail("the attribute \"", name, "\" has ", pair.size(),
                " numbers; 2 are wanted: down and across");
  return pair;
}

// Sizes follow TensorFlow's SAME and VALID. The first call only verifies the numbers, on an image
// that is large enough for any window.
std::int64_t positions(std::int64_t in, const Window& window, Padding padding) {
  slide(Window::kMax * Window::kMax, window, padding);  // the numbers, whatever the image's size
  return infer::unknown(in) ? Shape::kUnknown : slide(in, window, padding).positions;
}

// ---- convolution ----

// Images are [batch, height, width, channels], filters [height, width, channels in, channels out].
Shape convolved(const Shape& x, const Shape& filter, const Attributes& attributes) {
  const Pair &strides = pair_of(attributes, "strides"),
             &dilations = pair_of(attributes, "dilations");
  Padding padding = padding_of(attributes);
  if (!infer::dims_agree(x[3], filter[2]))
    infer::fail("the image has ", x[3], " channels, the filter ", filter[2]);
  std::vector<std::int64_t> dims = {x[0]};
  for (int i : {0, 1}) {
    auto at = static_cast<std::size_t>(i);
    // A filter of unknown size leaves the image's unknown, except that all else is checked.
    Window window{infer::unknown(filter[i]) ? 1 : filter[i], strides[at], dilations[at]};
    std::int64_t found = positions(x[i + 1], window, padding);
    bool known = !infer::unknown(filter[i]) || padding == Padding::kSame;
    dims.push_back(known ? found : Shape::kUnknown);
  }
  dims.push_back(filter[3]);
  return Shape(std::move(dims));
}

void want_images(const OpInputs& in) {
  for (int i = 0; i < static_cast<int>(in.types.size()); ++i) {
    infer::want_dtype(in, i, infer::kFloats);
    infer::want_rank(in, i, 4);
  }
}

OpTypes infer_conv(const OpInputs& in) {
  want_images(in);
  return {{DType::kFloat32, convolved(in.types[0].shape, in.types[1].shape, in.attributes)}};
}

// A gradient has the shape of the result that it belongs to.
void want_gradient_of(const Shape& dy, const Shape& y) {
  if (!infer::shapes_agree(dy, y))
    infer::fail("the gradient is ", dy.to_string(), ", the result ", y.to_string());
}

// A gradient has the shape of what it is a gradient of, which comes along as the last input:
// several sizes of the image can give one size of the result.
OpTypes infer_conv_grad_input(const OpInputs& in) {
  want_images(in);
  want_gradient_of(in.types[0].shape,
                   convolved(in.types[2].shape, in.types[1].shape, in.attributes));
  return {in.types[2]};
}
OpTypes infer_conv_grad_filter(const OpInputs& in) {
  want_images(in);
  want_gradient_of(in.types[0].shape,
                   convolved(in.types[1].shape, in.types[2].shape, in.attributes));
  return {in.types[2]};
}

Conv2dOptions conv_options(const Array& y) {
  const Attributes& attributes = y.node()->attributes;
  const Pair &strides = pair_of(attributes, "strides"),
             &dilations = pair_of(attributes, "dilations");
  return {{strides[0], strides[1]}, padding_of(attributes), {dilations[0], dilations[1]}};
}

// A convolution is linear in the image and in the filter, so each gradient needs only the other
// one.
Arrays grad_conv(const Array& y, const Array& dy) {
  const Arrays& in = y.node()->inputs;
  return {conv2d_grad_input(dy, in[1], in[0], conv_options(y)),
          conv2d_grad_filter(dy, in[0], in[1], conv_options(y))};
}
// All three are linear in each of the two that they multiply.
Arrays grad_conv_grad_input(const Array& y, const Array& dy) {
  const Arrays& in = y.node()->inputs;
  return {conv2d(dy, in[1], conv_options(y)), conv2d_grad_filter(in[0], dy, in[1], conv_options(y)),
          Array()};
}
Arrays grad_conv_grad_filter(const Array& y, const Array& dy) {
  const Arrays& in = y.node()->inputs;
  return {conv2d(in[1], dy, conv_options(y)), conv2d_grad_input(in[0], dy, in[1], conv_options(y)),
          Array()};
}

// ---- pooling ----

Shape pooled(const Shape& x, const Attributes& attributes) {
  const Pair &size = pair_of(attributes, "window"), &strides = pair_of(attributes, "strides");
  Padding padding = padding_of(attributes);
  return Shape{x[0], positions(x[1], {size[0], strides[0]}, padding),
               positions(x[2], {size[1], strides[1]}, padding), x[3]};
}

OpTypes infer_pool(const OpInputs& in) {
  want_images(in);
  return {{DType::kFloat32, pooled(in.types[0].shape, in.attributes)}};
}
// The gradient of pooling needs the image: the maximum's to find which element it was, and the
// mean's for its size.
OpTypes infer_pool_grad(const OpInputs& in) {
  want_images(in);
  want_gradient_of(in.types[0].shape, pooled(in.types[1].shape, in.attributes));
  return {in.types[1]};
}

Pool2dOptions pool_options(const Array& y) {
  const Attributes& attributes = y.node()->attributes;
  const Pair &size = pair_of(attributes, "window"), &strides = pair_of(attributes, "strides");
  return {{size[0], size[1]}, {strides[0], strides[1]}, padding_of(attributes)};
}

Arrays grad_max_pool(const Array& y, const Array& dy) {
  return {max_pool2d_grad(dy, y.node()->inputs[0], pool_options(y))};
}
Arrays grad_avg_pool(const Array& y, const Array& dy) {
  return {avg_pool2d_grad(dy, y.node()->inputs[0], pool_options(y))};
}
// Averaging is linear, and the second derivative leads back to the pooling itself.
Arrays grad_avg_pool_grad(const Array& y, const Array& dy) {
  return {avg_pool2d(dy, pool_options(y)), Array()};
}
Arrays grad_max_pool_grad(const Array&, const Array&) {
  throw UnimplementedError("the second derivative of max_pool2d");
}

const OpDef kImageOps[] = {
    {"conv2d", 2, 2, "dilations padding strides", infer_conv, grad_conv},
    {"conv2d_grad_input", 3, 3, "dilations padding strides", infer_conv_grad_input,
     grad_conv_grad_input, OpFlags::kNone, shape_of(2)},
    {"conv2d_grad_filter", 3, 3, "dilations padding strides", infer_conv_grad_filter,
     grad_conv_grad_filter, OpFlags::kNone, shape_of(2)},
    {"max_pool2d", 1, 1, "padding strides window", infer_pool, grad_max_pool},
    {"avg_pool2d", 1, 1, "padding strides window", infer_pool, grad_avg_pool},
    {"max_pool2d_grad", 2, 2, "padding strides window", infer_pool_grad, grad_max_pool_grad},
    {"avg_pool2d_grad", 2, 2, "padding strides window", infer_pool_grad, grad_avg_pool_grad,
     OpFlags::kNone, shape_of(1)},
};

std::string padding_name(Padding padding) { return padding == Padding::kSame ? "SAME" : "VALID"; }
Pair numbers(const std::array<std::int64_t, 2>& pair) { return {pair.begin(), pair.end()}; }

Attributes attributes_of(const Conv2dOptions& options) {
  return {{"dilations", numbers(options.dilations)},
          {"padding", padding_name(options.padding)},
          {"strides", numbers(options.strides)}};
}
Attributes attributes_of(const Pool2dOptions& options) {
  return {{"padding", padding_name(options.padding)},
          {"strides", numbers(options.strides)},
          {"window", numbers(options.window)}};
}

}  // namespace

std::span<const OpDef> image_ops() { return kImageOps; }

Array conv2d(const Array& x, const Array& filter, const Conv2dOptions& options) {
  return record("conv2d", {x, filter}, attributes_of(options));
}
Array conv2d_grad_input(const Array& dy, const Array& filter, const Array& like,
                        const Conv2dOptions& options) {
  return record("conv2d_grad_input", {dy, filter, like}, attributes_of(options));
}
Array conv2d_grad_filter(const Array& dy, const Array& x, const Array& like,
                         const Conv2dOptions& options) {
  return record("conv2d_grad_filter", {dy, x, like}, attributes_of(options));
}
Array max_pool2d(const Array& x, const Pool2dOptions& options) {
  return record("max_pool2d", {x}, attributes_of(options));
}
Array avg_pool2d(const Array& x, const Pool2dOptions& options) {
  return record("avg_pool2d", {x}, attributes_of(options));
}
Array max_pool2d_grad(const Array& dy, const Array& x, const Pool2dOptions& options) {
  return record("max_pool2d_grad", {dy, x}, attributes_of(options));
}
Array avg_pool2d_grad(const Array& dy, const Array& like, const Pool2dOptions& options) {
  return record("avg_pool2d_grad", {dy, like}, attributes_of(options));
}

}  // namespace cairn
