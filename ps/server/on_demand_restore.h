// OnDemandRestore: brings the rows of a checkpoint to a shard that is open already: those that
// requests wait for at once, and besides all of them.
//
//   Both of the shard's lanes of the offload look rows up, half of them each, and one streams. The
//   stream goes on beside a lookup for a few batches only, so that requests have the disk for
//   themselves most of the time, and it still comes to its end.
//   Memory   two batches of about 2 MB, and what single rows take.
//   Errors   the first one ends the restore: RestoringRows::fail().
//   Thread   the shard's own. What it reads it reads on the offload.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "ps/server/on_demand_reader.h"
#include "ps/shard/restoring_rows.h"
#include "storage/row_block.h"

namespace cairn::ps {

struct ShardHost;

class OnDemandRestore final : public CheckpointRows,
                              public std::enable_shared_from_this<OnDemandRestore> {
 public:
  // The reader is open.
  explicit OnDemandRestore(std::shared_ptr<OnDemandReader> reader) : reader_(std::move(reader)) {}

  // Streams the rows to the shard of `host`, for the restore of this number, until all are there
  // or none is wanted any more. The host is told of each table that is complete.
  void begin(const std::shared_ptr<ShardHost>& host, std::uint64_t restore);
  void read(const Table& table, const std::vector<std::int64_t>& rows, Done done) override;
  void hurry(const Table& table) override;

 private:
  using Batch = OnDemandReader::Batch;
  struct Lookup {
    std::size_t wanted = 0;
    Done done;
    struct Share {
      std::vector<std::int64_t> rows;
      std::vector<storage::StoredRows> found;
    };
    std::array<Share, OnDemandReader::kLanes> shares;  // one for each lane
  };
  struct LookupJob {
    std::vector<Lookup> lookups;
    std::size_t lanes = 0;  // that are at work on it
    std::exception_ptr error;
  };

  std::size_t number_of(const Table& table) const;
  void stream_on();
  void batch_was_read(std::exception_ptr error);
  void place(ShardHost& host, const Batch& batch);
  void look_up_waiting();
  void was_looked_up(const std::shared_ptr<LookupJob>& job, std::exception_ptr error);
  // `then` is called with the error of `work`, or none.
  void run(std::size_t lane, std::function<void()> work,
           std::function<void(std::exception_ptr)> then);
  void fail(ShardHost& host, const std::exception_ptr& error);
  bool over(const ShardHost& host) const;

  const std::shared_ptr<OnDemandReader> reader_;
  std::weak_ptr<ShardHost> host_;
  std::uint64_t restore_ = 0;
  std::exception_ptr error_;
  // ---- the stream ----
  std::vector<std::size_t> hurried_;  // numbers of the reader's
  std::shared_ptr<Batch> ready_ = std::make_shared<Batch>(), next_ = std::make_shared<Batch>();
  bool reading_ = false, ended_ = false;
  std::uint64_t streamed_bytes_ = 0;
  // ---- single rows ----
  std::vector<Lookup> waiting_;
  bool looking_up_ = false;
  int batches_beside_ = 0;  // since the lookup that is under way began
};

}  // namespace cairn::ps
