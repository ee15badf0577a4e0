#include "data/format/json/json_text.h"

#include <deque>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "data/file/line_reader.h"
#include "data/format/cell_source.h"
#include "data/format/cells.h"
#include "data/format/json/object_cells.h"

namespace cairn {
namespace {

constexpr std::size_t kFirstBytes = 64 << 10;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class JsonTextReader final : public CellReader {
 public:
  JsonTextReader(std::string path, std::unique_ptr<ByteSource> bytes, const CsvSchema& schema,
                 const std::vector<std::size_t>& wanted)
      : path_(std::move(path)),
        bytes_(std::move(bytes)),
        parser_(schema, wanted, "text"),
        buffer_(kFirstBytes) {
    begin();
  }

  void read(std::int64_t most, std::int64_t first, const CsvPick& pick, CsvCells& out) override {
    out.clear();
    out.may_lack_values = true;
    texts_.clear();
    while (static_cast<std::int64_t>(out.rows.size()) < most) {
      const Place before = at_;
      const std::optional<std::string_view> object = next_object();
      if (!object && fault_.why.empty()) break;
      if (!object) {
        if (!out.rows.empty()) {  // met again, alone, by the next call
          at_ = before;
          break;
        }
        out.faulty = true;
        out.fault_row = {at_.row, text_.data() + at_.offset, text_.data() + text_.size()};
        at_ = {text_.size(), at_.row + 1, true};  // where the next object begins cannot be known
        ++out.passed;
        break;
      }
      if (pick.num == 1 || (first + out.passed) % pick.num == pick.index) {
        for (std::size_t i = 0; i < out.columns.size(); ++i)
          out.columns[i].push_back(parser_.cells()[i]);
        out.rows.push_back({before.row, object->data(), object->data() + object->size()});
      }
      ++out.passed;
    }
    saw_records_ |= out.passed > 0;
  }
  std::int64_t skip(std::int64_t most) override {
    std::int64_t passed = 0;
    texts_.clear();
    for (; passed < most; ++passed) {
      const Place before = at_;
      if (next_object()) continue;
      at_ = before;  // a fault is reported by read()
      break;
    }
    saw_records_ |= passed > 0;
    return passed;
  }
  RecordFault fault() const override { return fault_; }
  std::string place(const std::string& path, std::int64_t row, std::int64_t column) const override {
    return str(path, ": row ", row, column > 0 ? str(", character ", column) : "");
  }

  std::uint64_t offset() const override { return at_.offset; }
  std::int64_t number() const override { return at_.row; }
  void seek(std::uint64_t offset, std::int64_t row) override {
    if (offset > text_.size())
      throw InvalidArgumentError(str(path_, ": it has fewer than ", offset, " bytes"));
    at_ = {offset, row, false};
    saw_records_ = row > 1;
  }
  void rewind() override {
    bytes_->seek(0);
    begin();
  }
  bool saw_records() const override { return saw_records_; }

 private:
  struct Place {
    std::size_t offset = 0;  // in text_
    std::int64_t row = 1;    // the next object's number
    bool at_end = false;     // behind the list, or a fault
  };

  void begin() {
    std::size_t size = 0;
    while (const std::size_t got = bytes_->read(buffer_.data() + size, buffer_.size() - size)) {
      size += got;
      if (size == buffer_.size()) buffer_.resize(2 * size);
    }
    text_ = {buffer_.data(), size};
    at_ = {byte_order_mark(path_, text_), 1, false};
    saw_records_ = false;
    pass_blanks();
    is_list_ = next_is('[');
    if (is_list_) ++at_.offset;
  }
  // Whether a line ended there.
  bool pass_blanks() {
    const std::size_t from = at_.offset;
    while (at_.offset < text_.size() && is_blank(text_[at_.offset])) ++at_.offset;
    return text_.substr(from, at_.offset - from).find('\n') != text_.npos;
  }
  bool next_is(char c) const { return at_.offset < text_.size() && text_[at_.offset] == c; }

  // The next object, whose cells the parser has. None: the text is at its end, or fault_ says why
  // it cannot be read.
  std::optional<std::string_view> next_object() {
    fault_ = {};
    if (at_.at_end || !(is_list_ ? pass_comma() : find_next())) return {};
    if (!next_is('{')) return refuse("an object is wanted, and something else stands there");
    const std::string_view rest = text_.substr(at_.offset);
    const std::optional<std::size_t> size = parser_.parse(rest, texts_);
    if (!size) {
      fault_ = parser_.fault();
      return {};
    }
    at_.offset += *size;
    while (is_blank(text_[at_.offset - 1])) --at_.offset;  // pass_blanks() looks at them
    ++at_.row;
    return rest.substr(0, *size);
  }
  bool find_next() {
    const bool parted = pass_blanks() || at_.row == 1;
    if (at_.offset == text_.size()) return false;
    if (!parted) refuse("text follows the object before it on the same line");
    return parted;
  }
  bool pass_comma() {
    pass_blanks();
    if (next_is(']')) return close_list();
    if (at_.row > 1) {
      if (!next_is(',')) {
        refuse(at_.offset == text_.size() ? "the list of objects is not closed"
                                          : "objects of a list are parted by commas");
        return false;
      }
      ++at_.offset;
      pass_blanks();
    }
    return true;
  }
  bool close_list() {
    ++at_.offset;
    pass_blanks();
    at_.at_end = true;
    if (at_.offset < text_.size()) refuse("text follows the list of objects");
    return false;
  }
  std::nullopt_t refuse(std::string why) {
    fault_.why = "this is not JSON of rows: " + std::move(why);
    return std::nullopt;
  }

  std::string path_;
  std::unique_ptr<ByteSource> bytes_;
  ObjectParser parser_;
  std::vector<char> buffer_;  // keeps its size from text to text
  std::string_view text_;     // in buffer_
  Place at_;
  bool is_list_ = false, saw_records_ = false;
  std::deque<std::string> texts_;  // that are not as the text has them
  RecordFault fault_;
};

}  // namespace

Dataset json_text(std::string name, const CsvSchema& schema) {
  return dataset_of(std::make_shared<JsonTextFiles>(std::vector<std::string>{std::move(name)},
                                                    object_schema(schema), CsvOptions()));
}

ElementSpec JsonTextFiles::element() const { return element_of_cells(schema); }

FileSourcePtr JsonTextFiles::without_column(const std::string& column) const {
  const std::optional<CsvSchema> without = without_cells(schema, column);
  if (!without) return nullptr;
  return changed([&](JsonTextFiles& copy) { copy.schema = *without; });
}

StagePtr JsonTextFiles::open(SourceRequest request) const {
  const auto open = [this](const std::string& path, std::unique_ptr<ByteSource> bytes,
                           const std::vector<std::size_t>& wanted) {
    return std::make_unique<JsonTextReader>(path, std::move(bytes), schema, wanted);
  };
  CellSourceParts parts{{paths, options.on_error, options.empty_files}, &schema, open};
  return make_cell_source(std::move(parts), std::move(request));
}

void JsonTextFiles::write(StageWriter&) const {
  throw InvalidArgumentError(
      "json_text(): a text in memory does not travel; write JSON lines to a file, and read them by "
      "json_lines()");
}

}  // namespace cairn
