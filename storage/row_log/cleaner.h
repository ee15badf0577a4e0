// Cleaner: gives the room of dead records back, by copying the live ones of the emptiest segment to
// the end of the log, and its file to the disk.
//   Source  Rosenblum, Ousterhout, "The design and implementation of a log-structured file
//           system", ACM Trans. Comput. Syst. 10(1), 1992; the emptiest first ("greedy"), since
//           rows are updated at random within what is cold.
//
//   It reads one chunk at a time, skipping those without live records, so that it never has more
//   than a chunk of survivors in memory. It begins by itself when files take more than
//   `target` times the bytes of the live rows, and one segment.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "storage/row_log/io_queue.h"
#include "storage/row_log/record.h"
#include "storage/row_log/record_writer.h"
#include "storage/row_log/segments.h"

namespace cairn::storage {

// A live record has another place now.
struct Move {
  std::uint64_t key;
  Place from, to;
};
using Moved = std::function<void(std::span<const Move>)>;

class Cleaner {
 public:
  Cleaner(IoQueue& io, IoQueue::Owner owner, Segments& segments, RecordWriter& writer,
          const RecordLayout& layout, double target, Moved moved);

  // Begins, or goes on, if there is reason to and room for it.
  void advance();
  // The same, even if there was no space for the survivors the last time.
  void try_again();
  // Cleans even where `target` is kept, because appends need a segment. False: that would gain
  // less than an eighth of one, or cannot be done.
  bool gain_space();
  // How many records appends may add before the cleaner has to catch up; without a bound while
  // files take little more than `target`.
  std::size_t credit() const;
  void spend(std::size_t records);

  std::uint64_t moved_rows() const { return moved_rows_; }
  std::uint64_t cleaned_segments() const { return cleaned_segments_; }
  std::uint64_t damaged_segments() const { return damaged_segments_; }

 private:
  bool exceeds(double ratio) const;
  std::optional<std::uint32_t> victim(double live_share_max) const;
  bool next_chunk();
  void read_chunk();
  void copy_unwritten();
  void chunk_read(int error, const std::byte* data);
  void copy_survivors(const std::byte* chunk);
  void give_up(const std::string& why);
  void end();

  IoQueue& io_;
  IoQueue::Owner owner_;
  Segments& segments_;
  RecordWriter& writer_;
  RecordLayout layout_;
  double target_;
  Moved moved_;
  std::optional<std::uint32_t> segment_;  // that is being cleaned, pinned
  std::uint32_t record_ = 0;              // of it: the first that was not looked at
  bool reading_ = false, copying_ = false;
  bool stuck_ = false;  // there was no space for the survivors
  std::size_t credit_ = 0;
  std::uint64_t moved_rows_ = 0, cleaned_segments_ = 0, damaged_segments_ = 0;
};

}  // namespace cairn::storage
