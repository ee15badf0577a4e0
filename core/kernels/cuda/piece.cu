// Joining values along an axis and cutting them. A value is a table of runs of bytes: all axes
// after the one in question lie together. Both operations copy a column of that table, in words as
// wide as the runs allow.
#include <numeric>

#include "core/base/error.h"
#include "core/kernels/cuda/index.h"
#include "core/kernels/cuda/kernel_table.h"
#include "core/kernels/cuda/launch.h"

namespace cairn::cuda {
namespace {

struct alignas(16) Word16 {
  std::uint64_t half[2];
};

struct Runs {
  std::int64_t rows = 1, run = 1;  // run: in bytes
};

Runs runs_of(const TensorType& type, int axis) {
  Runs made;
  for (int i = 0; i < type.shape.rank(); ++i) (i < axis ? made.rows : made.run) *= type.shape[i];
  made.run *= static_cast<std::int64_t>(dtype_bytes(type.dtype));
  return made;
}

int axis_of(const KernelTypes& types) {
  return static_cast<int>(types.attributes.get<std::int64_t>("axis"));
}

std::int64_t step_bytes(const TensorType& type, int axis, std::int64_t count) {
  std::int64_t bytes = static_cast<std::int64_t>(dtype_bytes(type.dtype)) * count;
  for (int i = axis + 1; i < type.shape.rank(); ++i) bytes *= type.shape[i];
  return bytes;
}

// `rows` runs of `bytes` bytes, which are to_stride and from_stride apart.
struct Columns {
  std::int64_t rows, bytes, to_stride, from_stride;
};

template <typename Word>
void copy_words(Queue& queue, const Columns& c, std::byte* to, const std::byte* from) {
  constexpr std::int64_t kBytes = sizeof(Word);
  const Divisor words{c.bytes / kBytes};
  const std::int64_t to_stride = c.to_stride / kBytes, from_stride = c.from_stride / kBytes;
  Word* const target = reinterpret_cast<Word*>(to);
  const Word* const source = reinterpret_cast<const Word*>(from);
  for_each(queue, c.rows * words.by, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const std::int64_t row = words.divide(i), at = i - row * words.by;
    target[row * to_stride + at] = source[row * from_stride + at];
  });
}

void copy_columns(Queue& queue, const Columns& c, std::byte* to, const std::byte* from) {
  if (c.rows == 0 || c.bytes == 0) return;
  const auto common = static_cast<std::uint64_t>(
      std::gcd(std::gcd(c.bytes, c.rows > 1 ? std::gcd(c.to_stride, c.from_stride) : c.bytes),
               std::int64_t{16}));
  const std::uint64_t places =
      reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | common;
  switch (places & (~places + 1)) {  // the lowest bit: what divides them all
    case 16: return copy_words<Word16>(queue, c, to, from);
    case 8: return copy_words<std::uint64_t>(queue, c, to, from);
    case 4: return copy_words<std::uint32_t>(queue, c, to, from);
    case 2: return copy_words<std::uint16_t>(queue, c, to, from);
    default: return copy_words<std::uint8_t>(queue, c, to, from);
  }
}

// Up to kPartsMax parts in one launch.
constexpr int kPartsMax = 32;
struct Parts {
  const std::byte* from[kPartsMax];
  std::int64_t begin[kPartsMax + 1];  // in a run of the whole, in words; the last one is its length
  int count;
};

template <typename Word>
void join_words(Queue& queue, std::int64_t rows, std::int64_t whole, Parts parts, std::byte* to) {
  for (int i = 0; i <= parts.count; ++i) parts.begin[i] /= static_cast<std::int64_t>(sizeof(Word));
  const std::int64_t stride = whole / static_cast<std::int64_t>(sizeof(Word));
  const Divisor length{parts.begin[parts.count]};
  Word* const target = reinterpret_cast<Word*>(to);
  for_each(queue, rows * length.by, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
    const std::int64_t row = length.divide(i), at = i - row * length.by;
    int low = 0, high = parts.count;  // the part is in [low, high)
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (parts.begin[middle] <= at ? low : high) = middle;
    }
    const std::int64_t begin = parts.begin[low], width = parts.begin[low + 1] - begin;
    target[row * stride + at] =
        reinterpret_cast<const Word*>(parts.from[low])[row * width + at - begin];
  });
}

void join_parts(Queue& queue, std::int64_t rows, std::int64_t whole, const Parts& parts,
                std::byte* to) {
  if (rows == 0 || parts.begin[parts.count] == 0) return;
  std::uint64_t places = reinterpret_cast<std::uintptr_t>(to) | 16;
  if (rows > 1) places |= static_cast<std::uint64_t>(whole);
  for (int i = 0; i < parts.count; ++i)
    places |= reinterpret_cast<std::uintptr_t>(parts.from[i]) |
              static_cast<std::uint64_t>(parts.begin[i + 1]);
  switch (places & (~places + 1)) {  // the lowest bit: what divides them all
    case 16: return join_words<Word16>(queue, rows, whole, parts, to);
    case 8: return join_words<std::uint64_t>(queue, rows, whole, parts, to);
    case 4: return join_words<std::uint32_t>(queue, rows, whole, parts, to);
    case 2: return join_words<std::uint16_t>(queue, rows, whole, parts, to);
    default: return join_words<std::uint8_t>(queue, rows, whole, parts, to);
  }
}

KernelRun join(Queue& queue, const KernelTypes& types) {
  const int axis = axis_of(types);
  std::vector<Runs> runs;
  for (const auto& type : types.inputs) runs.push_back(runs_of(type, axis));
  const Runs whole = runs_of(types.outputs[0], axis);
  return [&queue, runs = std::move(runs), whole](const KernelCall& call) {
    std::byte* to = call.outputs[0];
    Parts parts{};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      parts.from[parts.count] = call.inputs[i];
      parts.begin[parts.count + 1] = parts.begin[parts.count] + runs[i].run;
      if (++parts.count < kPartsMax && i + 1 < runs.size()) continue;
      join_parts(queue, whole.rows, whole.run, parts, to);
      to += parts.begin[parts.count];
      parts = {};
    }
  };
}

KernelRun cut(Queue& queue, const TensorType& from, const TensorType& to, int axis,
              std::int64_t skip) {
  const Runs source = runs_of(from, axis), made = runs_of(to, axis);
  return [&queue, source, made, skip](const KernelCall& call) {
    copy_columns(queue, {made.rows, made.run, made.run, source.run}, call.outputs[0],
                 call.inputs[0] + skip);
  };
}

KernelRun prepare_slice(Queue& queue, const KernelTypes& types) {
  const int axis = axis_of(types);
  return cut(queue, types.inputs[0], types.outputs[0], axis,
             step_bytes(types.inputs[0], axis, types.attributes.get<std::int64_t>("begin")));
}

// The gradient of one input of a concat is the piece of dy that it became.
KernelRun prepare_concat_grad(Queue& queue, const KernelTypes& types) {
  const int axis = axis_of(types);
  const auto index = static_cast<std::size_t>(types.attributes.get<std::int64_t>("index"));
  std::int64_t before = 0;
  for (std::size_t i = 0; i < index; ++i) before += types.inputs[i + 1].shape[axis];
  return cut(queue, types.inputs[0], types.outputs[0], axis,
             step_bytes(types.inputs[0], axis, before));
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
  const std::int64_t skip = step_bytes(types.outputs[0], axis, begin);
  return [&queue, source, made, skip](const KernelCall& call) {
    queue.driver().fill_zero(queue.stream(), call.outputs[0],
                             static_cast<std::size_t>(made.rows * made.run));
    copy_columns(queue, {made.rows, source.run, made.run, source.run}, call.outputs[0] + skip,
                 call.inputs[0]);
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
