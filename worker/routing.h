// Routing: which shard serves which rows. Cuts one wave of reads or updates into requests, without
// any network.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/rows/layout.h"
#include "core/rows/variable_store.h"

namespace cairn::worker {

// of float32 rows on the wire; other dtypes travel raw
enum class Encoding : std::uint8_t { kRaw, kBfloat16 };

// Consecutive rows of one read or update that lie in one part.
struct Segment {
  std::uint32_t item = 0;  // the place of the read or update in its wave
  std::uint32_t part = 0;  // the place of the part in its variable
  bool whole = false;      // all rows of the part, in order: no ids travel
  std::int64_t first = 0;  // the first row in the item's value
  std::int64_t rows = 0;
  std::int64_t begin = 0;             // the part's first row in the variable
  const std::int64_t* ids = nullptr;  // row numbers of the variable; null: first, first + 1, ...
};

// What one message asks of one shard.
struct ShardRequest {
  ShardId shard = 0;
  std::vector<Segment> segments;
  std::size_t value_bytes = 0;  // as encoded
  std::size_t ids = 0;
  // of the updates that this shard gets; 0: with all that is not in slices
  std::uint32_t slice = 0;
};

class Routing {
 public:
  // Values of a request stay below `piece_bytes_max`, except where a single row is larger.
  explicit Routing(std::shared_ptr<const Layout> layout, Encoding encoding = Encoding::kRaw,
                   std::size_t piece_bytes_max = std::size_t{4} << 20);

  // Requests of one shard stand together; together they hold every row once. Within a shard
  // segments keep the order of the wave.
  //   Errors  NotFound: no such variable in the layout. InvalidArgument: ids of another dtype or
  //           outside the variable, naming it.
  std::vector<ShardRequest> reads(std::span<const Read> wave) const;
  // As reads(); in addition a table rule reaches every shard that holds a part of its variable,
  // with an empty segment if need be. A part that is updated as a whole, too large for one request
  // and by a rule that takes each row for itself, is cut in slices: the same rows in the same
  // slices whatever else is in the wave, and however it is encoded, so that a closure that runs
  // again finds what is left to do. InvalidArgument: a value whose type is not that of the rows
  // updated.
  std::vector<ShardRequest> updates(std::span<const Update> wave) const;

  const Layout& layout() const { return *layout_; }
  const VariableLayout& variable(VariableId id) const;
  const ShardServer& server(ShardId shard) const;
  Encoding encoding() const { return encoding_; }
  std::size_t piece_bytes_max() const { return piece_bytes_max_; }
  bool encoded(DType dtype) const {
    return encoding_ == Encoding::kBfloat16 && dtype == DType::kFloat32;
  }
  std::size_t wire_row_bytes(const VariableSpec& spec) const;

 private:
  // 0: it is not cut so
  std::int64_t rows_a_slice(std::span<const Update> wave, const Update& update) const;

  std::shared_ptr<const Layout> layout_;
  Encoding encoding_;
  std::size_t piece_bytes_max_;
};

// The shape of the value of a read or update of `ids` (undefined: of all rows).
Shape value_shape(const VariableSpec& spec, const Tensor& ids);

}  // namespace cairn::worker
