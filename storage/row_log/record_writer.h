// RecordWriter: the end of a row log, where records are added. They are gathered in memory to
// chunks, which are written behind, in one large write each; until that has ended its rows are
// read from memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "storage/row_log/aligned_buffer.h"
#include "storage/row_log/io_queue.h"
#include "storage/row_log/record.h"
#include "storage/row_log/segments.h"

namespace cairn::storage {

class RecordWriter {
 public:
  // Appends keep at most `chunks_max` chunks in memory (at least 2), the cleaner one more.
  // `written` is called when a chunk has been written.
  RecordWriter(IoQueue& io, IoQueue::Owner owner, Segments& segments, const RecordLayout& layout,
               std::size_t chunks_max, std::function<void()> written);

  // Records that prepare() would take for this use, the disk permitting.
  std::size_t room(SegmentUse use) const;
  // Makes sure that add() succeeds `count` times, `count` being at most room(use).
  //   Errors  ResourceExhausted: no further segment can be made. Nothing has changed then.
  void prepare(std::size_t count, SegmentUse use);
  Place add(std::uint64_t key, std::span<const std::byte> row);

  // A record, or a whole chunk, that has not been written yet; otherwise null.
  const std::byte* find_record(Place place) const;
  const std::byte* find_chunk(std::uint32_t chunk) const;

  // Begins the writes that have failed once more, and throws what one of them failed with, if any.
  //   Errors  ResourceExhausted: the disk is full.  Unavailable: the system cannot write.
  void repeat_failed();
  std::size_t unwritten_chunks() const { return chunks_.size(); }

 private:
  struct Chunk {
    std::uint32_t number = 0;  // of its first place / records_per_chunk
    AlignedBuffer data;
    std::uint32_t records = 0;
    int error = 0;  // that its write failed with
  };

  void begin_chunk();
  void write(Chunk& chunk);
  void write_ended(Chunk& chunk, int error);
  std::uint32_t segment_of(const Chunk& chunk) const;
  std::uint64_t offset_of(const Chunk& chunk) const;

  IoQueue& io_;
  IoQueue::Owner owner_;
  Segments& segments_;
  RecordLayout layout_;
  std::size_t chunks_max_;
  std::function<void()> written_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  Chunk* open_ = nullptr;  // the one of these that is being filled
  Place next_ = kNoPlace;  // kNoPlace: the next record opens a segment
  AlignedBuffer spare_;    // of a chunk that was written
};

}  // namespace cairn::storage
