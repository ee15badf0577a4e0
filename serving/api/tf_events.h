// TfEvents: takes the events of a JSON parser that reads a body of TensorFlow Serving's REST API,
// and hands values to the builders of their columns. A part of TfDecoder.
//   Thread  one.
#pragma once
#include <boost/json/error.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "serving/api/column_builder.h"
#include "serving/api/json_request.h"
#include "serving/api/ragged_columns.h"
#include "serving/api/tf_json.h"

namespace cairn::serving {

enum class TfVerb : std::uint8_t { kPredict, kClassify, kRegress };

// A column that a client may name, and where its tensors stand in an Element.
struct TfColumn {
  ColumnBuilder builder;
  std::size_t place = 0;
  std::size_t splits_place = kNoColumn;  // of a ragged column
  bool in_context = false;
  bool is_given = false;  // in column form
};

// The keys of ":recommend" beside the queries.
struct TfWishes {
  bool are_read = false;  // the body is one of ":recommend"
  bool had_k = false, had_exclude = false;
  std::int64_t k = 10;
  std::vector<std::vector<ExcludedId>> exclude = {};
  DecodeBudget* budget = nullptr;  // of the body
};

class TfEvents {
 public:
  using error_code = boost::json::error_code;
  static constexpr std::size_t max_object_size = std::size_t(-1), max_array_size = std::size_t(-1),
                               max_key_size = std::size_t(-1), max_string_size = std::size_t(-1);

  explicit TfEvents(const Signature& signature);
  TfEvents(const TfEvents&) = delete;  // it has views of its own texts
  TfEvents& operator=(const TfEvents&) = delete;

  // Before each body, which must outlive the parsing, as the budget must.
  void begin(TfVerb verb, const FiniteBody& body, DecodeBudget& budget);
  // Behind begin(): the body may have wishes as well.
  void read_wishes() { wishes_.are_read = true; }
  TfWishes take_wishes() { return std::exchange(wishes_, {}); }
  // After it: what the body held.
  //   Errors  InvalidArgument: something is missing.
  Examples finish();
  TfForm form() const { return form_; }
  // Why the body cannot be used, if it is not the parser that says so.
  const JsonFault& fault() const { return fault_; }

  // ---- the parser's events ----
  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code& error);
  bool on_object_end(std::size_t, error_code& error);
  bool on_array_begin(error_code& error);
  bool on_array_end(std::size_t, error_code& error);
  bool on_key_part(std::string_view part, std::size_t, error_code&) {
    pieces_ += part;
    return true;
  }
  bool on_key(std::string_view rest, std::size_t, error_code& error);
  bool on_string_part(std::string_view part, std::size_t, error_code&) {
    if (at_ != At::kSkip) pieces_ += part;
    return true;
  }
  bool on_string(std::string_view rest, std::size_t, error_code& error);
  bool on_number_part(std::string_view part, error_code&) {
    pieces_ += part;
    return true;
  }
  bool on_int64(std::int64_t value, std::string_view rest, error_code& error) {
    if (at_ == At::kValue && !has_literals_ && active_->builder.fast_integer(value)) [[likely]] {
      pieces_.clear();
      return true;
    }
    return number(whole(rest), &value, error);
  }
  bool on_uint64(std::uint64_t, std::string_view rest, error_code& error) {
    return number(whole(rest), nullptr, error);
  }
  bool on_double(double value, std::string_view rest, error_code& error) {
    const std::string_view text = whole(rest);
    if (at_ == At::kValue && !has_literals_ && active_->builder.fast_number(text, value)) [[likely]]
      return true;
    return number(text, nullptr, error);
  }
  bool on_bool(bool value, error_code& error);
  bool on_null(error_code& error);
  bool on_comment_part(std::string_view, error_code&) { return true; }
  bool on_comment(std::string_view, error_code&) { return true; }

 private:
  enum class At : std::uint8_t {
    kDocument,
    kTop,           // among the keys of the whole
    kSkip,          // in the value of a key that is not ours
    kSignature,     // a value is to come: that of "signature_name",
    kWantRows,      // "instances" or "examples",
    kWantColumns,   // "inputs",
    kWantContext,   // "context"
    kRows,          // in the list of rows
    kRow,           // among the keys of one
    kColumns,       // among the keys of "inputs"
    kContext,       // among the keys of "context"
    kValue,         // in the value of a column
    kBase64,        // in its {"b64": ...}: the key is to come,
    kBase64Text,    // the text,
    kBase64Closed,  // the end
    kCount,         // a value is to come: that of "k",
    kWantExclude,   // "exclude"
    kExclude,       // in its list of lists
    kExcluded,      // in one of them
  };

  std::string_view whole(std::string_view rest) { return pieces_.empty() ? rest : joined(rest); }
  std::string_view joined(std::string_view rest);
  bool number(std::string_view text, const std::int64_t* value, error_code& error);
  bool close_value(bool taken, std::string_view text, error_code& error);
  bool close_skipped();
  bool open_bare(error_code& error);
  bool open_top(std::string_view key, error_code& error);
  bool open_column(std::string_view key, error_code& error);
  bool open_in_row(TfColumn& column, std::string_view key, error_code& error);
  bool close_row(error_code& error);
  bool take_signature(std::string_view name, error_code& error);
  bool take_base64(std::string_view text, error_code& error);
  TfColumn* find(std::string_view key);
  std::string missing_columns(std::int64_t row);
  std::size_t offset_of(std::string_view text) const;
  bool refuse(std::string why, std::string_view text, error_code& error);
  bool refuse_kind(const std::string& found, std::string_view text, error_code& error);
  void take_context();
  bool take_count(const std::int64_t* value, std::string_view text, error_code& error);
  bool take_excluded(ExcludedId id, std::string_view text, error_code& error);
  void verify_wishes(std::int64_t examples) const;
  std::string row_name(std::int64_t row) const;
  std::vector<std::string> names() const;

  std::vector<TfColumn> columns_;
  std::unordered_map<std::string_view, std::size_t> places_by_name_;  // in columns_
  std::size_t places_ = 0;                                            // of an Element
  TfVerb verb_ = TfVerb::kPredict;
  TfForm form_ = TfForm::kRows;
  At at_ = At::kDocument, back_ = At::kTop;  // back_: when the value has ended
  struct Had {                               // keys of the whole
    bool rows = false, columns = false, signature = false, context = false;
    std::vector<std::string> unknown = {};  // the first few
  } had_;
  bool has_literals_ = false;
  int skipped_ = 0;  // open lists and objects
  std::int64_t row_ = 0;
  std::size_t next_ = 0, seen_ = 0;  // columns: the likely next one; how many the row has had
  TfColumn* active_ = nullptr;
  TfWishes wishes_;
  const FiniteBody* body_ = nullptr;
  std::string pieces_, whole_;  // of a key or value that comes in parts
  std::string bytes_;           // that base64 stands for
  JsonFault fault_;
};

}  // namespace cairn::serving
