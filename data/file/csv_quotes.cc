#include "data/file/csv_quotes.h"

namespace cairn {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t'; }

// A state machine, one character at a time. It is slow, and only lines that hold a quote come here.
//
// A record whose quote is never closed would swallow the rest of the file. It is therefore faulty
// after cell_lines_max lines (1 unless the schema says otherwise), and the reader goes on behind
// its first line: one stray quote costs one line.
class Scan {
 public:
  Scan(std::string_view text, bool at_end, const CsvSchema& schema)
      : text_(text), at_end_(at_end), schema_(schema) {}

  QuotedRecord run() {
    for (; at_ < text_.size() && record_.state == QuotedRecord::State::kNeedsMore; ++at_)
      take(text_[at_]);
    if (record_.state == QuotedRecord::State::kNeedsMore && at_end_) {
      if (place_ == Place::kInside)
        fail(opened_);
      else
        finish(text_.size(), text_.size());
    }
    return record_;
  }

 private:
  // Where in a cell the scan is: at its beginning, in plain text, within quotes, behind the closing
  // one.
  enum class Place { kCellBegins, kPlain, kInside, kClosed };

  void take(char c) {
    if (place_ == Place::kInside)
      inside(c);
    else if (c == '\n')
      finish(at_, at_ + 1);
    else if (c == schema_.delimiter)
      place_ = Place::kCellBegins;
    else if (place_ == Place::kClosed)
      closed(c);
    else if (c == schema_.quote)
      quote();
    else if (!(place_ == Place::kCellBegins && schema_.trim && is_space(c)))
      place_ = Place::kPlain;
  }

  void quote() {
    if (place_ == Place::kCellBegins) {
      place_ = Place::kInside;
      opened_ = here(QuoteFault::Kind::kNotClosed);
    } else if (schema_.strict) {
      fail(here(QuoteFault::Kind::kWithinCell));
    }
  }

  void inside(char c) {
    if (c == '\n') {
      ++record_.lines;
      line_begin_ = at_ + 1;
      if (record_.lines - opened_.line >= schema_.cell_lines_max) fail(opened_);
    } else if (c == schema_.quote) {
      if (at_ + 1 < text_.size() && text_[at_ + 1] == schema_.quote)
        ++at_;
      else
        place_ = Place::kClosed;
    }
  }

  // Behind a closing quote only blanks may follow, and the carriage return of a line that ends in
  // "\r\n".
  void closed(char c) {
    const bool line_end = c == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n');
    if (!is_space(c) && !line_end)
      fail({QuoteFault::Kind::kTextBehind, opened_.line, opened_.column});
  }

  QuoteFault here(QuoteFault::Kind kind) const {
    return {kind, record_.lines, static_cast<std::int64_t>(at_ - line_begin_) + 1};
  }
  void fail(const QuoteFault& fault) {
    record_.state = QuotedRecord::State::kFaulty;
    record_.fault = fault;
  }
  void finish(std::size_t end, std::size_t next) {
    record_.state = QuotedRecord::State::kWhole;
    record_.end = end;
    record_.next = next;
    ++record_.lines;
  }

  std::string_view text_;
  bool at_end_;
  const CsvSchema& schema_;
  std::size_t at_ = 0, line_begin_ = 0;
  Place place_ = Place::kCellBegins;
  QuoteFault opened_;
  QuotedRecord record_;
};

}  // namespace

QuotedRecord scan_quotes(std::string_view text, bool at_end, const CsvSchema& schema) {
  return Scan(text, at_end, schema).run();
}

}  // namespace cairn
