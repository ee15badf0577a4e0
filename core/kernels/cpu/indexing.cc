// Slices picked by id, their gradients, and ragged rows combined. Sums run in ascending order of
// occurrence.
#include <cmath>
#include <cstring>

#include "core/base/clones.h"
#include "core/base/error.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/picks.h"

namespace cairn {
namespace {

// All ids are checked before anything is copied: an id comes from data, and one that is out of
// range would read foreign memory. The message names the position, so that the example can be
// found.
template <typename Id>
void check_ids(const Id* ids, const Picks& p) {
  for (std::int64_t i = 0; i < p.n; ++i)
    if (ids[i] < 0 || ids[i] >= p.bound)
      throw InvalidArgumentError(
          str("id ", ids[i], " at position ", i, " is outside [0, ", p.bound, ")"));
}

CAIRN_INLINE void add_run(float* __restrict to, const float* __restrict from, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) to[j] += from[j];
}

template <typename Id>
KernelRun gather(Picks p, std::size_t width) {
  return [p, run = static_cast<std::size_t>(p.inner) * width](const KernelCall& call) {
    const Id* ids = input_of<Id>(call, 1);
    check_ids(ids, p);
    std::byte* to = call.outputs[0];
    for (std::int64_t o = 0; o < p.outer; ++o)
      for (std::int64_t i = 0; i < p.n; ++i, to += run)
        std::memcpy(to, call.inputs[0] + static_cast<std::size_t>(o * p.bound + ids[i]) * run, run);
  };
}

// The dense gradient of a gather: zeros of the whole size and the sums of equal ids.
template <typename Id>
KernelRun gather_grad(Picks p) {
  return [p](const KernelCall& call) {
    const Id* ids = input_of<Id>(call, 1);
    check_ids(ids, p);
    float* sums = output_of<float>(call);
    std::memset(sums, 0, static_cast<std::size_t>(p.outer * p.bound * p.inner) * sizeof(float));
    for (std::int64_t o = 0; o < p.outer; ++o)
      for (std::int64_t i = 0; i < p.n; ++i)
        add_run(sums + (o * p.bound + ids[i]) * p.inner,
                input_of<float>(call, 0) + (o * p.n + i) * p.inner, p.inner);
  };
}

bool narrow(const TensorType& ids) { return ids.dtype == DType::kInt32; }

KernelRun prepare_gather(const KernelTypes& types) {
  Picks p = picks_of(types.inputs[0].shape, types.inputs[1].shape,
                     static_cast<int>(types.attributes.get<std::int64_t>("axis")));
  if (types.inputs[0].dtype == DType::kString) throw UnimplementedError("gather of strings");
  std::size_t width = dtype_bytes(types.inputs[0].dtype);
  return narrow(types.inputs[1]) ? gather<std::int32_t>(p, width) : gather<std::int64_t>(p, width);
}

KernelRun prepare_gather_grad(const KernelTypes& types) {
  Picks p = picks_of(types.inputs[2].shape, types.inputs[1].shape,
                     static_cast<int>(types.attributes.get<std::int64_t>("axis")));
  return narrow(types.inputs[1]) ? gather_grad<std::int32_t>(p) : gather_grad<std::int64_t>(p);
}

// A negative id drops its row, as in the reference; one that is too large is an error.
template <typename T, typename Id>
KernelRun segment_sum(Picks p) {
  return [p](const KernelCall& call) {
    const Id* ids = input_of<Id>(call, 1);
    T* sums = output_of<T>(call);
    std::memset(sums, 0, static_cast<std::size_t>(p.bound * p.inner) * sizeof(T));
    for (std::int64_t i = 0; i < p.n; ++i) {
      if (ids[i] < 0) continue;
      if (ids[i] >= p.bound)
        throw InvalidArgumentError(
            str("segment ", ids[i], " at position ", i, " is not below ", p.bound));
      for (std::int64_t j = 0; j < p.inner; ++j)
        sums[ids[i] * p.inner + j] += input_of<T>(call, 0)[i * p.inner + j];
    }
  };
}

template <typename T>
KernelRun segment_sum_by(const TensorType& ids, Picks p) {
  return narrow(ids) ? segment_sum<T, std::int32_t>(p) : segment_sum<T, std::int64_t>(p);
}

KernelRun prepare_segment_sum(const KernelTypes& types) {
  Picks p = picks_of(types.outputs[0].shape, types.inputs[1].shape, 0);
  switch (types.inputs[0].dtype) {
    case DType::kInt32:
      return segment_sum_by<std::uint32_t>(types.inputs[1], p);  // unsigned: integers wrap around
    case DType::kInt64: return segment_sum_by<std::uint64_t>(types.inputs[1], p);
    default: return segment_sum_by<float>(types.inputs[1], p);
  }
}

template <typename Id>
KernelRun one_hot(std::int64_t n, std::int64_t depth) {
  return [n, depth](const KernelCall& call) {
    float* out = output_of<float>(call);
    std::memset(out, 0, static_cast<std::size_t>(n * depth) * sizeof(float));
    const Id* ids = input_of<Id>(call, 0);
    for (std::int64_t i = 0; i < n; ++i)
      if (ids[i] >= 0 && ids[i] < depth) out[i * depth + ids[i]] = 1;
  };
}

KernelRun prepare_one_hot(const KernelTypes& types) {
  std::int64_t n = types.inputs[0].shape.elements(),
               depth = types.attributes.get<std::int64_t>("depth");
  return narrow(types.inputs[0]) ? one_hot<std::int32_t>(n, depth)
                                 : one_hot<std::int64_t>(n, depth);
}

// The combiner's factor for an example of `count` rows: 0 sum, 1 mean, 2 divided by the square root
// of the count. An example without rows is a row of zeros under all three.
float weight(const Ragged& r, std::int64_t count) {
  if (count == 0 || r.combiner == 0) return 1;
  return r.combiner == 1 ? 1.0f / static_cast<float>(count)
                         : 1.0f / std::sqrt(static_cast<float>(count));
}

CAIRN_CLONES void combine(const Ragged& r, const std::int64_t* splits, const float* rows,
                          float* out) {
  std::memset(out, 0, static_cast<std::size_t>(r.examples * r.dim) * sizeof(float));
  for (std::int64_t e = 0; e < r.examples; ++e, out += r.dim) {
    for (std::int64_t i = splits[e]; i < splits[e + 1]; ++i) add_run(out, rows + i * r.dim, r.dim);
    float scale = weight(r, splits[e + 1] - splits[e]);
    if (scale != 1)
      for (std::int64_t j = 0; j < r.dim; ++j) out[j] *= scale;
  }
}

KernelRun prepare_combine(const KernelTypes& types) {
  const Shape& rows = types.inputs[0].shape;
  Ragged r{types.outputs[0].shape[0], rows[0], rows[1],
           types.attributes.get<std::int64_t>("combiner")};
  return [r](const KernelCall& call) {
    check_splits(input_of<std::int64_t>(call, 1), r.examples, r.rows);
    combine(r, input_of<std::int64_t>(call, 1), input_of<float>(call, 0), output_of<float>(call));
  };
}

KernelRun prepare_combine_grad(const KernelTypes& types) {
  const Shape& rows = types.outputs[0].shape;
  Ragged r{types.inputs[0].shape[0], rows[0], rows[1],
           types.attributes.get<std::int64_t>("combiner")};
  return [r](const KernelCall& call) {
    const std::int64_t* splits = input_of<std::int64_t>(call, 1);
    check_splits(splits, r.examples, r.rows);
    for (std::int64_t e = 0; e < r.examples; ++e) {
      const float* dy = input_of<float>(call, 0) + e * r.dim;
      float scale = weight(r, splits[e + 1] - splits[e]);
      for (std::int64_t i = splits[e]; i < splits[e + 1]; ++i)
        for (std::int64_t j = 0; j < r.dim; ++j)
          output_of<float>(call)[i * r.dim + j] = dy[j] * scale;
    }
  };
}

constexpr CpuKernel kIndexingKernels[] = {
    {"gather", prepare_gather},
    {"gather_grad", prepare_gather_grad},
    {"unsorted_segment_sum", prepare_segment_sum},
    {"one_hot", prepare_one_hot},
    {"combine_rows", prepare_combine},
    {"combine_rows_grad", prepare_combine_grad},
};

}  // namespace

std::span<const CpuKernel> indexing_kernels() { return kIndexingKernels; }

}  // namespace cairn
