#include "storage/row_log/record_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace cairn::storage {

RecordWriter::RecordWriter(IoQueue& io, IoQueue::Owner owner, Segments& segments,
                           const RecordLayout& layout, std::size_t chunks_max,
                           std::function<void()> written)
    : io_(io),
      owner_(owner),
      segments_(segments),
      layout_(layout),
      chunks_max_(std::max<std::size_t>(chunks_max, 2)),
      written_(std::move(written)) {}

std::size_t RecordWriter::room(SegmentUse use) const {
  const std::size_t chunks = chunks_max_ + (use == SegmentUse::kClean ? 1 : 0);
  const std::size_t further = chunks > chunks_.size() ? chunks - chunks_.size() : 0;
  const std::size_t rest = open_ != nullptr ? layout_.records_per_chunk - open_->records : 0;
  return rest + further * layout_.records_per_chunk;
}

void RecordWriter::prepare(std::size_t count, SegmentUse use) {
  const std::size_t per_segment = layout_.records_per_segment;
  const std::size_t rest = next_ == kNoPlace ? 0 : per_segment - next_ % per_segment;
  // Appends also ask where they need no segment: while the cleaner is at the last one, what is left
  // of that is its own.
  const std::size_t further = count > rest ? (count - rest + per_segment - 1) / per_segment : 0;
  if (further > 0 || use == SegmentUse::kAppend) segments_.prepare(further, use);
}

Place RecordWriter::add(std::uint64_t key, std::span<const std::byte> row) {
  if (next_ == kNoPlace) next_ = segments_.open() * layout_.records_per_segment;
  if (open_ == nullptr) begin_chunk();
  const Place place = next_;
  const std::uint32_t segment = layout_.segment(place);
  write_record(layout_, segments_[segment].file_number, key, row,
               open_->data.get() + layout_.offset_in_chunk(place));
  segments_.mark_live(place);
  ++next_;
  if (++open_->records == layout_.records_per_chunk) {
    write(*open_);
    open_ = nullptr;
    if (next_ % layout_.records_per_segment == 0) {
      next_ = kNoPlace;
      segments_.seal(segment);
    }
  }
  return place;
}

// The gaps behind records are written as well, so they are made zero once: no record reaches them.
void RecordWriter::begin_chunk() {
  auto chunk = std::make_unique<Chunk>();
  chunk->number = layout_.chunk(next_);
  chunk->data = std::move(spare_);
  if (!chunk->data) {
    chunk->data = make_aligned_buffer(layout_.chunk_bytes);
    std::memset(chunk->data.get(), 0, layout_.chunk_bytes);
  }
  open_ = chunk.get();
  chunks_.push_back(std::move(chunk));
}

std::uint32_t RecordWriter::segment_of(const Chunk& chunk) const {
  return static_cast<std::uint32_t>(chunk.number * layout_.records_per_chunk /
                                    layout_.records_per_segment);
}
std::uint64_t RecordWriter::offset_of(const Chunk& chunk) const {
  return chunk.number * layout_.chunk_bytes % layout_.segment_bytes;
}

void RecordWriter::write(Chunk& chunk) {
  const std::uint32_t segment = segment_of(chunk);
  segments_.pin(segment);
  chunk.error = 0;
  io_.write(owner_, segments_[segment].descriptor, offset_of(chunk), chunk.data.get(),
            layout_.chunk_bytes, [this, &chunk](int error) { write_ended(chunk, error); });
}

// A chunk that could not be written stays in memory, its rows readable, and its segment pinned.
void RecordWriter::write_ended(Chunk& chunk, int error) {
  if (error != 0) {
    chunk.error = error;
    return;
  }
  const std::uint32_t segment = segment_of(chunk);
  const auto at = std::find_if(chunks_.begin(), chunks_.end(),
                               [&](const auto& each) { return each.get() == &chunk; });
  spare_ = std::move(chunk.data);
  chunks_.erase(at);
  segments_.unpin(segment);
  written_();
}

const std::byte* RecordWriter::find_chunk(std::uint32_t number) const {
  for (const auto& each : chunks_)
    if (each->number == number) return each->data.get();
  return nullptr;
}

const std::byte* RecordWriter::find_record(Place place) const {
  const std::byte* chunk = find_chunk(layout_.chunk(place));
  return chunk == nullptr ? nullptr : chunk + layout_.offset_in_chunk(place);
}

void RecordWriter::repeat_failed() {
  int error = 0;
  std::string where;
  for (const auto& each : chunks_) {
    if (each->error == 0) continue;
    error = each->error;
    const std::uint32_t segment = segment_of(*each);
    where = str("cannot write ", layout_.chunk_bytes, " bytes at offset ", offset_of(*each), " of ",
                segments_.path(segment), ": ", strerror(error),
                ". The rows of before are all readable, and the write is begun again");
    write(*each);
    segments_.unpin(segment);  // of the write that failed
  }
  if (error == 0) return;
  io_.start();
  if (error == ENOSPC || error == EDQUOT)
    throw ResourceExhaustedError(str(where, "; free space on that disk"));
  throw UnavailableError(where);
}

}  // namespace cairn::storage
