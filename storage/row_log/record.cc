#include "storage/row_log/record.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "core/base/checksum.h"
#include "core/base/error.h"

namespace cairn::storage {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kRowBytesMax = std::size_t{1} << 20;
constexpr std::size_t kKeyAt = sizeof(std::uint32_t);
constexpr std::size_t kRowAt = kKeyAt + sizeof(std::uint64_t);

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The smallest page that wastes at most an eighth, or of those of up to eight blocks the one that
// wastes least.
std::size_t choose_page_bytes(std::size_t width) {
  std::size_t best = 0;
  double best_waste = 1;
  for (std::size_t blocks = 1; blocks <= 8; ++blocks) {
    const std::size_t bytes = round_up(width, kPageBytes) + (blocks - 1) * kPageBytes;
    const double waste = static_cast<double>(bytes % width) / static_cast<double>(bytes);
    if (waste < best_waste) {
      best = bytes;
      best_waste = waste;
    }
    if (waste <= 0.125) return bytes;
  }
  return best;
}

std::uint32_t record_checksum(const RecordLayout& layout, std::uint32_t file_number,
                              const std::byte* record) {
  return crc32c(std::string_view(reinterpret_cast<const char*>(record) + kKeyAt,
                                 layout.row_bytes + kRowAt - kKeyAt),
                file_number);
}

}  // namespace

RecordLayout RecordLayout::of(std::size_t row_bytes, std::size_t chunk_bytes,
                              std::uint64_t segment_bytes) {
  if (row_bytes == 0 || row_bytes > kRowBytesMax)
    throw InvalidArgumentError(
        str("a row log cannot hold rows of ", row_bytes, " bytes: they have 1 to ", kRowBytesMax));
  RecordLayout layout;
  layout.row_bytes = row_bytes;
  layout.width = round_up(kRowAt + row_bytes, 4);
  layout.page_bytes = choose_page_bytes(layout.width);
  layout.records_per_page = layout.page_bytes / layout.width;
  layout.chunk_bytes = round_up(std::max<std::size_t>(chunk_bytes, 1), layout.page_bytes);
  layout.records_per_chunk = layout.chunk_bytes / layout.page_bytes * layout.records_per_page;
  layout.segment_bytes = round_up(std::max<std::uint64_t>(segment_bytes, 1), layout.chunk_bytes);
  const std::uint64_t records =
      layout.segment_bytes / layout.chunk_bytes * layout.records_per_chunk;
  if (records >= kNoPlace / 2)
    throw InvalidArgumentError(str("a segment of ", layout.segment_bytes, " bytes holds ", records,
                                   " records, and a whole log numbers fewer than 2^32: make "
                                   "segments smaller"));
  layout.records_per_segment = static_cast<std::uint32_t>(records);
  return layout;
}

void write_record(const RecordLayout& layout, std::uint32_t file_number, std::uint64_t key,
                  std::span<const std::byte> row, std::byte* record) {
  std::memcpy(record + kKeyAt, &key, sizeof key);
  std::memcpy(record + kRowAt, row.data(), row.size());
  const std::uint32_t checksum = record_checksum(layout, file_number, record);
  std::memcpy(record, &checksum, sizeof checksum);
}

RecordView read_record(const RecordLayout& layout, std::uint32_t file_number,
                       const std::byte* record) {
  RecordView view;
  std::uint32_t checksum = 0;
  std::memcpy(&checksum, record, sizeof checksum);
  std::memcpy(&view.key, record + kKeyAt, sizeof view.key);
  view.row = {record + kRowAt, layout.row_bytes};
  view.sound = checksum == record_checksum(layout, file_number, record);
  return view;
}

}  // namespace cairn::storage
