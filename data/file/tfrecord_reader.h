// TfRecordReader: the records of a TFRecord file. Each is a length of 8 bytes, little-endian, its
// checksum, the bytes, and their checksum.
//   Source  tensorflow/core/lib/io/record_writer.h; the checksums are CRC-32C, masked so that the
//           checksum of bytes that hold checksums is no special one.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "data/file/byte_window.h"
#include "data/file/record_reader.h"

namespace cairn {

inline std::uint32_t masked_checksum(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

class TfRecordReader final : public RecordReader {
 public:
  // `path` is for messages.
  TfRecordReader(std::string path, std::unique_ptr<ByteSource> bytes,
                 std::int64_t record_bytes_max);

  bool next(RawRecord& out, bool wanted) override;
  std::uint64_t offset() const override { return window_.offset(); }
  std::int64_t number() const override { return record_; }
  void seek(std::uint64_t offset, std::int64_t number) override;
  void rewind() override { seek(0, 0); }
  bool saw_records() const override { return record_ > 0; }
  std::string place(const RawRecord& record) const override;

 private:
  std::string path_;
  std::uint64_t bytes_max_;
  ByteWindow window_;
  std::int64_t record_ = 0;
};

}  // namespace cairn
