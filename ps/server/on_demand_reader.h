// OnDemandReader: a checkpoint's databases, opened for a restore on demand: a stream of all rows
// that a shard wants, and single rows of them. It blocks on the disk for OnDemandRestore.
//   Order   The stream brings the tables that are hurried first, then small ones before large ones;
//           of each table the newest database comes first.
//   Errors  the store's, and DataLoss of a damaged block, which name its file; but for open() also
//           the newest older checkpoint that is sound (storage::with_sound_checkpoint()), which is
//           looked for before the error is thrown.
//   Thread  open() first, by itself. Afterwards one thread at a time for the stream, and one for
//           each number of a lane, with cursors of their own.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/rows/row_move.h"
#include "ps/server/checkpoint_tasks.h"
#include "storage/range_read.h"
#include "storage/row_block.h"
#include "storage/row_store.h"
#include "storage/superseded_rows.h"

namespace cairn::ps {

class OnDemandReader {
 public:
  // Variables here and their rows, as Shard::ranges() has them. They are numbered in this order.
  using Ranges = std::vector<std::pair<std::string, RowRange>>;
  OnDemandReader(storage::RowStore& store, std::string folder, std::vector<std::string> databases,
                 Ranges wanted, RowMoves moves);
  OnDemandReader(const OnDemandReader&) = delete;
  OnDemandReader& operator=(const OnDemandReader&) = delete;

  // Opens the databases and reads the records of the tables, those of older databases first.
  void open();
  const std::vector<storage::TableRecord>& records() const { return records_; }
  // Why rows cannot be found one by one; empty: they can.
  const std::string& obstacle() const { return obstacle_; }
  const std::string& folder() const { return folder_; }
  const Ranges& wanted() const { return wanted_; }
  std::uint64_t bytes() const { return bytes_; }  // of all rows, roughly

  // ---- the stream ----
  struct Piece {
    std::size_t wanted = 0;
    std::uint64_t expected_bytes = 0;  // of all its rows; in its first piece alone
    std::size_t begin = 0, end = 0;    // its blocks
    bool last = false;                 // that was all of its rows
  };
  struct Batch {
    std::vector<Piece> pieces;
    std::vector<storage::StoredRows> blocks;  // those behind the last piece's are to be used again
    bool last = false;                        // of the stream
  };
  // Reads until the batch has `bytes` of rows.
  void read(Batch& batch, std::size_t bytes, const std::vector<std::size_t>& hurried);

  // ---- single rows ----
  static constexpr std::size_t kLanes = 2;
  // Rows of the whole variable, ascending. Those that are found go to `found`, and from `rows`.
  void look_up(std::size_t wanted, std::size_t lane, std::vector<std::int64_t>& rows,
               std::vector<storage::StoredRows>& found);

 private:
  // The cursors of one thread, by database.
  using Readers = std::vector<std::unique_ptr<storage::DatabaseReader>>;
  // One database's share of a range.
  struct Source {
    std::size_t database = 0;     // of databases_
    std::vector<RowRange> parts;  // that were saved there, and overlap with the range
  };
  struct Reading {
    std::string from;               // the checkpoint's variable
    const RowMove* move = nullptr;  // null: its rows as they are
    std::uint64_t bytes = 0;        // roughly
    std::vector<Source> sources;    // newest first
    storage::SupersededRows superseded;
    std::size_t source = 0;  // the stream's, and its next row there
    std::int64_t next_row = 0;
    bool told_bytes = false, done = false;
  };

  void open_database(std::size_t database);
  void read_batch(Batch& batch, std::size_t bytes, const std::vector<std::size_t>& hurried);
  void look_up_rows(std::size_t wanted, std::size_t lane, std::vector<std::int64_t>& rows,
                    std::vector<storage::StoredRows>& found);
  [[noreturn]] void fail(const std::exception_ptr& error);
  storage::DatabaseReader& reader(Readers& readers, std::size_t database);
  std::size_t next_wanted(const std::vector<std::size_t>& hurried) const;
  bool go_to_next_block(std::size_t wanted, storage::StoredRows& block);

  storage::RowStore& store_;
  const std::string folder_;
  const std::vector<std::string> databases_;  // oldest first
  const Ranges wanted_;
  const RowMoves moves_;
  std::vector<Reading> readings_;   // by number
  std::vector<std::size_t> order_;  // of the stream
  std::vector<storage::TableRecord> records_;
  std::string obstacle_;
  std::uint64_t bytes_ = 0;
  std::once_flag failed_;  // guards failure_, the error of the thread that had the first one
  std::exception_ptr failure_;
  // The stream's:
  Readers streamed_;
  std::size_t streaming_ = SIZE_MAX;
  std::unique_ptr<storage::RangeRead> range_;
  // The lanes':
  std::array<Readers, kLanes> looked_up_;
};

}  // namespace cairn::ps
