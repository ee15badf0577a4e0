// Joining values along an axis and cutting them. A value is a table of runs of elements: all axes
// from the one in question on lie together. Both operations copy columns of such tables, in words
// as wide as the runs allow, or element by element where float32 becomes bfloat16 or the reverse.
#include "core/base/error.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/runtime/half.h"
#include "core/kernels/cuda/runtime/index.h"
#include "core/kernels/cuda/runtime/launch.h"
#include "core/kernels/cuda/runtime/words.h"

namespace cairn::cuda {
namespace {

struct Runs {
  std::int64_t rows = 1, run = 1;  // run: in elements
};

Runs runs_of(const TensorType& type, int axis) {
  Runs made;
  for (int i = 0; i < type.shape.rank(); ++i) (i < axis ? made.rows : made.run) *= type.shape[i];
  return made;
}

int axis_of(const KernelTypes& types) {
  return static_cast<int>(types.attributes.get<std::int64_t>("axis"));
}

// The elements of `count` steps along the axis.
std::int64_t step_elements(const TensorType& type, int axis, std::int64_t count) {
  for (int i = axis + 1; i < type.shape.rank(); ++i) count *= type.shape[i];
  return count;
}

// Columns of several tables that become columns of one, in one launch. Everything is counted in
// elements, or for a launch in words.
constexpr int kPartsMax = 32;
struct Parts {
  const std::byte* from[kPartsMax];
  std::int64_t stride[kPartsMax];     // of a part's rows
  std::int64_t begin[kPartsMax + 1];  // of what is copied of a row; the last one is all of it
  std::int64_t place[kPartsMax];      // in a row that is written
  bool narrow[kPartsMax];             // lies as bfloat16, and not as float32; for conversions
  int count;

  void add(const std::byte* at, std::int64_t row, std::int64_t width, std::int64_t to, DType type) {
    from[count] = at;
    stride[count] = row;
    begin[count + 1] = begin[count] + width;
    place[count] = to;
    narrow[count] = type == DType::kBfloat16;
    ++count;
  }
};

// How one word, or one element, comes to where it is written.
template <typename Word>
struct Copied {
  using Stored = Word;
  CAIRN_DEVICE static Word read(const std::byte* from, std::int64_t at, bool) {
    return reinterpret_cast<const Word*>(from)[at];
  }
};
template <typename As>
struct Converted {
  using Stored = typename As::Stored;
  CAIRN_DEVICE static Stored read(const std::byte* from, std::int64_t at, bool narrow) {
    return As::write(narrow
                         ? AsBfloat16::read(reinterpret_cast<const AsBfloat16::Stored*>(from)[at])
                         : AsFloat32::read(reinterpret_cast<const AsFloat32::Stored*>(from)[at]));
  }
};

template <typename Way>
void copy_all(Queue& queue, std::int64_t rows, std::int64_t stride, const Parts& parts,
              std::byte* to) {
  auto* const target = reinterpret_cast<typename Way::Stored*>(to);
  const Divisor length{parts.begin[parts.count]};
  for_each(queue, rows * length.by, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const std::int64_t row = length.divide(i), at = i - row * length.by;
    int low = 0, high = parts.count;  // the part is in [low, high)
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (parts.begin[middle] <= at ? low : high) = middle;
    }
    const std::int64_t j = at - parts.begin[low];
    target[row * stride + parts.place[low] + j] =
        Way::read(parts.from[low], row * parts.stride[low] + j, parts.narrow[low]);
  });
}

// Elements of one dtype, of `bytes` bytes.
void copy_words(Queue& queue, std::int64_t rows, std::int64_t stride, Parts parts, std::byte* to,
                std::int64_t bytes) {
  const std::int64_t several = rows > 1 ? 1 : 0;  // strides between them are used
  auto places =
      reinterpret_cast<std::uintptr_t>(to) | static_cast<std::uint64_t>(several * stride * bytes);
  for (int i = 0; i < parts.count; ++i)
    places |= reinterpret_cast<std::uintptr_t>(parts.from[i]) |
              static_cast<std::uint64_t>(
                  (parts.begin[i + 1] | parts.place[i] | several * parts.stride[i]) * bytes);
  const std::int64_t word = widest_word(places), elements = word / bytes;
  for (int i = 0; i < parts.count; ++i) {
    parts.begin[i + 1] /= elements;
    parts.place[i] /= elements;
    parts.stride[i] /= elements;
  }
  with_word(word, [&](auto one) {
    copy_all<Copied<decltype(one)>>(queue, rows, stride / elements, parts, to);
  });
}

// `to` has rows of `stride` elements of this dtype.
struct Whole {
  std::int64_t rows, stride;
  DType type;
};

void copy_parts(Queue& queue, const Whole& whole, const Parts& parts, std::byte* to,
                bool converts) {
  if (whole.rows == 0 || parts.begin[parts.count] == 0) return;
  if (!converts)
    copy_words(queue, whole.rows, whole.stride, parts, to,
               static_cast<std::int64_t>(dtype_bytes(whole.type)));
  else if (whole.type == DType::kBfloat16)
    copy_all<Converted<AsBfloat16>>(queue, whole.rows, whole.stride, parts, to);
  else
    copy_all<Converted<AsFloat32>>(queue, whole.rows, whole.stride, parts, to);
}

KernelRun join(Queue& queue, const KernelTypes& types) {
  struct Part {
    std::int64_t run, place;
    DType type;
  };
  const int axis = axis_of(types);
  const Runs made = runs_of(types.outputs[0], axis);
  const Whole whole{made.rows, made.run, types.outputs[0].dtype};
  std::vector<Part> all;
  std::int64_t place = 0;
  bool converts = false;
  for (const auto& type : types.inputs) {
    all.push_back({runs_of(type, axis).run, place, type.dtype});
    place += all.back().run;
    converts = converts || type.dtype != whole.type;
  }
  return [&queue, all = std::move(all), whole, converts](const KernelCall& call) {
    Parts parts{};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Part& part = all[i];
      const std::byte* const place =
          call.outputs[0] + static_cast<std::size_t>(part.place) * dtype_bytes(whole.type);
      if (call.inputs[i] != place)  // or else it stands there already
        parts.add(call.inputs[i], part.run, part.run, part.place, part.type);
      if (parts.count < kPartsMax && i + 1 < all.size()) continue;
      copy_parts(queue, whole, parts, call.outputs[0], converts);
      parts = {};
    }
  };
}

KernelRun cut(Queue& queue, const TensorType& from, const TensorType& to, int axis,
              std::int64_t skip) {
  const Runs source = runs_of(from, axis), made = runs_of(to, axis);
  const std::size_t skipped = static_cast<std::size_t>(skip) * dtype_bytes(from.dtype);
  return [&queue, source, made, skipped, from = from.dtype, to = to.dtype](const KernelCall& call) {
    Parts parts{};
    parts.add(call.inputs[0] + skipped, source.run, made.run, 0, from);
    copy_parts(queue, {made.rows, made.run, to}, parts, call.outputs[0], from != to);
  };
}

KernelRun prepare_slice(Queue& queue, const KernelTypes& types) {
  const int axis = axis_of(types);
  return cut(queue, types.inputs[0], types.outputs[0], axis,
             step_elements(types.inputs[0], axis, types.attributes.get<std::int64_t>("begin")));
}

// The gradient of one input of a concat is the piece of dy that it became.
KernelRun prepare_concat_grad(Queue& queue, const KernelTypes& types) {
  const int axis = axis_of(types);
  const auto index = static_cast<std::size_t>(types.attributes.get<std::int64_t>("index"));
  std::int64_t before = 0;
  for (std::size_t i = 0; i < index; ++i) before += types.inputs[i + 1].shape[axis];
  return cut(queue, types.inputs[0], types.outputs[0], axis,
             step_elements(types.inputs[0], axis, before));
}

// Zeros, with dy at the place that the slice came from.
KernelRun prepare_slice_grad(Queue& queue, const KernelTypes& types) {
  const int axis = axis_of(types);
  const std::int64_t begin = types.attributes.get<std::int64_t>("begin");
  const Shape &dy = types.inputs[0].shape, &whole = types.outputs[0].shape;
  if (begin + dy[axis] > whole[axis])
    throw InvalidArgumentError(str("a slice from ", begin, " of size ", dy[axis], " leaves axis ",
                                   axis, " of size ", whole[axis]));
  const Runs source = runs_of(types.inputs[0], axis), made = runs_of(types.outputs[0], axis);
  const std::int64_t skip = step_elements(types.outputs[0], axis, begin);
  return [&queue, source, made, skip, type = types.outputs[0].dtype](const KernelCall& call) {
    queue.driver().fill_zero(queue.stream(), call.outputs[0],
                             static_cast<std::size_t>(made.rows * made.run) * dtype_bytes(type));
    Parts parts{};
    parts.add(call.inputs[0], source.run, source.run, skip, type);
    copy_parts(queue, {made.rows, made.run, type}, parts, call.outputs[0], false);
  };
}

constexpr Kernel kPieceKernels[] = {
    {"concat", join},
    {"stack", join},
    {"slice", prepare_slice},
    {"concat_grad", prepare_concat_grad},
    {"slice_grad", prepare_slice_grad},
};

}  // namespace

std::span<const Kernel> piece_kernels() { return kPieceKernels; }

}  // namespace cairn::cuda
