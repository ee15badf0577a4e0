// CsvReader: cuts the text of one CSV file into records and cells, without looking at what is in
// them.
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

// The cells of some records, column by column. They point into the reader's buffer: good until its
// next call.
struct CsvCells {
  struct Row {
    std::int64_t line = 0;                        // of the file, from 1
    const char *begin = nullptr, *end = nullptr;  // of the record in the buffer
  };
  std::vector<std::vector<std::string_view>> columns;  // those wanted, in the order wanted
  std::vector<Row> rows;
  // The record after these has a wrong number of cells, or a quote that is wrong: `fault_row`.
  bool faulty = false;
  std::size_t fault_cells = 0;  // how many there are
  QuoteFault fault_quote;       // of no kind: the number of cells is wrong
  Row fault_row;
  std::int64_t passed = 0;  // records gone by, wanted or not, the faulty one included

  void clear();
  void erase(const std::vector<bool>& unwanted);  // rows
};

// Which records to cut: those whose number n (from 0 at the beginning of the data) has n % num ==
// index.
struct CsvPick {
  std::int64_t num = 1, index = 0;
};

// Thread: one at a time.
class CsvReader {
 public:
  // Finds the `wanted` columns (places in schema.columns) by position, or by the header. NotFound:
  // no such file. InvalidArgument: the header has no such column (names the nearest), or the file
  // is UTF-16.
  CsvReader(std::string path, const CsvSchema& schema, const std::vector<std::size_t>& wanted,
            OptionNames names);

  // Cuts up to `most` picked records that lie whole in the buffer, from record number `first` of
  // the data on. Nothing passed: the end of the file. Stops before a faulty record if it has cut
  // others.
  void read(std::int64_t most, std::int64_t first, const CsvPick& pick, CsvCells& out);
  // Goes past up to `most` records without cutting them; how many.
  std::int64_t skip(std::int64_t most);

  // Where the next record begins: for a later seek(). `line` is for messages only.
  std::uint64_t offset() const { return base_ + begin_; }
  std::int64_t line() const { return line_; }
  void seek(std::uint64_t offset, std::int64_t line);
  void rewind() { seek(data_offset_, data_line_); }
  const std::string& path() const { return path_; }
  std::size_t fields() const { return fields_; }  // cells that a record must have
  // Whether any record has gone by since the beginning of the data, or had before a seek().
  bool saw_records() const { return saw_records_; }

 private:
  // A record found in the buffer: [begin, end) without its line end, and where the next one begins.
  struct Found {
    std::size_t begin = 0, end = 0, next = 0;
    std::int64_t lines = 0;  // line ends in it
    bool quoted = false;     // holds a quote: cut it with care
    bool faulty = false;     // quote_fault_ says how
  };
  bool find(Found& found, bool may_refill);
  bool find_quoted_end(Found& found);
  void skip_byte_order_mark();
  bool refill();
  bool is_comment_or_blank(const Found& found) const;
  bool cut(const Found& found, CsvCells& out);
  std::size_t cut_plain(const char* begin, const char* end, CsvCells& out);
  std::size_t cut_quoted(const char* begin, const char* end, CsvCells& out);
  void take_cell(std::size_t field, std::string_view cell, CsvCells& out);
  void read_header(const std::vector<std::size_t>& wanted, OptionNames names);

  std::string path_;
  const CsvSchema& schema_;
  std::unique_ptr<ByteSource> bytes_;
  std::vector<int> slot_of_field_;  // which column of CsvCells a field becomes; -1: none
  std::size_t fields_;
  std::vector<char> buffer_;         // kSlack bytes longer than what is read into it
  std::size_t begin_ = 0, end_ = 0;  // what is in the buffer and not yet gone by
  std::uint64_t base_ = 0;           // the file offset of buffer_[0]
  std::int64_t line_ = 1;
  bool saw_records_ = false;
  QuoteFault quote_fault_;         // of the record found last, if it is faulty
  bool at_end_ = false;            // of the file; the buffer may still hold some
  std::uint64_t data_offset_ = 0;  // behind the header
  std::int64_t data_line_ = 1;
  std::deque<std::string> unquoted_;  // cells that are not in the buffer as such
};

}  // namespace cairn
