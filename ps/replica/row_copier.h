// RowCopier: goes through the rows of a shard that differ from their initial values, a block at a
// time, while they go on changing.
//
// A block holds its rows as they are when it is taken. Who replays all changes that are made after
// a block was taken, and all blocks, each at its place among the changes, has the rows as they are
// at the end, whatever they were before: a change that comes before its row's block is overwritten
// by it, and one that comes after it follows from it.
//   Thread  the shard's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/rows/layout.h"
#include "ps/shard/shard.h"
#include "storage/row_block.h"

namespace cairn::ps {

class RowCopier {
 public:
  // The shard is open, and keeps its tables for as long as this is used. Tables that are made later
  // begin at their initial values, so that they need no copy.
  explicit RowCopier(const Shard& shard);

  struct Block {
    TableId table;
    std::string variable;  // its name
    storage::StoredRows rows;
  };
  // Rows of one table, about `bytes` at most and at least one; nothing at the end.
  std::optional<Block> next(std::size_t bytes);

 private:
  struct OfTable {
    TableId id;
    Table* table = nullptr;
    std::vector<RowRange> ranges;  // of a dense table; all places of a hashed one
  };
  static Block block_of(const OfTable& of, RowRange places);

  std::vector<OfTable> tables_;  // those that are not done, the next one last
  std::int64_t place_ = 0;       // the next one of a hashed table
};

}  // namespace cairn::ps
