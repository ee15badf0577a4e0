// RowPool: memory for rows of one table that the versions of a model have in common.
//
// A version's table is a list of places in a pool, one for each row. A version that is loaded
// beside another takes a new place only for a row that differs, so that a swap costs the memory of
// the changed rows and of the list (4 bytes a row). A place that a later version has replaced is
// free again once every version that may read it has ended; Generation sees to that.
//   Thread  take() and data() of new places: the thread that loads a version, one at a time.
//           Reading a place that has been written: any. give(): any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/memory/arena.h"

namespace cairn::serving {

class RowPool {
 public:
  // Room for `places_max` rows; memory is used by those that are taken alone.
  //   Errors  ResourceExhausted: the address space does not suffice.
  RowPool(std::size_t row_bytes, std::size_t places_max);

  // A place to write a row to.
  //   Errors  ResourceExhausted: all are taken.
  std::uint32_t take();
  // Call this once the first version has all of its rows. Later versions add only a few, while
  // requests are being answered, so memory for them is taken in small pages.
  void settle();
  void give(const std::vector<std::uint32_t>& places);

  std::byte* data(std::uint32_t place) const { return rows_.data() + place * row_bytes_; }
  const std::byte* base() const { return rows_.data(); }
  std::size_t row_bytes() const { return row_bytes_; }

 private:
  const std::size_t row_bytes_, places_max_;
  Arena rows_;
  std::mutex mutex_;  // guards the two below
  std::vector<std::uint32_t> free_;
  std::size_t used_ = 0;
};

// One version's hold on a pool. A version keeps its own generation, and a generation keeps the one
// after it: so it ends when its version and all earlier ones have ended, and only then no reader of
// the places is left that the next version has replaced.
class Generation {
 public:
  explicit Generation(std::shared_ptr<RowPool> pool) : pool_(std::move(pool)) {}
  ~Generation() { pool_->give(replaced_); }
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  const std::shared_ptr<RowPool>& pool() const { return pool_; }
  // Whether a version after this one shares its rows already.
  bool succeeded() const;
  // `next` has other places instead of `replaced`, once. False: another version came first, and
  // nothing has changed.
  bool succeed(std::shared_ptr<Generation> next, std::vector<std::uint32_t> replaced);

 private:
  std::shared_ptr<RowPool> pool_;
  mutable std::mutex mutex_;  // guards the two below
  std::shared_ptr<Generation> next_;
  std::vector<std::uint32_t> replaced_;
};

}  // namespace cairn::serving
