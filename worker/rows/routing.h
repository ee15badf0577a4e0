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
#include "worker/rows/segment.h"

namespace cairn::worker {

class Routing {
 public:
  // Values of a request stay below `piece_bytes_max`, except where a single row is larger.
  explicit Routing(std::shared_ptr<const Layout> layout, RowEncoding encoding = RowEncoding::kRaw,
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
  const ShardLayout& shard(ShardId shard) const;
  RowEncoding encoding() const { return encoding_; }
  std::size_t piece_bytes_max() const { return piece_bytes_max_; }
  bool encoded(DType dtype) const {
    return encoding_ == RowEncoding::kBfloat16 && dtype == DType::kFloat32;
  }

 private:
  // The segment of all rows of a variable, from which each part takes its own.
  Segment rows_of(std::uint32_t item, VariableId id) const;
  // Rows per slice of this update; 0: it is not cut in slices.
  std::int64_t rows_per_slice(std::span<const Update> wave, const Update& update) const;

  std::shared_ptr<const Layout> layout_;
  RowEncoding encoding_;
  std::size_t piece_bytes_max_;
};

}  // namespace cairn::worker
