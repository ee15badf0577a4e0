// RecordReader: one open file, cut into records without a look at what is in them: lines
// (data/file/line_reader.h), or records with a length before them (data/file/tfrecord_reader.h).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

// Says why a record, or a value in it, cannot be used.
struct RecordFault {
  std::string why;          // empty: it can be used
  std::int64_t column = 0;  // the character in the line, from 1; 0: not known
  bool damaged = false;     // the bytes are not those that were written: DataLoss
  // Where the next record begins cannot be known: the rest of the file cannot be read.
  bool rest_lost = false;
};

struct RawRecord {
  std::string_view bytes;    // in the reader's buffer, until its next call
  std::int64_t number = 0;   // a line from 1, a record from 0
  std::uint64_t offset = 0;  // where it begins in the decompressed file
  RecordFault fault;
};

// One open file of records: where it stands.
class FileReader {
 public:
  virtual ~FileReader() = default;
  // Where the next record begins, in bytes of the decompressed file: for a later seek(), which must
  // be given such an offset. The number, of a line or a record, is for messages.
  virtual std::uint64_t offset() const = 0;
  virtual std::int64_t number() const = 0;
  virtual void seek(std::uint64_t offset, std::int64_t number) = 0;
  // Back to the first record.
  virtual void rewind() = 0;
  // Whether any record has been passed since the beginning of the data, or had been before a
  // seek(). A file without one is reported to the user: most often it was cut short on its way.
  virtual bool saw_records() const = 0;
};

// Thread: one at a time.
class RecordReader : public FileReader {
 public:
  // Takes the next record; false: the file has no more. If it is not `wanted`, it need not be
  // checked, and `out.bytes` may stay empty.
  //   Errors  DataLoss: a compressed file is damaged; and those of reading files. What is wrong
  //           with one record is its fault.
  virtual bool next(RawRecord& out, bool wanted) = 0;
  // Where a record is, for messages: "FILE:LINE" or "FILE: record 3 at byte 120".
  virtual std::string place(const RawRecord& record) const = 0;
};

}  // namespace cairn
