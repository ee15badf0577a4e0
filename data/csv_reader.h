// CsvReader: cuts the text of one CSV file into records and cells, without looking at what is in
// them.
//
// Three things are kept apart so that each stays fast or stays clear: finding where a record ends,
// cutting it into cells, and decoding cells (data/csv_cells.h). Columns that nobody wants are never
// stored.
//   Source  RFC 4180, with the freedoms of CsvSchema.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_source.h"
#include "data/csv_quotes.h"
#include "data/schema.h"

namespace cairn {

// The cells of some records, column by column. They point into the reader's buffer and are valid
// until its next call.
struct CsvCells {
  struct Row {
    std::int64_t line = 0;                        // of the file, from 1
    const char *begin = nullptr, *end = nullptr;  // of the record in the buffer
  };
  std::vector<std::vector<std::string_view>> columns;  // those wanted, in the order wanted
  std::vector<Row> rows;
  // The record after these is faulty: it has a wrong number of cells, or a wrong quote. It is not
  // among `rows`; `fault_row` says where it is.
  bool faulty = false;
  std::size_t fault_cells = 0;  // how many cells it has
  QuoteFault fault_quote;       // kNone: the number of cells is wrong
  Row fault_row;
  std::int64_t passed = 0;  // records passed, wanted or not, the faulty one included

  void clear();                                   // keeps the memory of the lists
  void erase(const std::vector<bool>& unwanted);  // rows
};

// Which records to cut: those whose number n (from 0 at the beginning of the data) has n % num ==
// index. Records of other shards are found but never cut.
struct CsvPick {
  std::int64_t num = 1, index = 0;
};

// One open file.
//   Thread  one at a time.
//   Cost  one look at each byte to find line ends, one at those of wanted records to find cells.
class CsvReader {
 public:
  // Opens the file and finds the `wanted` columns (places in schema.columns) by position, or by the
  // header. `schema` must outlive the reader.
  //   Errors  NotFound: there is no such file. InvalidArgument: the header lacks a column (names
  //           the nearest), or the file is UTF-16.
  CsvReader(std::string path, const CsvSchema& schema, const std::vector<std::size_t>& wanted,
            Pipes pipes);

  // Cuts up to `most` picked records that lie whole in the buffer; the next record is number
  // `first` of the data. If none has passed, the file is at its end. It stops before a faulty
  // record if it has cut others, so that a faulty one always comes alone.
  //   Errors  InvalidArgument: a line is longer than 16 MB. DataLoss: a compressed file is damaged.
  void read(std::int64_t most, std::int64_t first, const CsvPick& pick, CsvCells& out);
  // Goes past up to `most` records without cutting them, and tells past how many.
  std::int64_t skip(std::int64_t most);

  // Where the next record begins, in bytes of the decompressed file: for a later seek(), which must
  // be given such an offset. `line` is for messages only.
  std::uint64_t offset() const { return base_ + begin_; }
  std::int64_t line() const { return line_; }
  void seek(std::uint64_t offset, std::int64_t line);
  void rewind() { seek(data_offset_, data_line_); }
  const std::string& path() const { return path_; }
  std::size_t fields() const { return fields_; }  // cells that a record must have
  // Whether any record has been passed since the beginning of the data, or had been before a
  // seek(). A file without one is told to the user: most often it was cut short on its way.
  bool saw_records() const { return saw_records_; }

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
  void read_header(const std::vector<std::size_t>& wanted);
  void place_columns(const std::vector<std::size_t>& wanted);
  bool lacks_optional_columns();

  std::string path_;
  const CsvSchema& schema_;
  std::unique_ptr<ByteSource> bytes_;
  std::vector<int> slot_of_field_;  // which column of CsvCells a field becomes; -1: none
  std::size_t fields_;
  std::vector<char> buffer_;         // kSlack bytes longer than what is read into it
  std::size_t begin_ = 0, end_ = 0;  // what is in the buffer and not yet passed
  std::uint64_t base_ = 0;           // the file offset of buffer_[0]
  std::int64_t line_ = 1;
  bool saw_records_ = false;
  QuoteFault quote_fault_;         // of the record found last, if it is faulty
  bool at_end_ = false;            // of the file; the buffer may still hold some
  std::uint64_t data_offset_ = 0;  // behind the header
  std::int64_t data_line_ = 1;
  // Text of quoted cells, whose doubled quotes are gone; a deque, since views refer to its
  // elements.
  std::deque<std::string> unquoted_;
};

}  // namespace cairn
