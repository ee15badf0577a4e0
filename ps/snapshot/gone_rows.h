// GoneRows: which rows of a table have gone for good since a freeze, which a delta has to say: what
// its base holds of them does not count.
//
//   It tracks them as a Snapshot tracks rows that change, with the same words.
//   Memory  8 bytes a row, of no more than `most`; beyond that a delta has to hold the whole table.
//   Thread  the table's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ps/snapshot/snapshot.h"

namespace cairn::ps {

class GoneRows {
 public:
  explicit GoneRows(std::size_t most = std::size_t{1} << 22) : most_(most) {}

  void add(std::int64_t row) {
    if (!tracks_ || lost_) return;
    lost_ = since_.size() >= most_;
    if (!lost_) since_.push_back(row);
  }
  // Not all that went is known: the next freeze has to be of all rows.
  bool lost() const { return lost_; }
  // Beside Snapshot::freeze(), `is_delta` saying what came of that. Rows that have come again since
  // are to be taken out of frozen().
  void freeze(bool is_delta, Snapshot::Rows rows, Snapshot::Tracking tracking);
  std::vector<std::int64_t>& frozen() { return frozen_; }  // ascending, each once
  // The same, for the checkpoint's writer, which gets them once. They stay: its checkpoint may come
  // to nothing, and the next delta is to have them then.
  std::vector<std::int64_t> take() {
    return std::exchange(taken_, true) ? std::vector<std::int64_t>() : frozen_;
  }
  void forget() { *this = GoneRows(most_); }

 private:
  std::size_t most_;
  bool tracks_ = false, lost_ = false, taken_ = false;
  std::vector<std::int64_t> since_, frozen_;
};

}  // namespace cairn::ps
