// A line is parsed by Boost.JSON's parser of events, which allocates nothing and gives the text of
// numbers, so that an id of 19 digits is never a double on its way. The cells are views of the line
// where they have no escapes.
#include "data/format/json_lines.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/src.hpp>
#include <deque>
#include <map>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "data/feature/printable.h"
#include "data/file/line_reader.h"
#include "data/format/cell_source.h"
#include "data/format/cells.h"
#include "data/format/wire_parts.h"

namespace cairn {
namespace {

using boost::json::error_code;

// Between the values of a list, in a cell of several; no text of a list may hold it.
constexpr char kListSeparator = '\x1f';
constexpr std::size_t kTextBytesAtOnce = 1 << 20;
constexpr std::size_t kDepthMax = 64;

// Takes the events of one line's object, and makes cells of the values of wanted columns.
class ObjectCells {
 public:
  static constexpr std::size_t max_object_size = std::size_t(-1), max_array_size = std::size_t(-1),
                               max_key_size = std::size_t(-1), max_string_size = std::size_t(-1);

  ObjectCells(const CsvSchema& schema, const std::vector<std::size_t>& wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const CsvColumn& column = schema.columns[wanted[i]];
      slots_.emplace(column.name, i);
      columns_.push_back(&column);
    }
    cells_.resize(wanted.size());
  }

  // Before each line. `texts` is where texts with escapes go.
  void begin(std::string_view line, std::deque<std::string>& texts) {
    line_ = line;
    texts_ = &texts;
    cells_.assign(columns_.size(), std::string_view());
    seen_.assign(columns_.size(), false);
    depth_ = 0;
    slot_ = kNone;
    fault_ = {};
    pieces_.clear();
  }
  // A column without a value has a cell without data.
  const std::vector<std::string_view>& cells() const { return cells_; }
  // Why the values cannot be used; empty: they can.
  const RecordFault& fault() const { return fault_; }

  // ---- the parser's events ----
  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code& error) {
    if (++depth_ == 1) return true;
    return slot_ == kNone || refuse_nested("an object", error);
  }
  bool on_object_end(std::size_t, error_code& error) { return close(error); }
  bool on_array_begin(error_code& error) {
    if (++depth_ == 1) return refuse("the line is a list, and an object is wanted", error);
    if (slot_ == kNone) return true;
    if (depth_ > 2 || columns_[slot_]->separator == 0) return refuse_nested("a list", error);
    texts_->emplace_back();
    is_first_ = true;
    return true;
  }
  bool on_array_end(std::size_t, error_code& error) {
    if (depth_ == 2 && slot_ != kNone) cells_[slot_] = texts_->back();
    return close(error);
  }
  bool on_key_part(std::string_view part, std::size_t, error_code&) {
    pieces_ += part;
    return true;
  }
  bool on_key(std::string_view rest, std::size_t, error_code& error) {
    const std::string_view key = whole(rest);
    if (depth_ == 1) {
      at_ = key;
      const auto found = slots_.find(key);
      slot_ = found == slots_.end() ? kNone : found->second;
    }
    pieces_.clear();
    if (depth_ > 1 || slot_ == kNone) return true;
    if (seen_[slot_]) return refuse("the key stands there twice", error);
    seen_[slot_] = true;
    return true;
  }
  bool on_string_part(std::string_view part, std::size_t, error_code&) {
    if (slot_ != kNone) pieces_ += part;
    return true;
  }
  bool on_string(std::string_view rest, std::size_t, error_code& error) {
    return take(rest, error, true);
  }
  bool on_number_part(std::string_view part, error_code&) {
    if (slot_ != kNone) pieces_ += part;
    return true;
  }
  bool on_int64(std::int64_t, std::string_view rest, error_code& error) {
    return take(rest, error, false);
  }
  bool on_uint64(std::uint64_t, std::string_view rest, error_code& error) {
    return take(rest, error, false);
  }
  bool on_double(double, std::string_view rest, error_code& error) {
    return take(rest, error, false);
  }
  bool on_bool(bool value, error_code& error) {
    return take(value ? "true" : "false", error, false);
  }
  bool on_null(error_code& error) {
    if (depth_ == 0) return refuse_no_object(error);
    if (slot_ == kNone) return true;
    if (depth_ > 1) return refuse("null stands in its list, and a value is wanted", error);
    slot_ = kNone;
    return true;
  }
  bool on_comment_part(std::string_view, error_code&) { return true; }
  bool on_comment(std::string_view, error_code&) { return true; }

 private:
  static constexpr std::size_t kNone = std::size_t(-1);

  std::string_view whole(std::string_view rest) {
    if (pieces_.empty()) return rest;
    pieces_ += rest;
    return pieces_;
  }
  bool close(error_code&) {
    if (--depth_ == 1) slot_ = kNone;
    return true;
  }
  bool take(std::string_view rest, error_code& error, bool is_text) {
    if (depth_ == 0) return refuse_no_object(error);
    if (slot_ == kNone) return true;
    if (depth_ > 1) return take_item(whole(rest), error, is_text);
    if (columns_[slot_]->separator != 0)
      return refuse("one value stands there, and a list is wanted", error);
    if (pieces_.empty() && is_in_line(rest)) {
      cells_[slot_] = rest;
    } else {
      texts_->emplace_back(whole(rest));
      cells_[slot_] = texts_->back();
      pieces_.clear();
    }
    slot_ = kNone;
    return true;
  }
  // A list becomes a cell of several values (CsvColumn::separator).
  bool take_item(std::string_view item, error_code& error, bool is_text) {
    if (is_text && item.empty())
      return refuse("an empty text stands in its list, and cannot be told from none", error);
    if (is_text && item.find(kListSeparator) != item.npos)
      return refuse("a text of its list holds the character U+001F, which parts its values", error);
    std::string& list = texts_->back();
    if (!is_first_) list += kListSeparator;
    is_first_ = false;
    list += item;
    pieces_.clear();
    return true;
  }
  bool is_in_line(std::string_view text) const {
    return !std::less<>()(text.data(), line_.data()) &&
           !std::less<>()(line_.data() + line_.size(), text.data());
  }

  bool refuse(const std::string& why, error_code& error) {
    const bool named = slot_ != kNone;
    fault_.why = named ? str("column \"", printable(columns_[slot_]->name), "\": ", why) : why;
    if (named && is_in_line(at_)) fault_.column = at_.data() - line_.data() + 1;
    error = boost::json::error::syntax;
    return false;
  }
  bool refuse_nested(const char* what, error_code& error) {
    const bool wants_list = columns_[slot_]->separator != 0;
    return refuse(str(what, " stands there, and ",
                      wants_list ? "a list of numbers or texts" : "one number or text",
                      " is wanted; values within values are not read: write each to a key of its "
                      "own"),
                  error);
  }
  bool refuse_no_object(error_code& error) {
    return refuse("the line is a single value, and an object is wanted", error);
  }

  std::map<std::string, std::size_t, std::less<>> slots_;
  std::vector<const CsvColumn*> columns_;  // wanted
  std::vector<std::string_view> cells_;
  std::vector<bool> seen_;
  std::string_view line_, at_;  // at_: the last key at the top
  std::deque<std::string>* texts_ = nullptr;
  std::string pieces_;  // of a key or value that comes in parts
  std::size_t depth_ = 0, slot_ = kNone;
  bool is_first_ = true;  // no value of the list has come
  RecordFault fault_;
};

class JsonLinesReader final : public CellReader {
 public:
  JsonLinesReader(const std::string& path, const CsvSchema& schema,
                  const std::vector<std::size_t>& wanted, Pipes pipes)
      : lines_(path, {.skip_blank = true}, pipes), parser_(options(), schema, wanted) {}

  void read(std::int64_t most, std::int64_t first, const CsvPick& pick, CsvCells& out) override {
    out.clear();
    out.may_lack_values = true;
    texts_.clear();
    for (std::size_t bytes = 0;
         static_cast<std::int64_t>(out.rows.size()) < most && bytes < kTextBytesAtOnce;) {
      const bool picked = pick.num == 1 || (first + out.passed) % pick.num == pick.index;
      if (!next_line(picked)) break;
      if (picked) {
        const std::string_view line = texts_.emplace_back(raw_.bytes);
        bytes += line.size();
        const CsvCells::Row row{raw_.number, line.data(), line.data() + line.size()};
        if (!parse(line)) {
          again_ = !out.rows.empty();  // met again, alone, by the next call
          if (again_) break;
          out.faulty = true;
          out.fault_row = row;
          ++out.passed;
          break;
        }
        for (std::size_t i = 0; i < out.columns.size(); ++i)
          out.columns[i].push_back(parser_.handler().cells()[i]);
        out.rows.push_back(row);
      }
      ++out.passed;
    }
  }
  std::int64_t skip(std::int64_t most) override {
    std::int64_t passed = 0;
    while (passed < most && next_line(false)) ++passed;
    return passed;
  }
  RecordFault fault() const override { return fault_; }

  std::uint64_t offset() const override { return again_ ? raw_.offset : lines_.offset(); }
  std::int64_t number() const override { return again_ ? raw_.number : lines_.number(); }
  void seek(std::uint64_t offset, std::int64_t number) override {
    again_ = false;
    lines_.seek(offset, number);
  }
  void rewind() override {
    again_ = false;
    lines_.rewind();
  }
  bool saw_records() const override { return lines_.saw_records(); }

 private:
  static boost::json::parse_options options() {
    boost::json::parse_options options;
    options.max_depth = kDepthMax;
    return options;
  }
  bool next_line(bool wanted) { return std::exchange(again_, false) || lines_.next(raw_, wanted); }

  // False: fault_ says why the line has no cells.
  bool parse(std::string_view line) {
    fault_ = raw_.fault;
    if (!fault_.why.empty()) return false;
    error_code error;
    parser_.reset();
    parser_.handler().begin(line, texts_);
    const std::size_t parsed = parser_.write_some(false, line.data(), line.size(), error);
    if (!error && parsed == line.size()) return true;
    fault_ = parser_.handler().fault();
    if (fault_.why.empty()) {
      fault_.column = static_cast<std::int64_t>(std::min(parsed, line.size())) + 1;
      fault_.why = str("this is not one JSON object: ", complaint(error));
    }
    return false;
  }
  static std::string complaint(const error_code& error) {
    if (!error) return "text follows it";
    if (error == boost::json::error::incomplete)
      return "the line ends within it, and JSON lines have each object whole on a line of its own";
    return error.message();
  }

  LineReader lines_;
  boost::json::basic_parser<ObjectCells> parser_;
  RawRecord raw_;
  bool again_ = false;             // raw_ is the next line: it was read and not passed
  std::deque<std::string> texts_;  // lines, and texts that are not as their lines have them
  RecordFault fault_;
};

// Columns are found by their names, and lists have one separator, whichever was given.
CsvSchema of_objects(CsvSchema schema) {
  const CsvSchema plain{.columns = schema.columns,
                        .label = schema.label,
                        .header = schema.header,
                        .unknown = schema.unknown,
                        .where = schema.where};
  if (!(schema == plain))
    throw InvalidArgumentError(
        "json_lines: the schema has a delimiter, a quote, comments or another rule of how text is "
        "cut into cells, and JSON says that by itself: leave them as they are by default");
  schema.header = true;
  for (CsvColumn& column : schema.columns)
    if (column.separator != 0) column.separator = kListSeparator;
  return schema;
}

}  // namespace

Dataset json_lines(std::vector<std::string> paths, CsvSchema schema, CsvOptions options) {
  return dataset_of(
      std::make_shared<JsonLinesFiles>(std::move(paths), of_objects(std::move(schema)), options));
}

ElementSpec JsonLinesFiles::element() const {
  check_paths(paths);
  return element_of_cells(schema);
}

StagePtr JsonLinesFiles::open(SourceRequest request) const {
  const auto open = [this](const std::string& path, const std::vector<std::size_t>& wanted,
                           Pipes pipes) {
    return std::make_unique<JsonLinesReader>(path, schema, wanted, pipes);
  };
  CellSourceParts parts{{paths, options.on_error, options.empty_files}, &schema, open};
  return make_cell_source(std::move(parts), std::move(request));
}

void JsonLinesFiles::write(StageWriter& writer) const {
  auto out = writer.stage.initFiles();
  out.setFormat(kJsonLines);
  write_cells(out.getSource().initAs<pipeline::Csv>(), paths, schema, options);
}

Dataset read_json_lines(const StageReader& reader) {
  const auto in = reader.stage.getFiles().getSource().getAs<pipeline::Csv>();
  const CsvOptions options{read_on_error(in), read_empty_files(in)};
  return json_lines(read_paths(in), read_cells(in), options);
}

}  // namespace cairn
