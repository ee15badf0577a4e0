// Joining values along an axis and cutting them: copies of runs of bytes. All axes after the one in
// question lie together, so a value is a table of runs, and both operations copy a column of that
// table. DLRM joins and cuts 27 vectors per example: 1.9 ms of a step of 2,048 (bench/notebook.md).
#include <cstring>
#include <memory>
#include <string>

#include "core/kernels/cpu/kernel_table.h"

namespace cairn {
namespace {

// A value as `rows` runs of `run` bytes: all axes before `axis`, and the rest.
struct Runs {
  std::size_t rows = 1, run = 1;
};

Runs runs_of(const TensorType& type, int axis) {
  Runs made;
  for (int i = 0; i < type.shape.rank(); ++i)
    (i < axis ? made.rows : made.run) *= static_cast<std::size_t>(type.shape[i]);
  made.run *= dtype_bytes(type.dtype);
  return made;
}

int axis_of(const KernelTypes& types) {
  return static_cast<int>(types.attributes.get<std::int64_t>("axis"));
}

// Bytes of `count` steps along the axis in each run.
std::size_t step_bytes(const TensorType& type, int axis, std::int64_t count) {
  std::size_t bytes = dtype_bytes(type.dtype) * static_cast<std::size_t>(count);
  for (int i = axis + 1; i < type.shape.rank(); ++i)
    bytes *= static_cast<std::size_t>(type.shape[i]);
  return bytes;
}

template <std::size_t kBytes>
void copy_runs_of(std::byte* to, std::size_t to_stride, const std::byte* from,
                  std::size_t from_stride, std::size_t rows) {
  for (std::size_t r = 0; r < rows; ++r)
    std::memcpy(to + r * to_stride, from + r * from_stride, kBytes);
}

void copy_runs(std::byte* to, std::size_t to_stride, const std::byte* from, std::size_t from_stride,
               std::size_t bytes, std::size_t rows) {
  switch (bytes) {
    // A column of ids, and the commonest embeddings: a copy of a size that the compiler knows is a
    // few moves instead of a call.
    case 4: return copy_runs_of<4>(to, to_stride, from, from_stride, rows);
    case 8: return copy_runs_of<8>(to, to_stride, from, from_stride, rows);
    case 32: return copy_runs_of<32>(to, to_stride, from, from_stride, rows);
    case 64: return copy_runs_of<64>(to, to_stride, from, from_stride, rows);
    default:
      for (std::size_t r = 0; r < rows; ++r)
        std::memcpy(to + r * to_stride, from + r * from_stride, bytes);
  }
}

// std::string objects cannot be copied as bytes. The result is a vector that the kernel keeps
// between runs.
KernelRun concat_strings(const KernelTypes& types, int axis) {
  std::vector<Runs> parts;
  // counted in strings
  for (const auto& type : types.inputs) parts.push_back(runs_of({DType::kUint8, type.shape}, axis));
  auto all = std::make_shared<std::vector<std::string>>();
  return [parts = std::move(parts), all](const KernelCall& call) {
    all->clear();
    for (std::size_t r = 0; r < parts[0].rows; ++r)
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string* from =
            input_of<std::string>(call, static_cast<int>(i)) + r * parts[i].run;
        all->insert(all->end(), from, from + parts[i].run);
      }
    call.outputs[0] = reinterpret_cast<std::byte*>(all->data());
  };
}

KernelRun join(const KernelTypes& types, int axis) {
  if (types.outputs[0].dtype == DType::kString) return concat_strings(types, axis);
  std::vector<Runs> parts;
  for (const auto& type : types.inputs) parts.push_back(runs_of(type, axis));
  Runs whole = runs_of(types.outputs[0], axis);
  return [parts = std::move(parts), whole](const KernelCall& call) {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      copy_runs(call.outputs[0] + offset, whole.run, call.inputs[i], parts[i].run, parts[i].run,
                whole.rows);
      offset += parts[i].run;
    }
  };
}

KernelRun prepare_concat(const KernelTypes& types) { return join(types, axis_of(types)); }
KernelRun prepare_stack(const KernelTypes& types) { return join(types, axis_of(types)); }

// Copies the piece of the input that begins `skip` bytes into each run.
KernelRun cut(const TensorType& from, const TensorType& to, int axis, std::size_t skip) {
  Runs source = runs_of(from, axis), made = runs_of(to, axis);
  return [source, made, skip](const KernelCall& call) {
    copy_runs(call.outputs[0], made.run, call.inputs[0] + skip, source.run, made.run, made.rows);
  };
}

KernelRun prepare_slice(const KernelTypes& types) {
  int axis = axis_of(types);
  return cut(types.inputs[0], types.outputs[0], axis,
             step_bytes(types.inputs[0], axis, types.attributes.get<std::int64_t>("begin")));
}

// The gradient of one input of a concat is the piece of dy that it became. The inputs after dy are
// there for their sizes only.
KernelRun prepare_concat_grad(const KernelTypes& types) {
  int axis = axis_of(types);
  auto index = static_cast<std::size_t>(types.attributes.get<std::int64_t>("index"));
  std::int64_t before = 0;
  for (std::size_t i = 0; i < index; ++i) before += types.inputs[i + 1].shape[axis];
  return cut(types.inputs[0], types.outputs[0], axis, step_bytes(types.inputs[0], axis, before));
}

// Zeros, with dy at the place that the slice came from.
KernelRun prepare_slice_grad(const KernelTypes& types) {
  int axis = axis_of(types);
  std::int64_t begin = types.attributes.get<std::int64_t>("begin");
  const Shape &dy = types.inputs[0].shape, &whole = types.outputs[0].shape;
  if (begin + dy[axis] > whole[axis])
    throw InvalidArgumentError(str("a slice from ", begin, " of size ", dy[axis], " leaves axis ",
                                   axis, " of size ", whole[axis]));
  Runs source = runs_of(types.inputs[0], axis), made = runs_of(types.outputs[0], axis);
  std::size_t skip = step_bytes(types.outputs[0], axis, begin);
  return [source, made, skip](const KernelCall& call) {
    std::memset(call.outputs[0], 0, made.rows * made.run);
    copy_runs(call.outputs[0] + skip, made.run, call.inputs[0], source.run, source.run, made.rows);
  };
}

constexpr CpuKernel kPieceKernels[] = {
    {"concat", prepare_concat},         {"stack", prepare_stack},
    {"slice", prepare_slice},           {"concat_grad", prepare_concat_grad},
    {"slice_grad", prepare_slice_grad},
};

}  // namespace

std::span<const CpuKernel> piece_kernels() { return kPieceKernels; }

}  // namespace cairn
