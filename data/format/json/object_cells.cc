#include "data/format/json/object_cells.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/src.hpp>
#include <functional>
#include <map>

#include "core/base/error.h"
#include "data/feature/printable.h"

namespace cairn {
namespace {

using boost::json::error_code;

constexpr std::size_t kDepthMax = 64;

// Takes the events of one object, and makes cells of the values of wanted columns.
class ObjectCells {
 public:
  static constexpr std::size_t max_object_size = std::size_t(-1), max_array_size = std::size_t(-1),
                               max_key_size = std::size_t(-1), max_string_size = std::size_t(-1);

  ObjectCells(const CsvSchema& schema, const std::vector<std::size_t>& wanted, const char* record)
      : record_(record) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const CsvColumn& column = schema.columns[wanted[i]];
      slots_.emplace(column.name, i);
      columns_.push_back(&column);
    }
    cells_.resize(wanted.size());
  }

  // Before each object. `texts` is where texts with escapes go.
  void begin(std::string_view text, std::deque<std::string>& texts) {
    text_ = text;
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
    if (++depth_ == 1)
      return refuse(str("the ", record_, " is a list, and an object is wanted"), error);
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
    if (pieces_.empty() && is_in_text(rest)) {
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
  bool is_in_text(std::string_view text) const {
    return !std::less<>()(text.data(), text_.data()) &&
           !std::less<>()(text_.data() + text_.size(), text.data());
  }

  bool refuse(const std::string& why, error_code& error) {
    const bool named = slot_ != kNone;
    fault_.why = named ? str("column \"", printable(columns_[slot_]->name), "\": ", why) : why;
    if (named && is_in_text(at_)) fault_.column = at_.data() - text_.data() + 1;
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
    return refuse(str("the ", record_, " is a single value, and an object is wanted"), error);
  }

  const char* record_;
  std::map<std::string, std::size_t, std::less<>> slots_;
  std::vector<const CsvColumn*> columns_;  // wanted
  std::vector<std::string_view> cells_;
  std::vector<bool> seen_;
  std::string_view text_, at_;  // at_: the last key at the top
  std::deque<std::string>* texts_ = nullptr;
  std::string pieces_;  // of a key or value that comes in parts
  std::size_t depth_ = 0, slot_ = kNone;
  bool is_first_ = true;  // no value of the list has come
  RecordFault fault_;
};

boost::json::parse_options parse_options() {
  boost::json::parse_options options;
  options.max_depth = kDepthMax;
  return options;
}

}  // namespace

struct ObjectParser::State {
  State(const CsvSchema& schema, const std::vector<std::size_t>& wanted, const char* record)
      : parser(parse_options(), schema, wanted, record) {}
  boost::json::basic_parser<ObjectCells> parser;
};

ObjectParser::ObjectParser(const CsvSchema& schema, const std::vector<std::size_t>& wanted,
                           const char* record)
    : state_(std::make_unique<State>(schema, wanted, record)), record_(record) {}
ObjectParser::~ObjectParser() = default;

const std::vector<std::string_view>& ObjectParser::cells() const {
  return state_->parser.handler().cells();
}

std::optional<std::size_t> ObjectParser::parse(std::string_view text,
                                               std::deque<std::string>& texts) {
  auto& parser = state_->parser;
  error_code error;
  parser.reset();
  parser.handler().begin(text, texts);
  const std::size_t parsed = parser.write_some(false, text.data(), text.size(), error);
  if (!error) return parsed;
  fault_ = parser.handler().fault();
  if (!fault_.why.empty()) return {};
  fault_.column = static_cast<std::int64_t>(std::min(parsed, text.size())) + 1;
  fault_.why = str("this is not one JSON object: ", error == boost::json::error::incomplete
                                                        ? str("the ", record_, " ends within it")
                                                        : error.message());
  return {};
}

CsvSchema object_schema(const CsvSchema& cells) {
  CsvSchema schema{.columns = cells.columns,
                   .label = cells.label,
                   .header = true,  // keys name the columns
                   .unknown = cells.unknown,
                   .where = cells.where};
  for (CsvColumn& column : schema.columns) {
    column.optional = false;
    if (column.separator == 0) continue;
    if (column.default_value)
      std::ranges::replace(*column.default_value, column.separator, kListSeparator);
    column.separator = kListSeparator;
  }
  return schema;
}

}  // namespace cairn
