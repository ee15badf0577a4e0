// LineReader: the lines of a text file, without their ends ("\n" or "\r\n").
#pragma once
#include <memory>
#include <string>

#include "data/file/byte_window.h"
#include "data/file/record_reader.h"

namespace cairn {

struct LineRules {
  bool skip_blank = false;  // lines of blanks alone are no records
  char comment = 0;         // nor are lines whose first character behind blanks it is; 0: none
  std::int64_t bytes_max = 16 << 20;
};

class LineReader final : public RecordReader {
 public:
  // A byte order mark is passed. `path` is for messages.
  //   Errors  InvalidArgument: the file is UTF-16; rewind() raises it, too. Those of reading.
  LineReader(std::string path, std::unique_ptr<ByteSource> bytes, const LineRules& rules);

  bool next(RawRecord& out, bool wanted) override;
  std::uint64_t offset() const override { return window_.offset(); }
  std::int64_t number() const override { return line_; }
  void seek(std::uint64_t offset, std::int64_t number) override;
  void rewind() override;
  bool saw_records() const override { return saw_records_; }
  std::string place(const RawRecord& record) const override;

 private:
  void begin();
  bool take_line(RawRecord& out);
  void drop_line();
  bool is_no_record(std::string_view line) const;

  std::string path_;
  LineRules rules_;
  ByteWindow window_;
  std::uint64_t data_offset_ = 0;  // behind a byte order mark
  std::int64_t line_ = 1;
  bool saw_records_ = false;
};

// The same mark and the same refusal for every file of text: the number of bytes that a byte order
// mark takes at the beginning of `text`.
//   Errors  InvalidArgument: the file is UTF-16.
std::size_t byte_order_mark(const std::string& path, std::string_view text);

}  // namespace cairn
