// MemoryBudget: how much memory the tables of a shard may take that have rows on a disk too.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace cairn::ps {

// Thread: the shard's own.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes) : bytes_(bytes) {}
  std::size_t bytes() const { return bytes_; }
  void set(std::size_t bytes) { bytes_ = bytes; }

  // A table's share of the book; it says what it takes whenever that changes.
  std::size_t join() {
    ++tables_;
    if (left_.empty()) {
      taken_.push_back(0);
      return taken_.size() - 1;
    }
    const std::size_t table = left_.back();
    left_.pop_back();
    return table;
  }
  void leave(std::size_t table) {
    set_taken(table, 0);
    left_.push_back(table);
    --tables_;
  }
  void set_taken(std::size_t table, std::size_t bytes) {
    total_ += bytes - taken_[table];
    taken_[table] = bytes;
  }
  std::size_t total() const { return total_; }
  // By more than a request leaves behind.
  bool is_exceeded() const { return total_ > bytes_ + bytes_ / 50; }
  // Whether the table may take so much more. What is not taken goes to the table that asks first,
  // but for a quarter, of which each has its part, so that one that comes late is not shut out.
  bool has_room(std::size_t table, std::size_t more) const {
    const std::size_t own = bytes_ / 4 / std::max<std::size_t>(tables_, 1);
    if (taken_[table] + more <= own) return true;
    std::size_t kept = 0;
    for (std::size_t other = 0; other < taken_.size(); ++other)
      if (other != table && taken_[other] > 0 && taken_[other] < own) kept += own - taken_[other];
    return total_ + more + kept <= bytes_;
  }

 private:
  std::size_t bytes_, total_ = 0, tables_ = 0;
  std::vector<std::size_t> taken_, left_;  // bytes by table; numbers that are free
};

}  // namespace cairn::ps
