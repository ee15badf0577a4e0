#include "data/file/line_reader.h"

#include <cstring>

#include "core/base/error.h"
#include "data/feature/printable.h"

namespace cairn {
namespace {

bool is_blank_in_line(char c) { return c == ' ' || c == '\t'; }

}  // namespace

std::size_t byte_order_mark(const std::string& path, std::string_view text) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    throw InvalidArgumentError(
        str(path, " is UTF-16 (its first bytes are ", printable(text.substr(0, 2)),
            "), and text must be UTF-8: convert it, as with `iconv -f UTF-16 -t UTF-8`"));
  return text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
}

LineReader::LineReader(std::string path, std::unique_ptr<ByteSource> bytes, const LineRules& rules)
    : path_(std::move(path)), rules_(rules), window_(std::move(bytes)) {
  begin();
}

// Bytes in memory may be others than in the pass before.
void LineReader::rewind() {
  seek(0, 1);
  begin();
}

void LineReader::begin() {
  while (window_.view().size() < 3 && window_.more()) continue;
  data_offset_ = byte_order_mark(path_, window_.view());
  window_.pass(data_offset_);
  saw_records_ = false;
}

void LineReader::seek(std::uint64_t offset, std::int64_t number) {
  window_.seek(offset);
  line_ = number;
  saw_records_ = offset != data_offset_;
}

bool LineReader::is_no_record(std::string_view line) const {
  if (!rules_.skip_blank && rules_.comment == 0) return false;
  while (!line.empty() && is_blank_in_line(line.front())) line.remove_prefix(1);
  if (line.empty()) return rules_.skip_blank;
  return rules_.comment != 0 && line.front() == rules_.comment;
}

bool LineReader::next(RawRecord& out, bool) {
  while (take_line(out)) {
    if (out.fault.why.empty() && is_no_record(out.bytes)) continue;
    saw_records_ = true;
    return true;
  }
  return false;
}

// `looked` keeps a long line from being searched from its beginning after each read.
bool LineReader::take_line(RawRecord& out) {
  out.fault.why.clear();
  out.number = line_;
  out.offset = window_.offset();
  for (std::size_t looked = 0;;) {
    const std::string_view text = window_.view();
    const char* begin = text.data();
    const auto* line_end =
        looked == text.size()
            ? nullptr
            : static_cast<const char*>(std::memchr(begin + looked, '\n', text.size() - looked));
    const std::size_t size =
        line_end != nullptr ? static_cast<std::size_t>(line_end - begin) : text.size();
    if (size > static_cast<std::size_t>(rules_.bytes_max)) {
      drop_line();
      out.bytes = {};
      out.fault = {.why = str("a line of more than ", rules_.bytes_max,
                              " bytes; is this a file of text lines?")};
      ++line_;
      return true;
    }
    if (line_end == nullptr) {
      looked = text.size();
      if (window_.more()) continue;
      if (text.empty()) return false;
    }
    out.bytes = text.substr(0, size);
    if (out.bytes.ends_with('\r')) out.bytes.remove_suffix(1);
    window_.pass(line_end != nullptr ? size + 1 : size);
    ++line_;
    return true;
  }
}

// Passes a line that is too long to be kept.
void LineReader::drop_line() {
  for (;;) {
    const std::string_view text = window_.view();
    const std::size_t line_end = text.find('\n');
    window_.pass(line_end == text.npos ? text.size() : line_end + 1);
    if (line_end != text.npos || !window_.more()) return;
  }
}

std::string LineReader::place(const RawRecord& record) const {
  return str(path_, ":", record.number);
}

}  // namespace cairn
