#include "data/file/tfrecord_reader.h"

#include <bit>
#include <cstring>

#include "core/base/checksum.h"
#include "core/base/error.h"

namespace cairn {
namespace {

static_assert(std::endian::native == std::endian::little, "heads are read as they lie");

constexpr std::size_t kHeadBytes = 12, kTailBytes = 4;

std::uint32_t checksum_at(const char* at) {
  std::uint32_t stored;
  std::memcpy(&stored, at, sizeof stored);
  return stored;
}

RecordFault lost(std::string why) {
  return {.why = std::move(why), .damaged = true, .rest_lost = true};
}

}  // namespace

TfRecordReader::TfRecordReader(std::string path, std::unique_ptr<ByteSource> bytes,
                               std::int64_t record_bytes_max)
    : path_(std::move(path)),
      bytes_max_(static_cast<std::uint64_t>(record_bytes_max)),
      window_(std::move(bytes)) {}

void TfRecordReader::seek(std::uint64_t offset, std::int64_t number) {
  window_.seek(offset);
  record_ = number;
}

// A length is not used before its checksum and its bound have been verified, and the window grows
// only by what the file holds. Without `wanted` the checksum of the record's bytes is not verified.
bool TfRecordReader::next(RawRecord& out, bool wanted) {
  out.fault.why.clear();
  out.bytes = {};
  out.number = record_;
  out.offset = window_.offset();
  while (window_.view().size() < kHeadBytes && window_.more()) continue;
  const std::string_view head = window_.view();
  if (head.empty()) return false;
  ++record_;
  if (head.size() < kHeadBytes) {
    out.fault = lost(str("the file ends ", head.size(), " bytes into the record's head"));
    return true;
  }
  std::uint64_t size;
  std::memcpy(&size, head.data(), sizeof size);
  if (masked_checksum(crc32c(head.substr(0, 8))) != checksum_at(head.data() + 8)) {
    out.fault = lost(
        "the checksum of the record's length does not match it: this is not a TFRecord file, or it "
        "is damaged here");
    return true;
  }
  if (size > bytes_max_) {
    out.fault = lost(str("a record of ", size,
                         " bytes, more than TfRecordOptions::record_bytes_max = ", bytes_max_));
    return true;
  }
  const std::size_t whole = kHeadBytes + size + kTailBytes;
  if (!wanted) {
    const std::uint64_t passed = window_.discard(whole);
    if (passed < whole)
      out.fault = lost(str("the record takes ", whole, " bytes, and the file ends after ", passed));
    return true;
  }
  while (window_.view().size() < whole && window_.more()) continue;
  const std::string_view all = window_.view();
  if (all.size() < whole) {
    out.fault =
        lost(str("the record takes ", whole, " bytes, and the file ends after ", all.size()));
    return true;
  }
  out.bytes = all.substr(kHeadBytes, size);
  window_.pass(whole);
  if (masked_checksum(crc32c(out.bytes)) != checksum_at(out.bytes.data() + size))
    out.fault = {.why = str("the checksum of the record's ", size, " bytes does not match them"),
                 .damaged = true};
  return true;
}

std::string TfRecordReader::place(const RawRecord& record) const {
  return str(path_, ": record ", record.number, " (from 0) at byte ", record.offset);
}

}  // namespace cairn
