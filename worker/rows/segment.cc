#include "worker/rows/segment.h"

#include <algorithm>
#include <numeric>

namespace cairn::worker {

// A shard numbers the rows of each part from 0, so ids are shifted by the part's first row.
Bytes local_ids(const ShardRequest& request, BlobMemory& memory) {
  if (request.ids == 0) return {};
  Bytes bytes = memory.take(request.ids * sizeof(std::int64_t));
  auto* out = reinterpret_cast<std::int64_t*>(bytes.data);
  for (const Segment& segment : request.segments) {
    if (segment.whole) continue;
    if (segment.ids != nullptr)
      std::transform(segment.ids, segment.ids + segment.rows, out,
                     [begin = segment.begin](std::int64_t id) { return id - begin; });
    else
      // A dense part that was cut: `first` counts rows of the value, which is the whole variable.
      std::iota(out, out + segment.rows, segment.first - segment.begin);
    out += segment.rows;
  }
  return bytes;
}

// A scalar variable is one row of one element, so rows of it make a vector.
Shape value_shape(const VariableSpec& spec, const Tensor& ids) {
  if (!ids.defined()) return spec.shape;
  const std::int64_t rows = ids.shape().elements();
  return spec.shape.rank() == 0 ? Shape{rows} : spec.shape.with_dim(0, rows);
}

}  // namespace cairn::worker
