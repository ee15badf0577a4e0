// OnDemandRestore: reads a checkpoint for a shard that is open already: rows that requests wait for
// at once, and besides all rows, in the order in which their tables are wanted.
//
//   Two lanes of the offload work for it, each with cursors of its own: one reads single rows, the
//   other streams. The stream goes on beside a read of single rows for a few batches only, so that
//   requests have the disk for themselves most of the time, and it still comes to its end.
//   Order    The tables that requests want as a whole come first, then small ones before large
//            ones; of each table the newest database comes first, as a row that is there already
//            is not put again.
//   Memory   two batches of about 2 MB, and what single rows take.
//   Errors   the first one ends the restore: RestoringRows::fail().
//   Thread   the shard's own, but for open(). What it reads it reads on the offload.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/rows/row_move.h"
#include "ps/server/checkpoint_tasks.h"
#include "ps/shard/restoring_rows.h"
#include "storage/range_read.h"
#include "storage/row_block.h"
#include "storage/row_store.h"

namespace cairn::ps {

struct ShardHost;

class OnDemandRestore final : public CheckpointRows,
                              public std::enable_shared_from_this<OnDemandRestore> {
 public:
  using Ranges = std::vector<std::pair<std::string, RowRange>>;  // as Shard::ranges()
  OnDemandRestore(storage::RowStore& store, std::string folder, std::vector<std::string> databases,
                  Ranges wanted, RowMoves moves);

  // Opens the databases and reads the records of the tables, those of older ones first.
  //   Errors  the store's.   Thread  any, before the rest is called.
  void open();
  const std::vector<storage::TableRecord>& records() const { return records_; }
  // Why these rows cannot be found one by one; empty: they can.
  const std::string& obstacle() const { return obstacle_; }
  const std::string& folder() const { return folder_; }

  // Streams the rows to the shard of `host`, for the restore of this number, until all are there
  // or none is wanted any more. The host is told of each table that is complete.
  void begin(const std::shared_ptr<ShardHost>& host, std::uint64_t restore);
  void read(const Table& table, const std::vector<std::int64_t>& rows, Done done) override;
  void hurry(const Table& table) override;

 private:
  // One database's share of a range.
  struct Source {
    std::size_t database = 0;     // of databases_
    std::vector<RowRange> parts;  // that were saved there, and overlap with the range
  };
  struct Wanted {
    std::string variable, from;  // here, and in the checkpoint
    RowRange rows;
    const RowMove* move = nullptr;
    std::uint64_t bytes = 0;      // roughly
    std::vector<Source> sources;  // newest first
    // How far the stream is:
    std::size_t source = 0;
    std::int64_t next_row = 0;
    bool told_bytes = false, done = false;
  };
  // The cursors of one lane, by database.
  using Readers = std::vector<std::unique_ptr<storage::DatabaseReader>>;

  struct Piece {
    std::size_t wanted = 0;
    std::uint64_t expected_bytes = 0;
    std::size_t begin = 0, end = 0;  // its blocks
    bool last = false;               // that was all of the range
  };
  struct Batch {
    std::vector<Piece> pieces;
    std::vector<storage::StoredRows> blocks;  // those behind the last piece's are to be used again
    bool last = false;
  };
  struct Lookup {
    std::size_t wanted = 0;
    std::vector<std::int64_t> rows;  // of the whole variable
    Done done;
    std::vector<storage::StoredRows> found;
  };

  void open_database(std::size_t database);
  storage::DatabaseReader& reader(Readers& readers, std::size_t database);
  std::size_t index_of(const Table& table) const;
  // On the stream's lane.
  void read_batch(Batch& batch, const std::vector<std::size_t>& hurried);
  Wanted* next_wanted(const std::vector<std::size_t>& hurried);
  bool go_to_next_block(Wanted& wanted, storage::StoredRows& block);
  // On the other one.
  void look_up(Lookup& lookup);
  // On the shard's thread.
  void stream_on();
  void place(const Batch& batch);
  void look_up_waiting();
  void batch_was_read(std::exception_ptr error);
  // `then` is called with the error of `work`, or none.
  void run(std::size_t lane, std::function<void()> work,
           std::function<void(std::exception_ptr)> then);
  void fail(ShardHost& host, const std::exception_ptr& error);
  bool over(const ShardHost& host) const;

  storage::RowStore& store_;
  const std::string folder_;
  const std::vector<std::string> databases_;  // oldest first
  const RowMoves moves_;
  std::vector<Wanted> wanted_;
  std::vector<std::size_t> order_;  // of wanted_, for the stream
  std::vector<storage::TableRecord> records_;
  std::string obstacle_;

  // The stream's lane alone:
  Readers streamed_;
  Wanted* streaming_ = nullptr;
  std::unique_ptr<storage::RangeRead> range_;
  // The other lane alone:
  Readers looked_up_;

  std::weak_ptr<ShardHost> host_;
  std::size_t batch_bytes_ = 0;
  std::uint64_t restore_ = 0;
  std::exception_ptr error_;
  std::vector<std::size_t> hurried_;
  std::shared_ptr<Batch> ready_ = std::make_shared<Batch>(), next_ = std::make_shared<Batch>();
  bool reading_ = false, ended_ = false;
  std::vector<Lookup> waiting_;
  bool looking_up_ = false;
  int batches_beside_ = 0;  // since the lookup that is under way began
};

}  // namespace cairn::ps
