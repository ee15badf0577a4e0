// RowLog: the cold rows of one table of a shard, in a log on a local disk.
//
//   Rows of one width lie in records with their keys and checksums (record.h), in segments: files
//   that are only added to, and go when the last of their rows has been released. Where a row lies
//   is a number of 32 bits, its place, which the owner keeps; the log itself has one bit of memory
//   per record, and the chunks that are not written yet. What is released leaves gaps; a cleaner
//   (cleaner.h) copies the rows of the emptiest segments together and tells the owner their new
//   places, so that files take `space_target` times the live rows and three segments at most,
//   if no cut holds more.
//
//     IoQueue io({});                               // one for all logs of a thread
//     RowLog log(io, {.folder = "cold", .row_bytes = 128}, [&](std::span<const Move> moves) {
//       for (const Move& each : moves) index[each.key] = each.to;
//     });
//     log.append(keys, rows, places);
//     log.read(places, keys, [&](ReadRows read) { ... });  // from io.poll()
//     log.release(places);                          // before the row is appended anew
//
//   Volatile   The folder is made anew at the start and removed at the end: what a process that
//              died has left is never read. A table is rebuilt from its checkpoint.
//   Thread     one, that of the IoQueue. Nothing blocks on reads and writes, but making a segment
//              (an open and an fallocate) and removing one happen within the calls.
//   Callbacks  come from IoQueue::poll(), and may call the log. They must not throw, or destroy it.
//   Cost       append: a copy and a checksum of each row. read: one request of the disk per row, of
//              the sectors that hold it; rows that lie side by side share one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/row_log/cleaner.h"
#include "storage/row_log/io_queue.h"
#include "storage/row_log/record.h"
#include "storage/row_log/record_writer.h"
#include "storage/row_log/row_reads.h"
#include "storage/row_log/segments.h"

namespace cairn::storage {

struct RowLogOptions {
  std::string folder;         // of this log alone: whatever lies in it is removed
  std::size_t row_bytes = 0;  // a row with its slots
  std::uint64_t segment_bytes = std::uint64_t{32} << 20;  // of a file, which stays open
  std::size_t chunk_bytes = std::size_t{1} << 20;         // of one write
  std::size_t unwritten_bytes_max = std::size_t{16}
                                    << 20;  // in memory; the cleaner has a chunk more
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();  // of all files
  // Reads begin and end at multiples of this; 0: the smallest that the file system takes.
  std::size_t read_alignment = 0;
  double space_target = 1.45;  // bytes of files per byte of live rows that the cleaner aims at
};

struct RowLogCounters {
  std::uint64_t live_rows = 0;
  std::uint64_t disk_bytes = 0;       // of all files, which are allocated whole
  std::uint64_t frozen_segments = 0;  // that cuts hold
  std::uint64_t unwritten_bytes = 0;  // in memory
  std::uint64_t appended_rows = 0, moved_rows = 0;
  std::uint64_t cleaned_segments = 0;
  std::uint64_t damaged_segments = 0;  // which the cleaner leaves alone
  bool direct = true;                  // false: the file system refuses O_DIRECT
};

class RowLog;

// The log as it was at one moment: the records that were live then can be read as long as this is
// held, released or not, and their segments are neither changed nor removed. An owner that
// keeps the places of that moment can so write a checkpoint while training goes on. Until it ends
// the files of what is released stay on the disk. Ends with the log, too.
class Cut {
 public:
  Cut() = default;
  ~Cut() { end(); }
  Cut(Cut&& other) noexcept;
  Cut& operator=(Cut&& other) noexcept;

  // As RowLog::read(), in requests of up to 1 MB that pass over gaps: for many places at once, in
  // ascending order, which is how they lie on the disk.
  void read(std::span<const Place> places, std::span<const std::uint64_t> keys, RowsDone done);
  void end();  // again: nothing

  // The records that were live, for owners that keep no places of that moment: how many, and the
  // places of the next `most` of them, ascending; none: that was all.
  std::uint64_t rows() const { return rows_; }
  std::vector<Place> next_places(std::size_t most);

 private:
  friend class RowLog;
  Cut(RowLog& log, std::vector<std::uint32_t> segments, std::weak_ptr<const bool> alive);

  RowLog* log_ = nullptr;
  std::vector<std::uint32_t> segments_;
  std::vector<std::vector<std::uint64_t>> live_;  // a bit a record, of each of these
  std::uint64_t rows_ = 0;
  std::size_t segment_ = 0, record_ = 0;  // the next one to look at
  std::weak_ptr<const bool> alive_;
};

class RowLog {
 public:
  //   Errors  InvalidArgument: rows of no bytes or of more than 1 MB, or max_bytes below three
  //           segments.  PermissionDenied: the folder cannot be made.
  RowLog(IoQueue& io, const RowLogOptions& options, Moved moved);
  // Blocks until the requests under way have ended; callbacks are not called any more.
  ~RowLog();
  RowLog(const RowLog&) = delete;
  RowLog& operator=(const RowLog&) = delete;

  // Rows that append() takes now. 0 while writes, or the cleaner, must catch up: ask again after
  // the next IoQueue::poll().
  std::size_t room() const;
  // Adds rows: keys.size() of row_bytes each, one behind the other. `places` receives where they
  // lie. All of them are added or, with an error, none.
  //   Errors  Unavailable: more rows than room(), or the disk has failed a write that is begun once
  //           more with this call, or the cleaner is making space: call again later.
  //           ResourceExhausted: the disk or max_bytes is full. What was there stays readable.
  void append(std::span<const std::uint64_t> keys, std::span<const std::byte> rows,
              std::span<Place> places);
  // These rows are not wanted any more. A read of them that is under way still succeeds.
  void release(std::span<const Place> places);
  // Reads rows that are live; `done` is called once, later, with them in the order of `places`,
  // which may be any, and name a row twice. `keys` are those that must lie there; if it is empty,
  // the caller compares.
  //   Errors  DataLoss, to `done`: a record is damaged, has another key, or cannot be read; it
  //           names file, offset and key.
  void read(std::span<const Place> places, std::span<const std::uint64_t> keys, RowsDone done);
  Cut freeze();
  // The next `most` places that are live, from `first` on, ascending; none: that was all.
  std::vector<Place> live_places(Place first, std::size_t most) const;

  RowLogCounters counters() const;
  const RecordLayout& layout() const { return layout_; }
  std::size_t read_alignment() const { return segments_.alignment(); }  // 0: before any append

 private:
  friend class Cut;
  void make_space(std::size_t rows);

  IoQueue& io_;
  RowLogOptions options_;
  RecordLayout layout_;
  Segments segments_;
  RecordWriter writer_;
  RowReads reads_;
  Cleaner cleaner_;
  std::uint64_t appended_rows_ = 0;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace cairn::storage
