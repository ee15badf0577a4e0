// Where a record with quotes ends, and what is wrong with its quotes.
//   Source  RFC 4180, "Common format and MIME type for CSV files", with the freedoms that CsvSchema
//           allows: another delimiter, another quote, blanks around a quoted cell.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/dataset/schema.h"

namespace cairn {

// kNotClosed: a quote is opened and not closed within cell_lines_max lines. kTextBehind: text
// follows a closing quote. kWithinCell: a quote within a cell that does not begin with one, under
// `strict`.
struct QuoteFault {
  enum class Kind { kNone, kNotClosed, kTextBehind, kWithinCell };
  Kind kind = Kind::kNone;
  std::int64_t line = 0;    // from 0, the record's first
  std::int64_t column = 0;  // of the quote that opens the cell, or stands within it; from 1
};

// Result of a look at a record: it is whole, it needs more bytes, or it is faulty.
struct QuotedRecord {
  enum class State { kWhole, kNeedsMore, kFaulty };
  State state = State::kNeedsMore;
  // For a whole record: its length without the last line end, and where the next one begins.
  std::size_t end = 0, next = 0;
  std::int64_t lines = 0;
  QuoteFault fault;
};

// Looks at the record with which `text` begins. `at_end`: nothing comes after `text`. A faulty
// record has no known end: the caller takes its first line for it, so that the lines after it are
// read.
QuotedRecord scan_quotes(std::string_view text, bool at_end, const CsvSchema& schema);

}  // namespace cairn
