// LogRecord: one record of a primary's log, as it goes to its backups (wire::Record in
// rpc/cairn.capnp), and how a backup reads it.
//   Thread  the shard's own.
#pragma once
#include <capnp/message.h>

#include <cstddef>
#include <memory>
#include <span>

#include "ps/shard/change_log.h"
#include "ps/shard/shard_copy.h"
#include "rpc/cairn.capnp.h"
#include "rpc/loop/buffer_pool.h"
#include "storage/row_block.h"

namespace cairn::ps {

// A payload goes in calls of so many bytes, as a push does.
inline constexpr std::size_t kPayloadBytesMax = std::size_t{4} << 20;

class LogRecord {
 public:
  LogRecord() : head_(message_.initRoot<wire::Record>()) {}

  wire::Record::Builder head() { return head_; }
  std::span<const std::byte> payload() const { return {payload_.get(), bytes_}; }
  const std::shared_ptr<std::byte>& owner() const { return payload_; }
  std::size_t bytes() const;  // in all, roughly
  // Memory for the payload, readable up to the next multiple of 8.
  std::span<std::byte> allocate(std::size_t bytes, rpc::BufferPool& buffers);

 private:
  capnp::MallocMessageBuilder message_;
  wire::Record::Builder head_;
  std::shared_ptr<std::byte> payload_;
  std::size_t bytes_ = 0;
};

std::shared_ptr<LogRecord> record_of(const ShardBooks& books);
std::shared_ptr<LogRecord> record_of(TableId table, const std::string& variable,
                                     const storage::StoredRows& rows, rpc::BufferPool& buffers);
// The values of `change` are those of the record from then on.
std::shared_ptr<LogRecord> record_of(RowChange& change, rpc::BufferPool& buffers);
std::shared_ptr<LogRecord> record_of(TableId table, const SummedRows& rows,
                                     rpc::BufferPool& buffers);
std::shared_ptr<LogRecord> record_of_announced(std::uint64_t closures_below,
                                               std::uint64_t settled_below);
std::shared_ptr<LogRecord> record_of_complete();
std::shared_ptr<LogRecord> record_of_probe();

// Does to the shard what the record says.
//   Errors  InvalidArgument, DataLoss: the record is malformed; those of ShardCopy, among them
//           DataLoss: the rows are not those of the primary. Nothing has changed then.
void replay(Shard& shard, wire::Record::Reader head, std::span<const std::byte> payload);

}  // namespace cairn::ps
