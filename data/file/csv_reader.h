// CsvReader: cuts the text of one CSV file into records and cells, without looking at what is in
// them.
//
// Three things are kept apart so that each stays fast or stays clear: finding where a record ends,
// cutting it into cells, and decoding cells (data/format/csv_cells.h). Columns that are not read
// are never stored.
//   Source  RFC 4180, with the freedoms of CsvSchema.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset/schema.h"
#include "data/file/byte_source.h"
#include "data/file/cell_reader.h"
#include "data/file/csv_quotes.h"

namespace cairn {

// One open file.
//   Thread  one at a time.
//   Cost  one look at each byte to find line ends, one at those of wanted records to find cells.
class CsvReader final : public CellReader {
 public:
  // Finds the `wanted` columns (places in schema.columns) by position, or by the header. `path` is
  // for messages; `schema` must outlive the reader.
  //   Errors  InvalidArgument: the header lacks a column (names the nearest), or the file is
  //           UTF-16; rewind() raises these, too. Those of reading.
  CsvReader(std::string path, std::unique_ptr<ByteSource> bytes, const CsvSchema& schema,
            std::vector<std::size_t> wanted);

  // Those that lie whole in the buffer.
  void read(std::int64_t most, std::int64_t first, const CsvPick& pick, CsvCells& out) override;
  std::int64_t skip(std::int64_t most) override;
  RecordFault fault() const override;

  std::uint64_t offset() const override { return base_ + begin_; }
  std::int64_t number() const override { return line_; }
  void seek(std::uint64_t offset, std::int64_t number) override;
  void rewind() override;
  bool saw_records() const override { return saw_records_; }

 private:
  // A record found in the buffer: [begin, end) without its line end, and where the next one begins.
  struct Found {
    std::size_t begin = 0, end = 0, next = 0;
    std::int64_t lines = 0;  // line ends in it
    bool quoted = false;     // holds a quote: cut it with care
    bool faulty = false;     // quote_fault_ says how
  };
  // The steps of read(): find a record (for one with quotes, its true end), leave out comments and
  // blank lines, cut it into cells, hand each wanted cell to its column. Each is explained where it
  // is defined.
  bool find(Found& found, bool may_refill);
  bool find_quoted_end(Found& found);
  void skip_byte_order_mark();
  bool refill();
  bool is_comment_or_blank(const Found& found) const;
  bool cut(const Found& found, CsvCells& out);
  std::size_t cut_plain(const char* begin, const char* end, CsvCells& out);
  std::size_t cut_rest(const char* begin, const char* end, CsvCells& out);
  std::size_t cut_quoted(const char* begin, const char* end, CsvCells& out);
  void take_cell(std::size_t field, std::string_view cell, CsvCells& out);
  void begin();
  void read_header();
  void place_columns();
  bool lacks_optional_columns();

  std::string path_;
  const CsvSchema& schema_;
  const std::vector<std::size_t> wanted_;
  std::unique_ptr<ByteSource> bytes_;
  std::vector<int> slot_of_field_;  // which column of CsvCells a field becomes; -1: none
  std::size_t fields_ = 0;
  std::vector<char> buffer_;         // kSlack bytes longer than what is read into it
  std::size_t begin_ = 0, end_ = 0;  // the buffer's bytes that are not yet passed
  std::uint64_t base_ = 0;           // the file offset of buffer_[0]
  std::int64_t line_ = 1;
  bool saw_records_ = false;
  QuoteFault quote_fault_;  // of the record found last, if it is faulty
  // The record that read() found faulty; kNone: it has a wrong number of cells.
  QuoteFault fault_quote_;
  std::size_t fault_cells_ = 0;
  bool at_end_ = false;            // of the file; the buffer may still hold some
  std::uint64_t data_offset_ = 0;  // behind the header
  // Text of quoted cells, whose doubled quotes are gone; a deque, since views refer to its
  // elements.
  std::deque<std::string> unquoted_;
};

}  // namespace cairn
