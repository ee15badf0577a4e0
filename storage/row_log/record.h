// How records of a row log lie in its files.
//
//     segment     one file, a whole number of chunks
//     chunk       what one write writes, a whole number of pages
//     page        4 KB or a few times that: as many records as fit, then zeros
//     record      CRC-32C (4 bytes), key (8), row, all little-endian; then up to 3 bytes so that
//                 the next begins at a multiple of 4
//
//   No record lies in two pages, so that a row of up to 4 KB costs one read of at most 4 KB even on
//   a disk whose sectors are that large. The checksum goes over key and row, and begins with the
//   number of the file: a record that an earlier use of the same blocks has left is damaged.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn::storage {

// The number of a record in a log: segment * records_per_segment + record of the segment.
using Place = std::uint32_t;
inline constexpr Place kNoPlace = ~Place{0};

struct RecordLayout {
  std::size_t row_bytes = 0;
  std::size_t width = 0;  // bytes from one record to the next
  std::size_t page_bytes = 0, records_per_page = 0;
  std::size_t chunk_bytes = 0, records_per_chunk = 0;
  std::uint64_t segment_bytes = 0;
  std::uint32_t records_per_segment = 0;

  // Chunks and segments of about these sizes.
  //   Errors  InvalidArgument: `row_bytes` is 0 or more than 1 MB.
  static RecordLayout of(std::size_t row_bytes, std::size_t chunk_bytes,
                         std::uint64_t segment_bytes);
  std::uint32_t segment(Place place) const { return place / records_per_segment; }
  std::uint32_t chunk(Place place) const {
    return place / static_cast<std::uint32_t>(records_per_chunk);
  }
  // Bytes from the beginning of the record's file, and from that of its chunk.
  std::uint64_t offset(Place place) const { return within(place % records_per_segment); }
  std::size_t offset_in_chunk(Place place) const { return within(place % records_per_chunk); }

 private:
  std::size_t within(std::size_t record) const {
    return record / records_per_page * page_bytes + record % records_per_page * width;
  }
};

void write_record(const RecordLayout& layout, std::uint32_t file_number, std::uint64_t key,
                  std::span<const std::byte> row, std::byte* record);

struct RecordView {
  bool sound = false;  // the checksum is right
  std::uint64_t key = 0;
  std::span<const std::byte> row;
};
RecordView read_record(const RecordLayout& layout, std::uint32_t file_number,
                       const std::byte* record);

}  // namespace cairn::storage
