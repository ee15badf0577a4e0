// RowReads: batches of rows that are being read from a row log.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "storage/row_log/io_queue.h"
#include "storage/row_log/record.h"
#include "storage/row_log/record_writer.h"
#include "storage/row_log/segments.h"

namespace cairn::storage {

// The rows of a batch in the order of its places, with their keys; or what went wrong, and no row.
struct ReadRows {
  std::vector<std::uint64_t> keys;
  std::vector<std::byte> rows;  // row_bytes each, one behind the other
  std::exception_ptr error;
};
using RowsDone = std::function<void(ReadRows)>;

// How near two records must lie so that one request of the disk brings both, and how large such a
// request may become.
struct ReadShape {
  Urgency urgency = Urgency::kNow;
  std::size_t gap_bytes_max = 0, bytes_max = 0;
};

class RowReads {
 public:
  RowReads(IoQueue& io, IoQueue::Owner owner, Segments& segments, RecordWriter& writer,
           const RecordLayout& layout)
      : io_(io), owner_(owner), segments_(segments), writer_(writer), layout_(layout) {}

  // Reads these records; `expected` are their keys, or empty. `done` is called once, later.
  void read(std::span<const Place> places, std::span<const std::uint64_t> expected,
            const ReadShape& shape, RowsDone done);

 private:
  struct Wanted {
    Place place;
    std::uint32_t index;  // within the batch
  };
  struct Batch {
    std::vector<Wanted> wanted;           // from the disk, by place
    std::vector<std::uint64_t> expected;  // keys
    ReadRows result;
    std::size_t left = 0;  // requests
    RowsDone done;
  };
  struct Span {
    std::size_t first = 0, last = 0;   // of Batch::wanted
    std::uint64_t begin = 0, end = 0;  // bytes of the file
  };

  void begin(const std::shared_ptr<Batch>& batch, const ReadShape& shape);
  Span next_span(const Batch& batch, std::size_t first, const ReadShape& shape) const;
  void span_ended(const std::shared_ptr<Batch>& batch, const Span& span, int error,
                  const std::byte* data);
  void take(Batch& batch, Wanted wanted, const std::byte* record) const;
  void fail(Batch& batch, std::exception_ptr error) const;
  std::exception_ptr read_error(Batch& batch, const Span& span, int error) const;

  IoQueue& io_;
  IoQueue::Owner owner_;
  Segments& segments_;
  RecordWriter& writer_;
  RecordLayout layout_;
};

}  // namespace cairn::storage
