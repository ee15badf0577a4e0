#include "data/file/csv_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "core/tensor/known_names.h"
#include "data/feature/printable.h"
#include "data/file/csv_complaints.h"
#include "data/file/line_reader.h"

namespace cairn {
namespace {

// The buffer stays in the second-level cache while its cells are converted. It grows only for a
// record that does not fit, up to a bound: without one, a quote that is never closed, or a file
// that is not text, would be read into memory whole.
constexpr std::size_t kReadBytes = 256u << 10;
constexpr std::size_t kRecordBytesMax = 16u << 20;
constexpr std::size_t kSlack = 8;  // cut_plain() looks at eight bytes at once

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Called for every cell of every line, so it is inlined into the loops.
[[gnu::always_inline]] inline std::string_view trimmed(std::string_view cell) {
  while (!cell.empty() && is_blank(cell.front())) cell.remove_prefix(1);
  while (!cell.empty() && is_blank(cell.back())) cell.remove_suffix(1);
  return cell;
}

// Sets the high bit of each byte of `word` that equals the byte repeated in `pattern`. Exact, since
// nothing is carried between bytes: adding 0x7F to the low 7 bits of a byte sets its high bit
// unless they are all 0.
//   Source  Mycroft's test for a zero byte, in the exact form of Warren, "Hacker's Delight", 6-1.
std::uint64_t matches(std::uint64_t word, std::uint64_t pattern) {
  constexpr std::uint64_t kLow7 = 0x7F7F7F7F7F7F7F7Full;
  std::uint64_t x = word ^ pattern;
  return ~(((x & kLow7) + kLow7) | x | kLow7);
}

}  // namespace

void CsvCells::clear() {
  for (auto& column : columns) column.clear();
  rows.clear();
  faulty = false;
  passed = 0;
}

void CsvCells::erase(const std::vector<bool>& unwanted) {
  auto sift = [&](auto& list) {
    std::size_t to = 0;
    for (std::size_t from = 0; from < list.size(); ++from)
      if (!unwanted[from]) list[to++] = list[from];
    list.resize(to);
  };
  for (auto& column : columns) sift(column);
  sift(rows);
}

std::string CellReader::place(const std::string& path, std::int64_t line,
                              std::int64_t column) const {
  return str(path, ":", line, column > 0 ? str(":", column) : "");
}

CsvReader::CsvReader(std::string path, std::unique_ptr<ByteSource> bytes, const CsvSchema& schema,
                     std::vector<std::size_t> wanted)
    : path_(std::move(path)),
      schema_(schema),
      wanted_(std::move(wanted)),
      bytes_(std::move(bytes)),
      buffer_(kReadBytes + kSlack) {
  begin();
}

// The header is read in each pass: bytes in memory may be others than in the one before.
void CsvReader::rewind() {
  seek(0, 1);
  begin();
}

void CsvReader::begin() {
  slot_of_field_.clear();
  fields_ = schema_.columns.size();
  skip_byte_order_mark();
  if (schema_.header)
    read_header();
  else
    place_columns();
  data_offset_ = offset();
  saw_records_ = false;
}

// The byte order mark that some programs put before UTF-8 is not part of the first cell.
void CsvReader::skip_byte_order_mark() {
  while (end_ < 3 && !at_end_) {
    const std::size_t got = bytes_->read(buffer_.data() + end_, 3 - end_);
    end_ += got;
    at_end_ = got == 0;
  }
  begin_ = byte_order_mark(path_, {buffer_.data(), end_});
}

// Without a header, columns are in the order of the schema.
void CsvReader::place_columns() {
  const bool lacks = lacks_optional_columns();
  std::vector<int> slots(schema_.columns.size(), -1);
  for (std::size_t slot = 0; slot < wanted_.size(); ++slot)
    slots[wanted_[slot]] = static_cast<int>(slot);
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!lacks || !schema_.columns[i].optional) slot_of_field_.push_back(slots[i]);
  fields_ = slot_of_field_.size();
}

// Counts the cells of the first record, which is then read as any other: before columns have
// slots, cutting stores nothing.
bool CsvReader::lacks_optional_columns() {
  const auto optional = static_cast<std::size_t>(
      std::ranges::count_if(schema_.columns, [](const CsvColumn& each) { return each.optional; }));
  Found found;
  if (optional == 0 || !find(found, true) || found.faulty) return false;
  CsvCells none;
  const char *begin = buffer_.data() + found.begin, *end = buffer_.data() + found.end;
  const std::size_t cells =
      found.quoted ? cut_quoted(begin, end, none) : cut_plain(begin, end, none);
  return cells + optional == schema_.columns.size();
}

void CsvReader::read_header() {
  Found found;
  if (!find(found, true)) {  // an empty file, which has no rows either
    fields_ = 0;
    return;
  }
  if (found.faulty)
    throw InvalidArgumentError(
        str(path_, ":", line_ + quote_fault_.line, ":", quote_fault_.column,
            ": the header cannot be read: ", quote_complaint(quote_fault_.kind, schema_)));
  CsvCells header;
  header.columns.resize(1 + std::count(buffer_.begin() + static_cast<std::ptrdiff_t>(found.begin),
                                       buffer_.begin() + static_cast<std::ptrdiff_t>(found.end),
                                       schema_.delimiter));
  slot_of_field_.resize(header.columns.size());
  for (std::size_t i = 0; i < slot_of_field_.size(); ++i) slot_of_field_[i] = static_cast<int>(i);
  fields_ = found.quoted ? cut_quoted(&buffer_[found.begin], buffer_.data() + found.end, header)
                         : cut_plain(&buffer_[found.begin], buffer_.data() + found.end, header);
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < fields_; ++i) titles.emplace_back(header.columns[i].front());
  slot_of_field_.assign(fields_, -1);
  for (std::size_t slot = 0; slot < wanted_.size(); ++slot) {
    const std::string& name = schema_.columns[wanted_[slot]].name;
    auto place = std::find(titles.begin(), titles.end(), name);
    if (place == titles.end()) {
      for (std::string& title : titles) title = printable(title);
      throw InvalidArgumentError(str(path_, ":", line_, ": the header has no column \"", name, "\"",
                                     names_there(name, titles)));
    }
    const auto again = std::find(place + 1, titles.end(), name);
    if (again != titles.end())
      throw InvalidArgumentError(str(path_, ":", line_, ": the header has the column \"", name,
                                     "\" twice, in cells ", place - titles.begin() + 1, " and ",
                                     again - titles.begin() + 1, ": rename one of them"));
    slot_of_field_[static_cast<std::size_t>(place - titles.begin())] = static_cast<int>(slot);
  }
  begin_ = found.next;
  line_ += found.lines;
}

void CsvReader::seek(std::uint64_t offset, std::int64_t line) {
  bytes_->seek(offset);
  base_ = offset;
  begin_ = end_ = 0;
  line_ = line;
  at_end_ = false;
  saw_records_ = offset != data_offset_;
}

// Moves what is left to the front of the buffer and reads on; false: the file has no more. Every
// view into the buffer becomes invalid, so read() refills only while it has cut nothing.
bool CsvReader::refill() {
  if (at_end_) return false;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  base_ += begin_;
  end_ -= begin_;
  begin_ = 0;
  if (end_ + kSlack >= buffer_.size()) {
    if (buffer_.size() > kRecordBytesMax)
      throw InvalidArgumentError(str(path_, ":", line_, ": a line of more than ",
                                     kRecordBytesMax >> 20,
                                     " MB; is this a CSV file, or does a quote never end?"));
    buffer_.resize(buffer_.size() * 2);
  }
  std::size_t got = bytes_->read(buffer_.data() + end_, buffer_.size() - kSlack - end_);
  end_ += got;
  at_end_ = got == 0;
  return got > 0;
}

bool CsvReader::is_comment_or_blank(const Found& found) const {
  std::string_view line(buffer_.data() + found.begin, found.end - found.begin);
  if (!schema_.comment.empty() && line.starts_with(schema_.comment)) return true;
  return line.empty() ||
         (is_blank(line.front()) && schema_.delimiter != line.front() && trimmed(line).empty());
}

// The next record at begin_, past blank lines and comments. False: it is not whole in the buffer
// or, if it may refill, the data is at its end. Only a line that holds a quote takes the slow way
// to its end; memchr() finds all others.
bool CsvReader::find(Found& found, bool may_refill) {
  for (;;) {
    const char* begin = buffer_.data() + begin_;
    const char* line_end = begin_ == end_
                               ? nullptr
                               : static_cast<const char*>(std::memchr(begin, '\n', end_ - begin_));
    bool last = line_end == nullptr && at_end_ && begin_ < end_;  // a last line without its end
    if (line_end == nullptr && !last) {
      if (!may_refill || (!refill() && begin_ == end_)) return false;
      continue;
    }
    found = {.begin = begin_,
             .end = last ? end_ : static_cast<std::size_t>(line_end - buffer_.data())};
    found.next = std::min(found.end + 1, end_);
    found.lines = 1;
    bool comment = is_comment_or_blank(found);
    if (!comment && schema_.quote != 0 &&
        std::memchr(begin, schema_.quote, found.end - found.begin) != nullptr &&
        !find_quoted_end(found)) {
      if (!may_refill) return false;
      refill();
      continue;
    }
    if (found.end > found.begin && buffer_[found.end - 1] == '\r') --found.end;
    if (!comment && !(found.end == found.begin)) return true;
    begin_ = found.next;
    line_ += found.lines;
  }
}

// The end of a record with quotes; that of a faulty one stays the end of its first line. False:
// more bytes are needed.
bool CsvReader::find_quoted_end(Found& found) {
  const QuotedRecord record =
      scan_quotes({buffer_.data() + begin_, end_ - begin_}, at_end_, schema_);
  if (record.state == QuotedRecord::State::kNeedsMore) return false;
  found.quoted = true;
  found.faulty = record.state == QuotedRecord::State::kFaulty;
  if (found.faulty) {
    quote_fault_ = record.fault;
    return true;
  }
  found.end = begin_ + record.end;
  found.next = begin_ + record.next;
  found.lines = record.lines;
  return true;
}

[[gnu::always_inline]] inline void CsvReader::take_cell(std::size_t field, std::string_view cell,
                                                        CsvCells& out) {
  if (field >= slot_of_field_.size()) return;
  int slot = slot_of_field_[field];
  if (slot >= 0)
    out.columns[static_cast<std::size_t>(slot)].push_back(schema_.trim ? trimmed(cell) : cell);
}

// Both ways of cutting return how many cells there are, including those beyond the expected number.
//
// A line without quotes is looked at eight bytes at a time. The last look may go beyond the line,
// which is why the buffer has kSlack bytes more than are read into it.
std::size_t CsvReader::cut_plain(const char* begin, const char* end, CsvCells& out) {
  std::uint64_t pattern = 0x0101010101010101ull * static_cast<unsigned char>(schema_.delimiter);
  std::size_t field = 0;
  const char* cell = begin;
  for (const char* at = begin; at < end; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    for (std::uint64_t hits = matches(word, pattern); hits != 0; hits &= hits - 1) {
      const char* delimiter = at + (std::countr_zero(hits) >> 3);
      if (delimiter >= end) break;
      take_cell(field++, {cell, static_cast<std::size_t>(delimiter - cell)}, out);
      cell = delimiter + 1;
    }
  }
  take_cell(field++, {cell, static_cast<std::size_t>(end - cell)}, out);
  return field;
}

// As many cells as there are columns, of which the last one may hold delimiters.
std::size_t CsvReader::cut_rest(const char* begin, const char* end, CsvCells& out) {
  std::size_t field = 0;
  while (field + 1 < fields_) {
    const char* const delimiter = std::find(begin, end, schema_.delimiter);
    if (delimiter == end) break;
    take_cell(field++, {begin, static_cast<std::size_t>(delimiter - begin)}, out);
    begin = delimiter + 1;
  }
  take_cell(field++, {begin, static_cast<std::size_t>(end - begin)}, out);
  return field;
}

// A quoted cell is copied, since its doubled quotes must go; unquoted_ is a deque, so that the
// views of earlier cells stay valid as it grows. The record is known to be well-formed
// (find_quoted_end()).
std::size_t CsvReader::cut_quoted(const char* begin, const char* end, CsvCells& out) {
  std::size_t field = 0;
  const char* at = begin;
  for (;;) {
    const char* cell = at;
    while (schema_.trim && at < end && is_blank(*at) && *at != schema_.delimiter) ++at;
    if (at < end && *at == schema_.quote) {
      std::string text;
      for (++at; at < end; ++at) {
        if (*at == schema_.quote && !(at + 1 < end && at[1] == schema_.quote)) break;
        if (*at == schema_.quote) ++at;
        text.push_back(*at);
      }
      while (at < end && *at != schema_.delimiter) ++at;  // past the closing quote and blanks
      if (field < slot_of_field_.size() && slot_of_field_[field] >= 0) {
        unquoted_.push_back(std::move(text));
        out.columns[static_cast<std::size_t>(slot_of_field_[field])].push_back(unquoted_.back());
      }
    } else {
      while (at < end && *at != schema_.delimiter) ++at;
      take_cell(field, {cell, static_cast<std::size_t>(at - cell)}, out);
    }
    ++field;
    if (at >= end) return field;
    ++at;
  }
}

// False: the record is faulty, and not taken.
bool CsvReader::cut(const Found& found, CsvCells& out) {
  const char* begin = buffer_.data() + found.begin;
  const char* end = buffer_.data() + found.end;
  std::size_t cells = 0;
  if (!found.faulty)
    cells = schema_.last_takes_rest ? cut_rest(begin, end, out)
            : found.quoted          ? cut_quoted(begin, end, out)
                                    : cut_plain(begin, end, out);
  if (cells == fields_ && !found.faulty) {
    out.rows.push_back({line_, begin, end});
    return true;
  }
  for (auto& column : out.columns) column.resize(out.rows.size());
  out.faulty = true;
  fault_cells_ = cells;
  fault_quote_ = found.faulty ? quote_fault_ : QuoteFault{};
  out.fault_row = {line_ + fault_quote_.line, begin, end};
  return false;
}

RecordFault CsvReader::fault() const {
  if (fault_quote_.kind != QuoteFault::Kind::kNone)
    return {.why = quote_complaint(fault_quote_.kind, schema_), .column = fault_quote_.column};
  const bool is_short = fault_cells_ < fields_;
  return {.why = str(is_short ? "a short row: " : "a long row: ", fault_cells_, " cells where ",
                     fields_, " are expected")};
}

void CsvReader::read(std::int64_t most, std::int64_t first, const CsvPick& pick, CsvCells& out) {
  out.clear();
  unquoted_.clear();
  Found found;
  while (static_cast<std::int64_t>(out.rows.size()) < most && find(found, out.rows.empty())) {
    bool picked = pick.num == 1 || (first + out.passed) % pick.num == pick.index;
    if (picked && !cut(found, out)) {
      if (!out.rows.empty()) {  // met again, alone, by the next call
        out.faulty = false;
        break;
      }
    }
    begin_ = found.next;
    line_ += found.lines;
    ++out.passed;
    if (out.faulty) break;
  }
  saw_records_ |= out.passed > 0;
}

std::int64_t CsvReader::skip(std::int64_t most) {
  Found found;
  std::int64_t passed = 0;
  for (; passed < most && find(found, true); ++passed) {
    begin_ = found.next;
    line_ += found.lines;
  }
  saw_records_ |= passed > 0;
  return passed;
}

}  // namespace cairn
