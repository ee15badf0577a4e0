// Segment: consecutive rows of one read or update that lie in one part, with all that their way
// over the wire has to know. A wave is cut into segments once (routing.h); the code that packs,
// sends or unpacks them derives nothing again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/rows/layout.h"
#include "core/rows/row_encoding.h"
#include "core/rows/variable_store.h"
#include "worker/rows/blob_memory.h"

namespace cairn::worker {

struct Segment {
  std::uint32_t item = 0;  // the index of the read or update in its wave
  VariableId variable = 0;
  std::uint32_t part = 0;              // the index of the part in its variable
  bool whole = false;                  // all rows of the part, in order: no ids travel
  bool encoded = false;                // the rows travel as bfloat16
  std::int64_t first = 0;              // the first row, counted in the item's value
  std::int64_t rows = 0;               // may be 0: a table rule reaches parts without rows
  std::int64_t begin = 0;              // the part's first row in the variable
  const std::int64_t* ids = nullptr;   // row numbers of the variable; null: first, first + 1, ...
  std::size_t row_bytes = 0;           // of one row in the item's value
  std::size_t wire_row_bytes = 0;      // of one row on the wire
  const VariableSpec* spec = nullptr;  // the layout keeps it

  // Where the rows begin in the item's value, and how many bytes they have there.
  std::size_t offset() const { return static_cast<std::size_t>(first) * row_bytes; }
  std::size_t bytes() const { return static_cast<std::size_t>(rows) * row_bytes; }
  std::size_t wire_bytes() const { return static_cast<std::size_t>(rows) * wire_row_bytes; }
  std::size_t elements() const { return static_cast<std::size_t>(rows * spec->dim()); }
  // How many of a call's ids belong to it.
  std::uint32_t listed() const { return whole ? 0 : static_cast<std::uint32_t>(rows); }
};

// One message's request to one shard.
struct ShardRequest {
  ShardId shard = 0;
  std::vector<Segment> segments;
  std::size_t value_bytes = 0;  // as they travel
  std::size_t ids = 0;
  // Which slice of the updates that this shard gets; 0: everything that is not in slices.
  std::uint32_t slice = 0;
};

// The ids of a call: int64, local to the part, segment after segment; no data if there are none.
Bytes local_ids(const ShardRequest& request, BlobMemory& memory);

// The shape of the value of a read or update of `ids` (undefined: of all rows).
Shape value_shape(const VariableSpec& spec, const Tensor& ids);

}  // namespace cairn::worker
