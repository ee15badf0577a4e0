// CellReader: one open file, cut into records and their cells, without a look at what is in them:
// CSV (data/file/csv_reader.h) and the objects of JSON lines.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/file/record_reader.h"

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
  // The record after these is faulty: it cannot be cut into cells. It is not among `rows`;
  // `fault_row` says where it is.
  bool faulty = false;
  Row fault_row;
  std::int64_t passed = 0;  // records passed, wanted or not, the faulty one included
  // Whether a record may have no value for a column: a cell without data.
  bool may_lack_values = false;

  void clear();                                   // keeps the memory of the lists
  void erase(const std::vector<bool>& unwanted);  // rows
};

// Which records to cut: those whose number n (from 0 at the beginning of the data) has n % num ==
// index. Records of other shards are found but never cut.
struct CsvPick {
  std::int64_t num = 1, index = 0;
};

// Thread: one at a time.
class CellReader : public FileReader {
 public:
  // Cuts up to `most` picked records; the next record is number `first` of the data. If none has
  // passed, the file is at its end. It stops before a faulty record if it has cut others, so that a
  // faulty one always comes alone.
  //   Errors  InvalidArgument: a line is longer than 16 MB. DataLoss: a compressed file is damaged.
  virtual void read(std::int64_t most, std::int64_t first, const CsvPick& pick, CsvCells& out) = 0;
  // Goes past up to `most` records without cutting them. Returns how many it passed.
  virtual std::int64_t skip(std::int64_t most) = 0;
  // Where a record is that has the number `line` (CsvCells::Row), for messages. `column`: the
  // character in it, from 1; 0: not known.
  virtual std::string place(const std::string& path, std::int64_t line, std::int64_t column) const;
  // The fault of the last record that read() found faulty.
  virtual RecordFault fault() const = 0;
};

}  // namespace cairn
