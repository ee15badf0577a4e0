// Departures: which rows have left a table's memory since a freeze, for good or for the disk: what
// the next delta has to say of them, which the places of the table do not show any more.
//
//   Snapshot tracks the rows that changed. Call freeze() here whenever it is called there, with the
//   same arguments. A row that has come back since is in memory, where the caller finds it.
//   Memory  8 bytes for each time that a row left, of no more than `most`; beyond that a delta has
//           to hold the whole table.
//   Thread  the table's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ps/snapshot/snapshot.h"

namespace cairn::ps {

class Departures {
 public:
  enum class To : std::uint8_t { kNowhere, kDisk };
  static constexpr std::size_t kMost = std::size_t{1} << 23;

  explicit Departures(std::size_t most = kMost) : most_(most) {}

  // Rows have left, that were there until now. For the disk only such need be named as have changed
  // since the freeze.
  void add(std::span<const std::int64_t> rows, To to);
  // These have left for the disk as the last delta held them: if that comes to nothing, the next
  // one is to have them.
  void add_of_last_delta(std::span<const std::int64_t> rows);
  // Not all that left is known: a freeze of these has to be of all rows instead.
  bool lost(Snapshot::Rows rows) const {
    return lost_ || (rows == Snapshot::Rows::kChangedBefore && lost_before_);
  }
  // `is_delta`: Snapshot::freeze() is going to freeze a delta. Then gone() and on_disk() hold the
  // rows that left for good, and for the disk, by what became of each last.
  void freeze(bool is_delta, Snapshot::Rows rows, Snapshot::Tracking tracking);
  // Ascending, each once. Rows that have come back are to be taken out.
  std::vector<std::int64_t>& gone() { return gone_; }
  std::vector<std::int64_t>& on_disk() { return on_disk_; }  // which may be taken
  // The rows that are gone, for the checkpoint's writer, which gets them once. They stay: its
  // checkpoint may come to nothing, and the next delta is to have them then.
  std::vector<std::int64_t> take_gone() {
    return std::exchange(taken_, true) ? std::vector<std::int64_t>() : gone_;
  }
  void forget() { *this = Departures(most_); }
  std::size_t bytes() const;

 private:
  // In the order in which the rows left; 2 x row, and 1 more for the disk.
  using Log = std::vector<std::uint64_t>;
  static void keep_last(Log& log);
  bool append(std::span<const std::int64_t> rows, To to, Log& log) const;

  std::size_t most_;
  bool tracks_ = false, lost_ = false, lost_before_ = false, taken_ = false;
  Log since_, frozen_;  // the latter of the last delta
  std::vector<std::int64_t> gone_, on_disk_;
};

}  // namespace cairn::ps
