// Convolution, forward, and the gradients of image and filter, as matrix products.
//
// For each position of the window, the elements under it are copied into one row, the position's
// patch; then
//   y          = patches of x  x  filter [rows * columns * in, out]
//   the filter's gradient = (patches of x)^T  x  dy
//   x's gradient          = patches of dy  x  the filter with in and out exchanged,
// where a patch of dy has what the window made of one element of x. (K. Chellapilla, S. Puri,
// P. Simard: High performance convolutional neural networks for document processing, 2006.)
// Patches are many times larger than the image, so they are made and used a part at a time.
#include "core/graph/ops/window.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/runtime/half.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"
#include "core/kernels/cuda/trees/products.h"

namespace cairn::cuda {
namespace {

using Pair = std::vector<std::int64_t>;

// Bytes of patches that are kept at a time: few enough to be read from the second-level cache.
constexpr std::int64_t kPatchBytes = std::int64_t{32} << 20;

// The window along one axis: element x lies under tap i of position y if
// x = y * stride + i * dilation - before. Either side, given a place of its own, says which element
// of the other lies there; -1: none.
struct Axis {
  std::int64_t x, y, taps, stride, dilation, before;
};
struct Forward {  // from a position to the elements under its window
  Axis axis;
  CAIRN_ANYWHERE std::int64_t places() const { return axis.y; }
  CAIRN_ANYWHERE std::int64_t elements() const { return axis.x; }
  CAIRN_DEVICE std::int64_t element(std::int64_t place, std::int64_t tap) const {
    const std::int64_t x = place * axis.stride + tap * axis.dilation - axis.before;
    return x >= 0 && x < axis.x ? x : -1;
  }
};
struct Backward {  // from an element to the positions whose windows it lies under
  Axis axis;
  CAIRN_ANYWHERE std::int64_t places() const { return axis.x; }
  CAIRN_ANYWHERE std::int64_t elements() const { return axis.y; }
  CAIRN_DEVICE std::int64_t element(std::int64_t place, std::int64_t tap) const {
    const std::int64_t from = place + axis.before - tap * axis.dilation;
    if (from < 0) return -1;
    const std::int64_t y = Divisor{axis.stride}.divide(from);
    return y * axis.stride == from && y < axis.y ? y : -1;
  }
};

// Images [batch, rows, columns, channels], a filter [rows, columns, in, out].
struct Problem {
  std::int64_t batch, in, out;
  Axis rows, columns;

  std::int64_t taps() const { return rows.taps * columns.taps; }
};

Problem problem_of(const Shape& x, const Shape& filter, const Shape& y,
                   const Attributes& attributes) {
  const Pair &strides = attributes.get<Pair>("strides"),
             &dilations = attributes.get<Pair>("dilations");
  const Padding padding =
      attributes.get<std::string>("padding") == "SAME" ? Padding::kSame : Padding::kValid;
  const auto axis = [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t before =
        slide(x[i + 1], {filter[i], strides[at], dilations[at]}, padding).before;
    return Axis{x[i + 1], y[i + 1], filter[i], strides[at], dilations[at], before};
  };
  return {x[0], filter[2], filter[3], axis(0), axis(1)};
}

// The patches of places [first, first + count) of all images, counted row by row. A patch has the
// channels of tap after tap, and zeros up to `width`.
template <typename As, typename Side>
void make_patches(Queue& queue, const Side& rows, const Side& columns, std::int64_t channels,
                  std::int64_t width, std::int64_t first, std::int64_t count, const float* from,
                  typename As::Stored* patches) {
  const std::int64_t row_taps = rows.axis.taps;
  for_each(queue, count * width, [=] CAIRN_KERNEL_BODY(std::int64_t at) {
    const std::int64_t n = Divisor{width}.divide(at), within = at - n * width;
    const std::int64_t tap = Divisor{channels}.divide(within), channel = within - tap * channels;
    const std::int64_t i = Divisor{columns.axis.taps}.divide(tap), j = tap - i * columns.axis.taps;
    const std::int64_t line = Divisor{columns.places()}.divide(first + n);
    const std::int64_t image = Divisor{rows.places()}.divide(line);
    const std::int64_t row = rows.element(line - image * rows.places(), i);
    const std::int64_t column = columns.element(first + n - line * columns.places(), j);
    const bool there = i < row_taps && row >= 0 && column >= 0;
    const std::int64_t pixel = (image * rows.elements() + row) * columns.elements() + column;
    patches[at] = As::write(there ? from[pixel * channels + channel] : 0.0f);
  });
}

// The patches of one side, part by part, and the products that read them.
template <typename Side>
class Patches {
 public:
  Patches(Queue& queue, const Problem& p, std::int64_t channels, const KernelTypes& types)
      : queue_(queue),
        rows_{p.rows},
        columns_{p.columns},
        channels_(channels),
        places_(p.batch * rows_.places() * columns_.places()),
        narrow_(rounds_to_bfloat16(types.products)) {
    // Products want rows that begin at multiples of 16 bytes.
    constexpr std::int64_t kAlignment = 8;
    width_ = (p.taps() * channels + kAlignment - 1) / kAlignment * kAlignment;
    const std::int64_t bytes = width_ * static_cast<std::int64_t>(dtype_bytes(dtype()));
    // Each part's slices of the other values then begin at multiples of 16 bytes.
    part_ = std::max(kPatchBytes / std::max<std::int64_t>(bytes, 1) / 8 * 8, std::int64_t{8});
    part_ = std::min(part_, places_);
    memory_ = queue.shared_scratch(static_cast<std::size_t>(part_ * bytes));
  }

  DType dtype() const { return narrow_ ? DType::kBfloat16 : DType::kFloat32; }
  std::int64_t width() const { return width_; }  // of a patch, with zeros at its end
  std::int64_t parts() const { return places_ == 0 ? 0 : (places_ + part_ - 1) / part_; }
  std::int64_t first(std::int64_t part) const { return part * part_; }
  std::int64_t count(std::int64_t part) const { return std::min(part_, places_ - first(part)); }

  const std::byte* make(std::int64_t part, const float* from) const {
    const auto made = [&](auto as, auto* to) {
      make_patches<decltype(as)>(queue_, rows_, columns_, channels_, width_, first(part),
                                 count(part), from, to);
    };
    if (narrow_)
      made(AsBfloat16{}, memory_->as<std::uint16_t>());
    else
      made(AsFloat32{}, memory_->as<float>());
    queue_.written(memory_->data(),
                   static_cast<std::size_t>(count(part) * width_) * dtype_bytes(dtype()));
    return memory_->data();
  }

 private:
  Queue& queue_;
  Side rows_, columns_;
  std::int64_t channels_, places_, width_, part_;
  bool narrow_;
  std::shared_ptr<Memory> memory_;
};

// The products of all parts; `of_part` gives the sizes of one. The last part may be smaller than
// the others, which are alike.
template <typename OfPart>
std::vector<Multiply> plan_products(Queue& queue, const KernelTypes& types, std::int64_t parts,
                                    std::array<DType, 2> factors, const OfPart& of_part) {
  const auto plan = [&](std::int64_t part) {
    ProductShape shape{of_part(part)};
    shape.arithmetic = types.products;
    shape.deterministic = types.deterministic;
    return plan_multiply(queue, shape, factors);
  };
  std::vector<Multiply> all;
  if (parts > 1) all.resize(static_cast<std::size_t>(parts - 1), plan(0));
  if (parts > 0) all.push_back(plan(parts - 1));
  return all;
}

// results [places, outputs] = patches x matrix [width, outputs]. `matrix`, given the filter, makes
// the matrix of it and says where it lies.
template <typename Side>
KernelRun multiply_patches(Queue& queue, const KernelTypes& types, const Patches<Side>& patches,
                           std::int64_t outputs,
                           std::function<const std::byte*(const std::byte*)> matrix) {
  auto products = plan_products(
      queue, types, patches.parts(), {patches.dtype(), DType::kFloat32}, [&](std::int64_t part) {
        return Gemm{patches.count(part), outputs, patches.width(), false, false};
      });
  return [patches, products = std::move(products), outputs,
          matrix = std::move(matrix)](const KernelCall& call) {
    const std::byte* const by = matrix(call.inputs[1]);
    for (std::int64_t part = 0; part < patches.parts(); ++part)
      products[static_cast<std::size_t>(part)](
          {patches.make(part, input_of<float>(call, 0)), by, nullptr,
           reinterpret_cast<std::byte*>(output_of<float>(call) + patches.first(part) * outputs)});
  };
}

KernelRun prepare_conv(Queue& queue, const KernelTypes& types) {
  const Problem p = problem_of(types.inputs[0].shape, types.inputs[1].shape, types.outputs[0].shape,
                               types.attributes);
  const Patches<Forward> patches(queue, p, p.in, types);
  const MatrixCopy copy{DType::kFloat32, DType::kFloat32, p.taps() * p.in,
                        p.out,           patches.width(), p.out};
  if (!copy.changes_size())
    return multiply_patches(queue, types, patches, p.out, [](const std::byte* f) { return f; });
  return multiply_patches(
      queue, types, patches, p.out,
      [&queue, copy, longer = queue.memory(copy.to_bytes())](const std::byte* filter) {
        copy_matrix(queue, copy, filter, longer->data());
        queue.written(longer->data(), copy.to_bytes());
        return static_cast<const std::byte*>(longer->data());
      });
}

KernelRun prepare_grad_input(Queue& queue, const KernelTypes& types) {
  const Problem p = problem_of(types.outputs[0].shape, types.inputs[1].shape, types.inputs[0].shape,
                               types.attributes);
  const Patches<Backward> patches(queue, p, p.out, types);
  const std::int64_t in = p.in, out = p.out, n = patches.width() * in, used = p.taps() * out;
  return multiply_patches(
      queue, types, patches, in,
      [&queue, exchanged = queue.memory(static_cast<std::size_t>(n) * sizeof(float)), in, out, n,
       used](const std::byte* filter) {
        const auto* const from = reinterpret_cast<const float*>(filter);
        auto* const to = exchanged->as<float>();
        for_each(queue, n, [=] CAIRN_KERNEL_BODY(std::int64_t at) {
          const std::int64_t row = Divisor{in}.divide(at), k = at - row * in;
          const std::int64_t tap = Divisor{out}.divide(row), c = row - tap * out;
          to[at] = row < used ? from[(tap * in + k) * out + c] : 0.0f;
        });
        queue.written(exchanged->data(), static_cast<std::size_t>(n) * sizeof(float));
        return static_cast<const std::byte*>(exchanged->data());
      });
}

KernelRun prepare_grad_filter(Queue& queue, const KernelTypes& types) {
  const Problem p = problem_of(types.inputs[1].shape, types.outputs[0].shape, types.inputs[0].shape,
                               types.attributes);
  const Patches<Forward> patches(queue, p, p.in, types);
  const std::int64_t n = p.taps() * p.in * p.out, parts = patches.parts();
  const auto sums_bytes = static_cast<std::size_t>(patches.width() * p.out) * sizeof(float);
  const bool at_once = parts == 1 && patches.width() == p.taps() * p.in;
  auto products = plan_products(
      queue, types, parts, {patches.dtype(), DType::kFloat32}, [&](std::int64_t part) {
        return Gemm{patches.width(), p.out, patches.count(part), true, false};
      });
  return [&queue, patches, products = std::move(products), out = p.out, n, parts, at_once,
          sums = at_once ? nullptr : queue.memory(sums_bytes)](const KernelCall& call) {
    const float *const dy = input_of<float>(call, 0), *const x = input_of<float>(call, 1);
    float* const made = output_of<float>(call);
    if (parts == 0)
      queue.driver().fill_zero(queue.stream(), call.outputs[0],
                               static_cast<std::size_t>(n) * sizeof(float));
    for (std::int64_t part = 0; part < parts; ++part) {
      std::byte* const to = at_once ? call.outputs[0] : sums->data();
      const std::byte* const of_part = patches.make(part, x);
      products[static_cast<std::size_t>(part)](
          {of_part, reinterpret_cast<const std::byte*>(dy + patches.first(part) * out), nullptr,
           to});
      if (at_once) return;
      const float* const sum = sums->as<float>();
      for_each(queue, n, [=] CAIRN_KERNEL_BODY(std::int64_t at) {
        made[at] = part == 0 ? sum[at] : made[at] + sum[at];
      });
    }
  };
}

constexpr Kernel kConvolutionKernels[] = {
    {"conv2d", prepare_conv},
    {"conv2d_grad_input", prepare_grad_input},
    {"conv2d_grad_filter", prepare_grad_filter},
};

}  // namespace

std::span<const Kernel> convolution_kernels() { return kConvolutionKernels; }

}  // namespace cairn::cuda
