// ColdStore: where a table has its rows that are not in memory. A row log on a disk (RowLog), or
// memory, for the simulation and for tests (MemoryColdStore).
//
//   What it says of rows, places, volatility and callbacks is said in row_log.h.
//   Thread  one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/row_log/cleaner.h"
#include "storage/row_log/record.h"
#include "storage/row_log/row_reads.h"

namespace cairn::storage {

// The rows that were in a store at one moment.
class ColdCut {
 public:
  virtual ~ColdCut() = default;
  virtual std::uint64_t rows() const = 0;
  // Reads the next `most` of them, in any order; no rows: that was all. One call at a time. `done`
  // may be called after this object has gone.
  virtual void next(std::size_t most, RowsDone done) = 0;
};

struct ColdUse {
  std::uint64_t rows = 0;          // that are live
  std::uint64_t disk_bytes = 0;    // of all files
  std::uint64_t memory_bytes = 0;  // for what is not written yet, and of the books
};

class ColdStore {
 public:
  virtual ~ColdStore() = default;
  // Rows that append() takes now.
  virtual std::size_t room() const = 0;
  //   Errors  Unavailable: ask again later. ResourceExhausted: the disk is full. Nothing was added.
  virtual void append(std::span<const std::uint64_t> keys, std::span<const std::byte> rows,
                      std::span<Place> places) = 0;
  virtual void release(std::span<const Place> places) = 0;
  //   Errors  DataLoss, to `done`: a record is damaged; names file and offset.
  virtual void read(std::span<const Place> places, RowsDone done) = 0;
  virtual std::unique_ptr<ColdCut> freeze() = 0;
  // A cut of the rows at these places alone, which are live and ascend.
  virtual std::unique_ptr<ColdCut> freeze(std::vector<Place> places) = 0;
  // The next `most` places that are live, from `first` on, ascending; none: that was all.
  virtual std::vector<Place> live_places(Place first, std::size_t most) const = 0;
  virtual ColdUse use() const = 0;
};

// Makes the store of a table: rows of so many bytes; `name` is of no other table of the process.
using MakeColdStore = std::function<std::unique_ptr<ColdStore>(const std::string& name,
                                                               std::size_t row_bytes, Moved moved)>;

}  // namespace cairn::storage
